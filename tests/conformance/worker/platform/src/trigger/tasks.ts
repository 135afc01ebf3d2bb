// A project that declares concurrency limits, prompts and an agent, in addition to tasks.
import { concurrencyLimit, logger, prompts, queue, task } from "@trigger.dev/sdk";

export const greeting = prompts.define({ id: "greeting", model: "none", content: "Hello, {{name}}!" });

// Like a task of chat.agent(), whose module would need the package `ai`.
const agent = { agentConfig: { type: "ai-sdk-chat" }, triggerSource: "agent" } as object;
export const assistant = task({ id: "assistant", ...agent, run: async () => "no model here" });

export const shared = concurrencyLimit({ name: "shared", total: 5 });
export const limited = task({ id: "limited", concurrency: [{ total: 2 }, shared], run: async () => "x" });

export const line = queue({ name: "line", concurrencyLimit: 3 });

export const greet = task({
  id: "greet",
  queue: line,
  run: async ({ name }: { name: string }) => {
    logger.info("greeting");
    const refused = await greeting.resolve({ name }).catch((error) => error.message);
    return { text: `Hello, ${name}!`, refused };
  },
});

export const parent = task({
  id: "parent",
  run: async () => {
    const one = await greet.triggerAndWait({ name: "Ada" }, { tags: ["inside"], metadata: { from: "parent" }, concurrencyKey: "k" }).unwrap();
    const many = await greet.batchTriggerAndWait([{ payload: { name: "Bob" } }, { payload: { name: "Eve" }, options: { tags: ["batch"], maxAttempts: 2 } }]);
    const { id } = await greet.trigger({ name: "later" }, { delay: "1h", priority: 1, ttl: "2h" });
    return { texts: [one.text, ...many.runs.map((run) => (run.ok ? run.output.text : "refused"))], id };
  },
});
