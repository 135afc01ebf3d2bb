// Tasks for the tests of the CLI's MCP server: one that declares its payload and a limit, one that waits, and one that fails.
import { logger, task, wait } from "@trigger.dev/sdk";

export const greet = task({
  id: "greet",
  concurrency: [{ total: 5 }],
  jsonSchema: { type: "object", properties: { name: { type: "string", description: "who is greeted" } }, required: ["name"] },
  run: async ({ name }: { name: string }) => {
    logger.info("greeting somebody", { name });
    return { greeting: `Hello, ${name}!` };
  },
});

export const waits = task({
  id: "waits",
  run: async ({ seconds }: { seconds: number }) => {
    await wait.for({ seconds });
    return "waited";
  },
});

export const fails = task({
  id: "fails",
  retry: { maxAttempts: 1 },
  run: async () => {
    throw new Error("it was meant to fail");
  },
});
