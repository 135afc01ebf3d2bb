// details.js - parts of objects that lists leave out, such as the payload of a run or the tasks of a version: requested when a
// row shows them, a few at a time, and cached, since they do not change.
import { useEffect, useState } from "preact/hooks";

import { session } from "./session.js";

const atOnce = 4, cachedMax = 500;
const cached = new Map(), waiting = new Map(); // key -> value; key -> { load, redraws, isLoading }
let loading = 0;

function startNext() {
  while (loading < atOnce) {
    const [key, item] = [...waiting].reverse().find(([, { isLoading }]) => !isLoading) ?? []; // the newest: older ones may have left the screen
    if (!item) return;
    loading++;
    item.isLoading = true;
    item.load().then((value) => cached.set(key, value), () => cached.set(key, {})).finally(() => {
      loading--;
      waiting.delete(key);
      while (cached.size > cachedMax) cached.delete(cached.keys().next().value);
      for (const redraw of item.redraws) redraw((count) => count + 1);
      startNext();
    });
  }
}

/** Returns the cached result of load() for this key; undefined until it has loaded. */
export function useCached(key, load, enabled = true) {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!enabled || cached.has(key)) return undefined;
    if (!waiting.has(key)) waiting.set(key, { load, redraws: new Set() });
    const item = waiting.get(key);
    item.redraws.add(redraw);
    startNext();
    return () => { // the row has left the screen
      item.redraws.delete(redraw);
      if (!item.redraws.size && !item.isLoading) waiting.delete(key);
    };
  }, [key, enabled]);
  return cached.get(key);
}

/** The payload and the source of a run. */
export const useDetails = (place, id, enabled = true) => useCached(id, async () => {
  const run = await session.request(place, "GET", `/api/v3/runs/${encodeURIComponent(id)}`);
  return { payload: run.payload, isLong: Boolean(run.payloadPresignedUrl), parent: run.relatedRuns?.parent?.taskIdentifier, schedule: run.schedule?.id };
}, enabled);

/** A payload in one line. */
export function summaryOf(details, length = 120) {
  if (!details) return "";
  if (details.isLong) return "large payload";
  const text = details.payload === undefined ? "" : JSON.stringify(details.payload);
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
