// A project that the gateway refuses.
import { task } from "@trigger.dev/sdk";

export const greet = task({ id: "greet", ttl: "banana", run: async () => "x" });
