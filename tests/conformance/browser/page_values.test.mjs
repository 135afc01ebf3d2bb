// Values that the dashboard computes from the gateway's responses, without a browser or a gateway.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { framesOf, headlineOf } from "../../../src/web/dashboard/lib/errors.js";
import { lastMinute, rowsOf } from "../../../src/web/dashboard/lib/samples.js";
import { endLostAttempts, isUnended, linesOf, logsOf, lossesOf, roundText, shape, ticksOf } from "../../../src/web/dashboard/lib/spans.js";
import { stepsOf } from "../../../src/web/dashboard/lib/steps.js";

const began = Date.parse("2026-11-29T00:00:00Z"), time = (ms) => new Date(began + ms).toISOString();

/** A span, or a log if a level is given, as the gateway returns it. */
const span = (message, ms, { children = [], durationMs = 0, level = "TRACE", ...more } = {}) => ({
  id: message, children, data: { message, startTime: time(ms), duration: durationMs * 1e6, level, isError: false, isPartial: false, isCancelled: false, properties: {}, events: [], ...more },
});

/** The tree of a run that started at 0, as the page uses it. */
const treeOf = (children, run = {}) => Object.assign(shape(span("task", 0, { children }), { id: "run_1", status: "COMPLETED", createdAt: time(0), finishedAt: time(10_000), ...run }), { isRun: true });

describe("logs of a trace", () => {
  test("lines of one millisecond keep the order of the task", () => {
    const line = (n) => span(`${n}`, n < 4 ? 5 : 6, { level: "INFO" });
    const root = treeOf([span("Attempt 1", 1, { durationMs: 20, children: [1, 2, 3, 4, 5, 6, 7].map(line) }), span("after", 6, { level: "WARN" })]);
    assert.deepEqual(logsOf(root).map(({ message }) => message), ["1", "2", "3", "4", "5", "6", "7", "after"]);
  });
});

describe("spans that a lost process left open", () => {
  const attempt = (n, ms, more) => span(`Attempt ${n}`, ms, { attemptNumber: n, properties: { "$span.attempt": true }, ...more });
  const warning = (n, ms) => span("The process of this attempt ended before it could send its last spans and logs: those of its last moments may be missing", ms, { attemptNumber: n, level: "WARN" });
  const endsOf = (children, run) => {
    const root = treeOf(children, run);
    endLostAttempts(root);
    return Object.fromEntries(linesOf(root, new Set(), began + 20_000).lines.filter(({ span: { level, isRun } }) => level === "TRACE" && !isRun).map(({ span: { message }, end }) => [message, end - began]));
  };
  const crashes = [attempt(1, 100, { children: [span("run()", 110)] }), warning(1, 700), attempt(2, 2000), warning(2, 2600)];

  test("end with their process, not with the run", () => {
    assert.deepEqual(endsOf(crashes, { status: "CRASHED" }), { "Attempt 1": 700, "run()": 700, "Attempt 2": 2600 });
  });

  test("end at the start of the next attempt if the gateway has no warning, also while the run executes and after it has completed", () => {
    const open = [attempt(1, 100, { isPartial: true }), attempt(2, 2000, { isPartial: true })];
    assert.deepEqual(endsOf(open, { status: "EXECUTING", finishedAt: undefined }), { "Attempt 1": 2000, "Attempt 2": 20_000 });
    assert.deepEqual(endsOf([attempt(1, 100), attempt(2, 2000, { durationMs: 50 })]), { "Attempt 1": 2000, "Attempt 2": 2050 });
  });

  test("end with the run if there is neither a warning nor a next attempt, and ended spans keep their end", () => {
    assert.deepEqual(endsOf([attempt(1, 100, { durationMs: 5, isError: true }), attempt(2, 2000)], { status: "FAILED" }), { "Attempt 1": 105, "Attempt 2": 10_000 });
    assert.equal(isUnended(treeOf([attempt(1, 100)]).children[0]), false);
  });
});

