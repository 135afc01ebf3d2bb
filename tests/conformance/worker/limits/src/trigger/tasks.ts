// A project that declares concurrency limits.
import { concurrencyLimit, task } from "@trigger.dev/sdk";

export const shared = concurrencyLimit({ name: "shared", total: 5 });

export const greet = task({ id: "greet", concurrency: [{ total: 2 }, shared], run: async () => "x" });
