// steps.js - the history of a run for its card: when it was triggered, queued, started and finished.
import { isFinal } from "./status.js";

/** Returns [[label, at in ms]], oldest first. No step is before the trigger: a run is not created before an older one, so
 * createdAt may be ahead of the clock, and of queuedAt. */
export function stepsOf(run, now) {
  const triggered = new Date(run.createdAt).getTime(), isOver = isFinal(run);
  const steps = [["Triggered", run.createdAt], ["Delayed until", run.delayedUntil], ["Queued", run.queuedAt !== run.createdAt && run.queuedAt], ["Started", run.startedAt], [isOver ? "Finished" : "Now", run.finishedAt ?? (isOver ? run.updatedAt : now)]];
  return steps.filter(([, at]) => at).map(([label, at]) => [label, Math.max(new Date(at).getTime(), triggered)]).sort((a, b) => a[1] - b[1]);
}