describe("the time in a queue", () => {
  test("is all of the time of a run that has not started, and that before the start of another one", () => {
    const lineOf = (run) => { const { queued, end, span: { start } } = linesOf(treeOf([], run), new Set(), began + 500).lines[0]; return [queued, start, end].map((at) => at && at - began); };
    assert.deepEqual(lineOf({ status: "QUEUED", finishedAt: undefined }), [0, 0, 500]);
    assert.deepEqual(lineOf({ status: "EXECUTING", finishedAt: undefined, startedAt: time(0) }), [undefined, 0, 500]);
    assert.deepEqual(lineOf({ status: "EXECUTING", finishedAt: undefined, startedAt: time(0), queuedAt: time(-70) }), [-70, 0, 500]);
  });
});

describe("the time axis", () => {
  const labels = (total, width) => ticksOf(total, width).map(roundText);

  test("labels of ticks half a second apart differ", () => {
    assert.deepEqual(labels(2100, 600), ["0", "500 ms", "1 s", "1.5 s", "2 s"]);
    assert.deepEqual(labels(950, 600), ["0", "200 ms", "400 ms", "600 ms", "800 ms"]);
  });

  test("labels have the space that they need at every width and length", () => {
    assert.deepEqual(labels(150_000, 600), ["0", "30 s", "1 min", "1 min 30 s", "2 min"]);
    assert.deepEqual(labels(150_000, 250), ["0", "1 min", "2 min"]);
    assert.deepEqual(labels(12_000, 130), ["0", "5 s"], "a label that would be cut at the end is left out");
    for (let total = 1; total < 1e10; total *= 1.7)
      for (let width = 60; width < 1000; width += 30) {
        const ticks = ticksOf(total, width), apart = ticks[1] / total * width;
        assert.ok(ticks.length > 0 && ticks.length <= 7 && !(apart < 6 * Math.max(...ticks.map((at) => roundText(at).length))), `${total} ms on ${width} px: ${ticks}`);
      }
  });
});

describe("messages about dropped spans and logs", () => {
  test("a count of dropped lines is a minimum, and the limit has the name of its setting", () => {
    const [text] = lossesOf({ limit: 202, memory: 0 }, 10_000);
    assert.match(text, /^At least 202 spans and logs were dropped: the run has 10,000 and has reached its limit \(run-log-rows or run-log-bytes\)\./);
    assert.match(lossesOf({ share: 1 }, 5)[0], /^At least 1 span or log was dropped: .*log-share/);
    assert.deepEqual(lossesOf(undefined, 5), []);
  });
});

describe("the lifecycle of a run", () => {
  test("begins with the trigger, also if queuedAt is a millisecond earlier", () => {
    const run = { status: "COMPLETED", createdAt: time(1), queuedAt: time(0), startedAt: time(40), finishedAt: time(90) };
    assert.deepEqual(stepsOf(run).map(([label, at]) => [label, at - began]), [["Triggered", 1], ["Queued", 1], ["Started", 40], ["Finished", 90]]);
    assert.deepEqual(stepsOf({ status: "DELAYED", createdAt: time(0), queuedAt: null, delayedUntil: time(900) }, began + 5).map(([label]) => label), ["Triggered", "Now", "Delayed until"]);
  });
});

