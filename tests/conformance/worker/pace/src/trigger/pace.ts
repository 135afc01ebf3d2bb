// Tasks for pace.test.mjs and bench/children.mjs: many runs at once, and parents that wait for children.
import { setTimeout as sleep } from "node:timers/promises";
import { concurrencyLimit, concurrencyLimits, queue, runs, task } from "@trigger.dev/sdk";

const narrow = queue({ name: "narrow", concurrencyLimit: 1 });
const single = queue({ name: "single", concurrencyLimit: 1 });
const shared = concurrencyLimit({ name: "shared", total: 1 });

/** Waits for another run of this task, in the same queue with a limit of one, down to the given depth. */
export const nested = task({
  id: "nested",
  queue: narrow,
  run: async ({ depth }: { depth: number }): Promise<number> =>
    depth ? 1 + (await nested.triggerAndWait({ depth: depth - 1 }).unwrap()) : 0,
});

/** The same in a queue of its own, with a concurrency limit of one. */
export const limited = task({
  id: "limited",
  concurrency: shared,
  run: async ({ depth }: { depth: number }): Promise<number> =>
    depth ? 1 + (await limited.triggerAndWait({ depth: depth - 1 }).unwrap()) : 0,
});

/** The same in a queue without a limit: only the environment limits it. */
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

/** Works, waits for a child of another queue, and works again. Returns when each work began and ended. */
async function workTwice({ ms }: { ms: number }) {
  const work = async () => {
    const from = Date.now();
    await sleep(ms);
    return [from, Date.now()];
  };
  const first = await work();
  await child.triggerAndWait({ ms: 1 }).unwrap();
  return [first, await work()];
}

export const solo = task({ id: "solo", queue: single, run: workTwice });

/** Two tasks, each with a queue of its own, that share a limit of one. */
export const left = task({ id: "left", concurrency: shared, run: workTwice });
export const right = task({ id: "right", concurrency: [{ total: 3 }, shared], run: workTwice });

export const family = task({
  id: "family",
  run: async ({ children, ms }: { children: number; ms: number }) => {
    const { runs } = await child.batchTriggerAndWait(Array.from({ length: children }, () => ({ payload: { ms } })));
    return runs.filter(({ ok }) => ok).length;
  },
});

const said = task({ id: "said", run: async (word: string) => word });

/** Pushes one run again and again: by triggerAndWait, and by two items of a batch that it waits for. */
export const pusher = task({
  id: "pusher",
  run: async ({ key }: { key: string }) => {
    const debounce = (of: string) => ({ debounce: { key: of, delay: "1s", mode: "trailing" as const } });
    const one = await said.triggerAndWait("alone", debounce(key));
    const items = ["first", "last"].map((payload) => ({ payload, options: debounce(`${key}-items`) }));
    const { runs } = await said.batchTriggerAndWait(items);
    return [one, ...runs].map((run) => [run.id, run.ok && run.output]);
  },
});

/** Holds the shared limit of one, and overrides it until a child has held it, too. */
export const lifter = task({
  id: "lifter",
  concurrency: shared,
  run: async () => {
    const { total } = await concurrencyLimits.override("shared", { total: 2 });
    const { id } = await limited.trigger({ depth: 0 });
    while (!(await runs.retrieve(id)).isCompleted) await sleep(50);
    return [total.override, (await concurrencyLimits.reset("shared")).total.current];
  },
});
