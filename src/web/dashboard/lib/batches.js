// batches.js - what the list of batches leaves out: the task, the tags and the counts by status of each batch.
import { session } from "./session.js";

const atOnce = 4, keptMax = 300, ever = "2000-01-01T00:00:00Z";
const ended = new Map(); // id -> what is known of a batch that has ended

async function load(place, { id }) {
  const query = (more) => new URLSearchParams({ "filter[batch]": id, "filter[createdAt][from]": ever, ...more });
  const [counts, { data: [run] }] = await Promise.all([session.ask(place, "GET", `/api/v1/runs/counts?${query()}`), session.ask(place, "GET", `/api/v1/runs?${query({ "page[size]": 1 })}`)]);
  return { byStatus: counts.byStatus, task: run?.taskIdentifier, tags: run?.tags ?? [] };
}

/** The batches, each with byStatus, task and tags of its newest run, if they could be loaded. */
export async function withRuns(place, batches) {
  const found = [];
  for (let at = 0; at < batches.length; at += atOnce)
    found.push(...await Promise.all(batches.slice(at, at + atOnce).map(async (batch) => {
      const kept = ended.get(batch.id) ?? await load(place, batch).catch(() => ({}));
      if (batch.endedCount === batch.runCount && kept.byStatus) ended.set(batch.id, kept);
      return { ...batch, ...kept };
    })));
  while (ended.size > keptMax) ended.delete(ended.keys().next().value);
  return found;
}
