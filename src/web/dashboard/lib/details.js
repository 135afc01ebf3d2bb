// details.js - parts of objects that lists leave out, such as the payload of a run or the tasks of a version: requested when a
// row shows them, a few at a time, and kept, as they do not change.
import { useEffect, useState } from "preact/hooks";

import { session } from "./session.js";

const atOnce = 4, keptMax = 500;
const known = new Map(), waiting = new Map(); // key -> known value; key -> { ask, draws, isAsked }
let busy = 0;

function takeNext() {
  while (busy < atOnce) {
    const [key, item] = [...waiting].reverse().find(([, { isAsked }]) => !isAsked) ?? []; // the newest: older ones may have left the screen
    if (!item) return;
    busy++;
    item.isAsked = true;
    item.ask().then((value) => known.set(key, value), () => known.set(key, {})).finally(() => {
      busy--;
      waiting.delete(key);
      while (known.size > keptMax) known.delete(known.keys().next().value);
      for (const draw of item.draws) draw((turns) => turns + 1);
      takeNext();
    });
  }
}

/** Returns the result of ask() for this key; undefined until it is there. */
export function useKept(key, ask, enabled = true) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (!enabled || known.has(key)) return undefined;
    if (!waiting.has(key)) waiting.set(key, { ask, draws: new Set() });
    const item = waiting.get(key);
    item.draws.add(draw);
    takeNext();
    return () => { // it has left the screen
      item.draws.delete(draw);
      if (!item.draws.size && !item.isAsked) waiting.delete(key);
    };
  }, [key, enabled]);
  return known.get(key);
}

/** The payload and the source of a run. */
export const useDetails = (place, id, enabled = true) => useKept(id, async () => {
  const run = await session.ask(place, "GET", `/api/v3/runs/${encodeURIComponent(id)}`);
  return { payload: run.payload, isLong: Boolean(run.payloadPresignedUrl), parent: run.relatedRuns?.parent?.taskIdentifier, schedule: run.schedule?.id };
}, enabled);

/** A payload in one line. */
export function glimpseOf(details, length = 120) {
  if (!details) return "";
  if (details.isLong) return "large payload";
  const text = details.payload === undefined ? "" : JSON.stringify(details.payload);
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
