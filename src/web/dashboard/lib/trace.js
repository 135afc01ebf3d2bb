// trace.js - spans and logs of a run and its descendants, as one list of lines.
//
// The gateway has a tree for each run. The tree of a child is inserted below the span that triggered it
// (found by the child's id or batch), otherwise below its parent's root.
import { session } from "./session.js";

const tracedRuns = 60, tracedDepth = 4, pageSize = 50, longTrace = 2000;

const ms = (time) => new Date(time).getTime();

/** Spans of the tree, each with its run, times in ms, and children in the order of their start. */
function shape(span, run) {
  const { data } = span, start = ms(data.startTime), properties = data.properties ?? {};
  return {
    id: span.id, run, message: data.message, level: data.level, start, durationMs: data.duration / 1e6,
    isError: data.isError, isPartial: data.isPartial, isCancelled: data.isCancelled, properties, events: data.events ?? [],
    runRef: properties.runId, batchRef: properties.batchId,
    children: (span.children ?? []).map((child) => shape(child, run)).sort((a, b) => a.start - b.start),
  };
}

function* all(span) {
  yield span;
  for (const child of span.children) yield* all(child);
}

/** Loads the tree of a run with those of its children. Returns { root, isCut, isLong }; isCut: some runs are left out. */
export async function loadTrace(place, run) {
  let left = tracedRuns, isCut = false, lines = 0;
  async function load(one, depth) {
    left--;
    const [{ trace }, children] = await Promise.all([
      session.ask(place, "GET", `/api/v1/runs/${one.id}/trace`),
      depth < tracedDepth ? session.ask(place, "GET", `/api/v1/runs/${one.id}/children?page[size]=${pageSize}`) : { data: [] },
    ]);
    const root = shape(trace.rootSpan, one), taken = children.data.slice(0, Math.max(left, 0));
    Object.assign(root, { isRun: true, dropped: trace.dropped, removed: trace.removed, mayBeIncomplete: trace.mayBeIncomplete });
    if (taken.length < children.data.length || children.pagination?.next) isCut = true;
    const below = await Promise.all(taken.map((child) => load(child, depth + 1)));
    const spans = [...all(root)];
    lines += spans.length;
    for (const child of below) {
      const parent = spans.find((span) => span !== root && span.runRef === child.run.id && !span.message.startsWith("streams.")) ?? spans.find((span) => span.batchRef && span.batchRef === child.run.batchId) ?? root;
      parent.children.push(child);
      parent.children.sort((a, b) => a.start - b.start);
    }
    return root;
  }
  const root = await load(run, 0);
  return { root, isCut, isLong: lines > longTrace };
}

/** The visible lines, { span, depth, isOpen, hasChildren }, and the time range of all of them. */
export function linesOf(root, closed, now) {
  const lines = [];
  let from = root.start, to = root.start;
  const visit = (span, depth) => {
    const isOpen = !closed.has(span.id), end = span.isPartial || (span.isRun && !span.run.finishedAt) ? now : span.start + span.durationMs;
    from = Math.min(from, span.start);
    to = Math.max(to, end);
    lines.push({ span, depth, isOpen, end, hasChildren: span.children.length > 0 });
    if (isOpen) for (const child of span.children) visit(child, depth + 1);
  };
  visit(root, 0);
  return { lines, from, to: Math.max(to, from + 1) };
}
