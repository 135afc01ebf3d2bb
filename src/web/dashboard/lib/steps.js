// steps.js - the history of a run for its card: when it was triggered, queued, started and finished.
import { isFinal } from "./status.js";

/** Returns [[label, at in ms]], oldest first. createdAt never decreases from one run to the next, so it may be ahead of the
 * clock and of queuedAt. No step is shown before it. */
export function stepsOf(run, now) {
  const triggered = new Date(run.createdAt).getTime(), hasEnded = isFinal(run);
  const steps = [["Triggered", run.createdAt], ["Delayed until", run.delayedUntil], ["Queued", run.queuedAt !== run.createdAt && run.queuedAt], ["Started", run.startedAt], [hasEnded ? "Finished" : "Now", run.finishedAt ?? (hasEnded ? run.updatedAt : now)]];
  return steps.filter(([, at]) => at).map(([label, at]) => [label, Math.max(new Date(at).getTime(), triggered)]).sort((a, b) => a[1] - b[1]);
}
