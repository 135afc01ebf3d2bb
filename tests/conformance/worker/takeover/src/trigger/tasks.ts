// Tasks that takeover.test.mjs executes while one gateway takes over from another. Each attempt logs when it begins and
// ends, so that the test sees how often a run was executed, and whether attempts overlapped.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { task, wait } from "@trigger.dev/sdk";

type Payload = { name: string; notes: string; file: string };
type Context = { run: { id: string }; attempt: { number: number } };

async function noted<T>({ notes }: Payload, { run, attempt }: Context, work: () => Promise<T>): Promise<T> {
  const note = (event: string) =>
    appendFileSync(`${notes}${process.pid}`, `${JSON.stringify({ event, run: run.id, attempt: attempt.number, at: Date.now() })}\n`);
  note("started");
  try { return await work(); } finally { note("completed"); }
}

/** Runs until a file exists. */
export const computes = task({
  id: "computes",
  run: async (payload: Payload, { ctx }) => noted(payload, ctx, async () => {
    while (!existsSync(payload.file)) await sleep(50);
  }),
});

export const waits = task({
  id: "waits",
  run: async (payload: Payload, { ctx }) => noted(payload, ctx, () => wait.for({ seconds: 8 })),
});

/** Fails the first time, and pauses for less than 30 s, so the worker itself pauses. */
export const retries = task({
  id: "retries",
  retry: { maxAttempts: 2, minTimeoutInMs: 8000, maxTimeoutInMs: 8000, factor: 1, randomize: false },
  run: async (payload: Payload, { ctx }) => noted(payload, ctx, async () => {
    if (ctx.attempt.number === 1) throw new Error("once more");
  }),
});
