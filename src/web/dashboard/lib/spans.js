// spans.js - spans and logs of a trace: as lines of a timeline, as lines of a log, and a round time axis.
//
// It needs no page, so tests import it.
const ms = (time) => new Date(time).getTime();

/** Converts a tree of spans: each gets its run, times in ms, and its children sorted by their start. */
export function shape(span, run) {
  const { data } = span, start = ms(data.startTime), properties = data.properties ?? {};
  return {
    id: span.id, run, message: data.message, level: data.level, start, durationMs: data.duration / 1e6,
    isError: data.isError, isPartial: data.isPartial, isCancelled: data.isCancelled, properties, events: data.events ?? [],
    runRef: properties.runId, batchRef: properties.batchId, attempt: data.attemptNumber,
    children: (span.children ?? []).map((child) => shape(child, run)).sort((a, b) => a.start - b.start),
  };
}

/** Yields every span of a tree, each before its children. It does not recurse, since there may be tens of thousands. */
export function* everySpan(root) {
  const stack = [root];
  for (let span; (span = stack.pop());) {
    yield span;
    for (let at = span.children.length - 1; at >= 0; at--) stack.push(span.children[at]);
  }
}

const hasNoEnd = (span) => span.isPartial || (!span.isRun && span.level === "TRACE" && !span.durationMs && !span.isError);

/** Returns true if the worker began a span and never ended it. Once its run has finished, a span is no longer
 * partial; then it is unended if it has no duration, unless the run completed, since the last attempt then ended all
 * of its spans. */
export const isUnended = (span) => span.isPartial || span.endsBy !== undefined || (hasNoEnd(span) && Boolean(span.run.finishedAt) && span.run.status !== "COMPLETED");

const lastLinesText = "The process of this attempt ended before"; // the beginning of the gateway's warning about a lost process

/** Returns when an attempt's process exited without ending the attempt's span: at the gateway's warning, otherwise at
 * the start of the next attempt. */
function processEndOf(span, siblings) {
  const isEnd = (one) => one.start >= span.start && (one.attempt === span.attempt ? one.level === "WARN" && one.message.startsWith(lastLinesText) : one.properties["$span.attempt"] && one.attempt > span.attempt);
  return siblings.find(isEnd)?.start;
}

/** Sets endsBy, the latest end, on spans that processes of a run's attempts left open when they exited. */
export function endLostAttempts(root) {
  for (const attempt of root.children) {
    const end = attempt.properties["$span.attempt"] && hasNoEnd(attempt) ? processEndOf(attempt, root.children) : undefined;
    if (end !== undefined) for (const span of everySpan(attempt)) if (hasNoEnd(span)) span.endsBy = Math.max(end, span.start);
  }
}

/** Returns when a span ends. An unended span ends with its process or its run; while both live, it ends now. */
export function endOf(span, now) {
  if (span.isRun && !span.run.finishedAt) return now;
  if (!isUnended(span)) return span.start + span.durationMs;
  return span.endsBy ?? (span.run.finishedAt ? Math.max(ms(span.run.finishedAt), span.start) : now);
}

/** Returns true for a run that no worker has started: all of its time is that in the queue. */
export const hasNotStarted = ({ isRun, run }) => Boolean(isRun) && !run.startedAt;

/** Returns when a run entered its queue, if that was before the start of its span or the run has not started. */
function queuedOf(span) {
  const at = span.isRun && ms(span.run.queuedAt ?? span.run.createdAt);
  return at && (at < span.start || hasNotStarted(span)) ? at : undefined;
}

/** Returns { lines, from, to }: the visible lines, { span, depth, isOpen, queued, end, hasChildren }, and their time range. */
export function linesOf(root, closed, now) {
  const lines = [];
  let from = root.start, to = root.start;
  const visit = (span, depth) => {
    const isOpen = !closed.has(span.id), end = endOf(span, now), queued = queuedOf(span);
    from = Math.min(from, queued ?? span.start);
    to = Math.max(to, end);
    lines.push({ span, depth, isOpen, queued, end, hasChildren: span.children.length > 0 });
    if (isOpen) for (const child of span.children) visit(child, depth + 1);
  };
  visit(root, 0);
  return { lines, from, to: Math.max(to, from + 1) };
}