describe("figures of the overview", () => {
  const to = Date.parse("2026-11-29T00:20:00Z"), sample = (secondsAgo, more) => ({ at: new Date(to - secondsAgo * 1000).toISOString(), triggers: 0, ends: { byStatus: {} }, queued: 0, oldestQueuedMs: null, deliveryMs: null, ...more });
  const answer = (samples, more) => ({ samples, intervalMs: 10_000, from: new Date(to - 900_000).toISOString(), to: new Date(to).toISOString(), now: { queued: 0, oldestQueuedMs: null }, before: null, ...more });

  test("a queue that does not change is drawn with its length, and the wait of its oldest run grows", () => {
    const { rows } = rowsOf(answer([], { now: { queued: 82_589, oldestQueuedMs: 3_600_000 } }), 900);
    assert.deepEqual([rows.length, new Set(rows.map(({ queued }) => queued)).size, rows[0].queued], [90, 1, 82_589]);
    assert.deepEqual([rows.at(-1).oldest, rows.at(-2).oldest], [3_600_000, 3_590_000]);
    const moved = rowsOf(answer([sample(600, { queued: 7, oldestQueuedMs: 5000 })], { before: { queued: 3, oldestQueuedMs: 0 } }), 900).rows;
    assert.deepEqual([moved[0].queued, moved[29].queued, moved[30].queued, moved.at(-1).queued, moved.at(-1).oldest], [3, 3, 7, 7, 5000 + 590_000]);
  });

  test("rows end with the last complete step, expired runs are not canceled ones, and the last minute is whole", () => {
    const ends = { byStatus: { EXPIRED: 3, CANCELED: 1, COMPLETED: 2, CRASHED: 1 } }, all = answer([sample(70, { triggers: 9 }), sample(30, { triggers: 4, ends })]);
    const { rows, stepMs } = rowsOf(all, 3600), sum = (name) => rows.reduce((total, row) => total + row[name], 0);
    assert.equal(stepMs, 20_000);
    assert.ok(rows.at(-1).at * 1000 + stepMs <= to);
    assert.deepEqual(["expired", "canceled", "good", "bad", "triggers"].map(sum), [3, 1, 2, 1, 13]);
    assert.equal(lastMinute(all, stepMs).triggers, 4);
  });
});

describe("errors of runs", () => {
  const internal = (code, words = "") => headlineOf({ message: `trigger.dev internal error (${code})${words}` }, "60 s");

  test("internal codes are explained, and other errors keep their own message", () => {
    assert.deepEqual(internal("MAX_DURATION_EXCEEDED"), { code: "MAX_DURATION_EXCEEDED", text: "The run took longer than its maxDuration of 60 s", detail: "", isOutput: false });
    assert.equal(internal("TASK_RUN_STALLED_EXECUTING").text, "The worker of the run stopped responding");
    assert.deepEqual(headlineOf({ name: "TypeError", message: "x (CONSTANT_OF_MINE) is not a function" }), { text: "TypeError: x (CONSTANT_OF_MINE) is not a function" });
  });

  test("an expired run is described by its time limit", () => {
    assert.equal(headlineOf({ name: "Error", message: "Run expired because the TTL (10m) was reached" }).text, "The run expired: no worker started it within 10m");
  });

  test("text next to an internal code is kept: an exit code, a signal, a reason", () => {
    const exit = internal("TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE", ": Process exited with code 7 after signal null.");
    assert.deepEqual([exit.text, exit.detail, exit.isOutput], ["The process of the run exited with an error", "Process exited with code 7.", true]);
    assert.equal(internal("TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE", ": Process exited with code -1 after signal SIGKILL.").detail, "Process exited with code -1 after signal SIGKILL.");
    assert.equal(internal("TASK_RUN_STALLED_EXECUTING", ": the worker has gone").detail, "the worker has gone");
    assert.equal(headlineOf({ message: "TASK_RUN_CRASHED" }).detail, "");
  });

  test("consecutive frames of packages form one group, apart from the user's frames", () => {
    const stack = "Error: no\n    at pay (file:///a/src/pay.ts:3:1)\n    at x (file:///a/node_modules/y/z.js:1:1)\n    at node:internal/process:5:1\n    at run (file:///a/src/run.ts:9:2)";
    assert.deepEqual(framesOf(stack).map(({ isForeign, lines }) => [isForeign, lines.length]), [[false, 1], [true, 2], [false, 1]]);
  });
});
