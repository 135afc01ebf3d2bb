// Tasks of cli.test.mjs that the scenarios of e2e.mjs lack.
import { metadata, queue, task, wait } from "@trigger.dev/sdk";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export const hello = task({
  id: "hello",
  run: async (payload: { name?: string }) => ({ greeting: `Hello, ${payload?.name ?? "world"}!` }),
});

/** Takes as long as the payload demands, and increments its metadata every half second. */
export const lasts = task({
  id: "lasts",
  run: async ({ seconds }: { seconds: number }) => {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(500))
      metadata.increment("steps", 1);
    return { lasted: seconds };
  },
});

const serial = queue({ name: "serial", concurrencyLimit: 1 });

/** Fails the first time, with a retry after 6 s. The worker waits for retries within 30 s itself. */
export const pauses = task({
  id: "pauses",
  queue: serial,
  retry: { maxAttempts: 2, minTimeoutInMs: 6000, maxTimeoutInMs: 6000, factor: 1, randomize: false },
  run: async (_payload: unknown, { ctx }) => {
    if (ctx.attempt.number === 1) throw new Error("once more");
    return { attempt: ctx.attempt.number };
  },
});

export const serialUser = task({ id: "serial-user", queue: serial, run: async () => ({ done: true }) });

/** Every way in which an attempt can change its run: a failure, metadata, a wait, an end. */
export const everything = task({
  id: "everything",
  retry: { maxAttempts: 2, minTimeoutInMs: 300, maxTimeoutInMs: 300, factor: 1, randomize: false },
  run: async (_payload: unknown, { ctx }) => {
    if (ctx.attempt.number === 1) throw new Error("the first attempt fails");
    metadata.set("step", "before");
    await metadata.flush();
    await wait.for({ seconds: 6 });
    metadata.set("step", "after");
    await metadata.flush();
    return { done: true };
  },
});

/** Ends at once, so that its completion carries its metadata and those for its relatives. */
export const leaf = task({
  id: "leaf",
  run: async ({ name }: { name: string }) => {
    metadata.set("mine", name);
    metadata.parent.append("children", name).increment("count", 1);
    metadata.root.append("seen", name);
    return name;
  },
});

export const middle = task({
  id: "middle",
  run: async () => {
    metadata.set("mine", "middle");
    metadata.parent.set("child", "middle");
    metadata.root.append("seen", "middle");
    const { id } = await leaf.triggerAndWait({ name: "leaf" }).then((result) => ({ id: result.id }));
    return { leaf: id };
  },
});

export const root = task({
  id: "root",
  run: async () => {
    metadata.parent.set("alone", true); // sets its own metadata, since it has no parent
    const { id } = await middle.triggerAndWait(undefined).then((result) => ({ id: result.id }));
    return { middle: id };
  },
});

export const rich = task({
  id: "rich",
  run: async () => ({
    at: new Date("2026-01-02T03:04:05.678Z"),
    list: [1, null, { deep: true }],
    map: new Map([["a", 1]]),
    set: new Set(["x"]),
    big: 12345678901234567890n,
    nothing: undefined,
    text: "ünï",
  }),
});

/** Ends with a large result, as after the unexpected response of a server: an error that quotes a page of 1.3 MB, a thrown
 *  string of 17 MB, or an output of 17 MB. */
export const quotes = task({
  id: "quotes",
  retry: { maxAttempts: 1 },
  run: async ({ how }: { how: "error" | "string" | "output" }) => {
    const page = "<p>not what we asked for</p>\n".repeat(45_000);
    if (how === "error") throw new Error(`Unexpected answer: ${page}`);
    if (how === "string") throw "x".repeat(17_000_000);
    return { page: "o".repeat(17_000_000) };
  },
});

/** Its process exits in each attempt; the settings of the task decide whether it is retried. */
export const dies = task({
  id: "dies",
  retry: { maxAttempts: 2, minTimeoutInMs: 300, maxTimeoutInMs: 300, factor: 1, randomize: false },
  run: async () => process.exit(3),
});

/** Waits in every way that a task can: for a child, a time, a token and a batch. */
export const asks = task({
  id: "asks",
  run: async () => {
    const child = await leaf.triggerAndWait({ name: "one" }).unwrap();
    await wait.for({ seconds: 6 });
    const token = await wait.createToken({ timeout: "10m" });
    metadata.set("token", token.id);
    const answer = await wait.forToken<{ yes: boolean }>(token).unwrap();
    const batch = await leaf.batchTriggerAndWait([{ payload: { name: "a" } }, { payload: { name: "b" } }]);
    return { leaf: child, answer, batch: batch.runs.map((run) => (run.ok ? run.output : null)) };
  },
});
