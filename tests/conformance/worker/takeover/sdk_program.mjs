// A user's program with an official SDK, for takeover.test.mjs. It triggers runs, one by one and in batches, until it is
// stopped. In each round it watches three runs in every way that the SDK has.
//
//   parent                              this program
//   { begin: round }              ──►   one run and a batch of two, subscribed to and polled
//                                 ◄──   { begun: [ids] }      the subscription of the tag has seen the three
//   { end: round }                ──►   cancels the three
//                                 ◄──   { ended: statuses }   the subscriptions and the poll have seen their ends
//   { stop: true }                ──►
//                                 ◄──   { stopped: { acknowledged: { name: id }, longestMs, gaveUp } }
//
// A call that still throws after the SDK's own retries is repeated under its idempotency key, as a user's program would
// do; these are counted in gaveUp. A subscription that throws or ends early is not started again: it ends this program,
// with { failed: text }.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const { SDK_DIR, SDK_MODULE, CLIENT: client } = process.env;
const { batch, runs, tasks } = createRequire(`${SDK_DIR}/x.js`)(SDK_MODULE);
const TASK = "unknown-task", GIVE_UP_MS = 60_000;

const acknowledged = {}; // name -> id; null for a batch of 4.8.3, which does not return ids
const statuses = new Map(); // id -> status of the tagged runs, from their subscription
let stopped = false, longestMs = 0;
const gaveUp = {};
const fail = (error) => { process.send({ failed: `${error?.stack ?? error}` }, () => process.exit(1)); };
process.on("unhandledRejection", fail);

async function untilDone(call) {
  for (const began = Date.now(); ;) {
    try {
      const result = await call();
      longestMs = Math.max(longestMs, Date.now() - began);
      return result;
    } catch (error) {
      if ((error.status >= 400 && error.status < 500) || Date.now() - began > GIVE_UP_MS) throw error;
      const why = `${error.status ?? ""} ${error.message}`.trim();
      gaveUp[why] = (gaveUp[why] ?? 0) + 1;
    }
  }
}

async function triggerOne(name, options) {
  const { id } = await untilDone(() => tasks.trigger(TASK, { name }, { idempotencyKey: name, ...options }));
  acknowledged[name] = id;
  return id;
}

async function triggerBatch(name, options) {
  const names = [1, 2].map((n) => `${name}-${n}`);
  const items = names.map((one) => ({ payload: { name: one }, options: { idempotencyKey: one, ...options } }));
  const { batchId, runs: created } = await untilDone(() => tasks.batchTrigger(TASK, items));
  names.forEach((one, i) => { acknowledged[one] = created?.[i].id ?? null; });
  return { batchId, ids: created?.map(({ id }) => id) ?? (await untilDone(() => batch.retrieve(batchId))).runs };
}

async function write() {
  for (let n = 0; !stopped; n++, await sleep(100)) {
    if (n % 5) await triggerOne(`${client}-${n}`);
    else await triggerBatch(`${client}-${n}`);
  }
}

/** Keeps one subscription of the tag during all rounds. */
async function followTag() {
  for await (const run of runs.subscribeToRunsWithTag(client)) statuses.set(run.id, run.status);
  throw new Error("the subscription of the tag has ended");
}

async function followRun(id) {
  for await (const run of runs.subscribeToRun(id)) if (run.finishedAt) return run.status;
  throw new Error(`the subscription of ${id} has ended before its run`);
}

async function followBatch(id, count) {
  const ends = new Map();
  for await (const run of runs.subscribeToBatch(id)) {
    if (run.finishedAt) ends.set(run.id, run.status);
    if (ends.size === count) return [...ends.values()];
  }
  throw new Error(`the subscription of ${id} has ended before its runs`);
}

const pollRun = async (id) => (await untilDone(() => runs.poll(id, { pollIntervalMs: 250 }))).status;
const when = async (condition) => { while (!condition()) await sleep(50); };

let ids, watched;

async function begin(round) {
  const options = { tags: [client] }, name = `${client}-round-${round}`;
  const one = await triggerOne(name, options), { batchId, ids: items } = await triggerBatch(`${name}-batch`, options);
  ids = [one, ...items];
  watched = { run: followRun(one), poll: pollRun(one), batch: followBatch(batchId, items.length) };
  for (const watch of Object.values(watched)) watch.catch(fail);
  await when(() => ids.every((id) => statuses.has(id)));
  process.send({ begun: ids });
}

async function end() {
  for (const id of ids) await untilDone(() => runs.cancel(id));
  const ended = {};
  for (const [way, watch] of Object.entries(watched)) {
    ended[way] = await watch;
    process.send({ watchEnded: way });
  }
  await when(() => ids.every((id) => /CANCELED/.test(statuses.get(id))));
  process.send({ ended });
}

const writing = write().catch(fail);
followTag().catch(fail);
process.on("message", async (message) => {
  if (message.begin !== undefined) return begin(message.begin).catch(fail);
  if (message.end !== undefined) return end().catch(fail);
  stopped = true;
  await writing;
  process.send({ stopped: { acknowledged, longestMs, gaveUp } }, () => process.exit(0));
});