const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30].map((n) => n * second), ...[1, 2, 5, 10, 15, 30].map((n) => n * minute), ...[1, 2, 3, 6, 12].map((n) => n * hour)];
const maxTicks = 6, letterPx = 6.5, gapPx = 12; // as in style.css: the width of a letter of a label, and the space between labels

/** Returns the ticks of a time axis of this length: round times, in at most six steps, for whose labels there is space. */
export function ticksOf(total, widthPx = Infinity) {
  const ticks = (step) => Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step).filter((at) => (total - at) / total * widthPx >= roundText(at).length * letterPx);
  const fits = (step) => total / step <= maxTicks && ticks(step).every((at) => roundText(at).length * letterPx + gapPx <= step / total * widthPx);
  return ticks(steps.find(fits) ?? Math.ceil(total / Math.max(Math.min(maxTicks, Math.floor(widthPx / 70)), 1) / day) * day);
}

/** A round time: 0, 200 ms, 1.5 s, 1 min 30 s, 2 h. */
export function roundText(time) {
  if (!time) return "0";
  if (time < second) return `${time} ms`;
  if (time < minute) return `${time / second} s`;
  const parts = [[day, "d"], [hour, "h"], [minute, "min"], [second, "s"]], texts = [];
  let left = time;
  for (const [unit, name] of parts) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count) texts.push(`${count} ${name}`);
  }
  return texts.join(" ");
}

const ownOf = (properties) => Object.fromEntries(Object.entries(properties).filter(([name]) => !name.startsWith("$")));

/** The logs of all runs of a trace, oldest first (those of one millisecond in the order of the tree), and the errors of attempts: { key, at, level, message, data, run }. */
export function logsOf(root) {
  const logs = [];
  for (const span of everySpan(root)) {
    if (span.level !== "TRACE") logs.push({ key: `${span.run.id}/${span.id}`, at: span.start, level: span.level, message: span.message, data: ownOf(span.properties), run: span.run });
    if (!span.properties["$span.attempt"]) continue;
    span.events.forEach(({ name, time, properties = {} }, index) => {
      if (name !== "exception") return;
      const { type, message, stacktrace } = properties.exception ?? {};
      logs.push({ key: `${span.run.id}/${span.id}/${index}`, at: ms(time ?? span.start), level: "ERROR", message: `${type ?? "Error"}: ${message ?? ""}`, data: stacktrace ? { stack: stacktrace } : {}, run: span.run });
    });
  }
  return logs.sort((a, b) => a.at - b.at);
}

/** Reasons for which spans and logs of a run are dropped; `kept` is the number that the run still has. */
const losses = {
  limit: (kept) => `the run has ${kept.toLocaleString("en")} and has reached its limit (run-log-rows or run-log-bytes). The SDK drops more itself if its queue is full (TRIGGER_OTEL_LOG_MAX_QUEUE_SIZE)`,
  memory: () => "the project sent more at once than could be stored",
  quota: () => "the project has reached its storage quota (storage-quota)",
  share: () => "unfinished runs already hold all the spans and logs that their environment (log-share) or project (project-log-share) may keep",
};

/** Returns sentences about dropped spans and logs. Each count is a minimum, since the gateway counts only those that arrived. */
export function lossesOf(dropped = {}, kept) {
  return Object.keys(losses).filter((why) => dropped[why] > 0)
    .map((why) => `At least ${dropped[why].toLocaleString("en")} ${dropped[why] === 1 ? "span or log was" : "spans and logs were"} dropped: ${losses[why](kept)}.`);
}
