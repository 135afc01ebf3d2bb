// Tasks for pace.test.mjs and bench/children.mjs: many runs at once, and parents that wait for children.
import { queue, task } from "@trigger.dev/sdk";

const narrow = queue({ name: "narrow", concurrencyLimit: 1 });

/** Waits for another run of this task, in the same queue of one, down to the given depth. */
export const nested = task({
  id: "nested",
  queue: narrow,
  run: async ({ depth }: { depth: number }): Promise<number> =>
    depth ? 1 + (await nested.triggerAndWait({ depth: depth - 1 }).unwrap()) : 0,
});

/** The same where only the environment sets a limit. */
export const parent = task({
  id: "parent",
  run: async ({ depth }: { depth: number }): Promise<number> =>
    depth ? 1 + (await parent.triggerAndWait({ depth: depth - 1 }).unwrap()) : 0,
});

/** Computes for that many milliseconds of CPU. */
export const child = task({
  id: "child",
  run: async ({ ms }: { ms: number }) => {
    const begin = process.cpuUsage();
    for (let user = 0, system = 0, n = 0; user + system < ms * 1000; { user, system } = process.cpuUsage(begin))
      for (const end = n + 100_000; n < end; n++);
    return ms;
  },
});

export const family = task({
  id: "family",
  run: async ({ children, ms }: { children: number; ms: number }) => {
    const { runs } = await child.batchTriggerAndWait(Array.from({ length: children }, () => ({ payload: { ms } })));
    return runs.filter(({ ok }) => ok).length;
  },
});
