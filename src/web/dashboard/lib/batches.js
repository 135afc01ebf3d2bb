// batches.js - loads what the list of batches leaves out: the tasks, the tags and the counts by status of each batch.
import { session } from "./session.js";

const atOnce = 4, cachedMax = 300, newest = 10, ever = "2000-01-01T00:00:00Z";
const ended = new Map(); // id -> loaded values of a batch that has ended

async function load(place, { id }) {
  const query = (more) => new URLSearchParams({ "filter[batch]": id, "filter[createdAt][from]": ever, ...more });
  const [counts, { data: runs }] = await Promise.all([session.request(place, "GET", `/api/v1/runs/counts?${query()}`), session.request(place, "GET", `/api/v1/runs?${query({ "page[size]": newest })}`)]);
  return { byStatus: counts.byStatus, tasks: [...new Set(runs.map(({ taskIdentifier }) => taskIdentifier))], tags: runs[0]?.tags ?? [] };
}

/** Returns the batches, each with byStatus, and with the tasks of its newest runs and the tags of the newest, if these could be loaded. */
export async function withRuns(place, batches) {
  const found = [];
  for (let at = 0; at < batches.length; at += atOnce)
    found.push(...await Promise.all(batches.slice(at, at + atOnce).map(async (batch) => {
      const loaded = ended.get(batch.id) ?? await load(place, batch).catch(() => ({}));
      if (batch.endedCount === batch.runCount && loaded.byStatus) ended.set(batch.id, loaded);
      return { ...batch, ...loaded };
    })));
  while (ended.size > cachedMax) ended.delete(ended.keys().next().value);
  return found;
}
