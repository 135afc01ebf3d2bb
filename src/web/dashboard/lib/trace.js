// trace.js - loads the spans and logs of a run and its descendants as one tree.
//
// The gateway has a tree for each run. The tree of a child is inserted below the span that triggered it
// (found by the child's id or batch), otherwise below its parent's root.
import { session } from "./session.js";
import { endLostAttempts, everySpan, shape } from "./spans.js";

const tracedRuns = 60, tracedDepth = 4, pageSize = 50, longTrace = 2000;

/** Loads the tree of a run and of its descendants. Returns { root, isCut, isLong }; isCut: some runs are left out. */
export async function loadTrace(place, run) {
  let left = tracedRuns, isCut = false, lines = 0;
  async function load(one, depth) {
    left--;
    const [{ trace }, children] = await Promise.all([
      session.request(place, "GET", `/api/v1/runs/${one.id}/trace`),
      depth < tracedDepth ? session.request(place, "GET", `/api/v1/runs/${one.id}/children?page[size]=${pageSize}`) : { data: [] },
    ]);
    const root = shape(trace.rootSpan, one), taken = children.data.slice(0, Math.max(left, 0));
    endLostAttempts(root);
    const spans = [...everySpan(root)];
    lines += spans.length;
    Object.assign(root, { isRun: true, kept: spans.length - 1, dropped: trace.dropped, removed: trace.removed, mayBeIncomplete: trace.mayBeIncomplete });
    if (taken.length < children.data.length || children.pagination?.next) isCut = true;
    const below = await Promise.all(taken.map((child) => load(child, depth + 1)));
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
