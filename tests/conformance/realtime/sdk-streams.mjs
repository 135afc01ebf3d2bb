// Conformance of a server's streams, through the unmodified SDK (3.3.17 or 4.8.3): tasks write with it, and other programs
// read with it. A proxy between the SDK and the server can cut connections.
//   TRIGGER_API_URL, TRIGGER_SECRET_KEY, TRIGGER_PROJECT_REF
//   SDK_DIR   directory whose node_modules holds the SDK (default: the current directory)
import { createRequire } from "node:module";
import net from "node:net";

const SERVER = process.env.TRIGGER_API_URL, KEY = process.env.TRIGGER_SECRET_KEY, TASK = process.env.TASK_ID ?? "my-task";
const require = createRequire((process.env.SDK_DIR ?? process.cwd()) + "/x.js");
const V4 = require("@trigger.dev/sdk/package.json").version.startsWith("4.");
const { advanceRun, fetchExecution } = await import("./advance.mjs");

// ---- the proxy ----

let reading; // the connection of the latest request for a stream
let opened = 0; // responses that are event streams
const sockets = new Set(), target = new URL(SERVER);
const proxy = net.createServer((client) => {
  const server = net.connect({ port: target.port, host: target.hostname });
  client.pipe(server).pipe(client);
  client.on("data", (piece) => { if (String(piece).startsWith("GET /realtime/v1/streams/")) reading = { client, server }; });
  server.on("data", (piece) => { if (/^HTTP\/1\.1 200 [^]*text\/event-stream/.test(String(piece))) opened++; });
  for (const socket of [client, server]) { sockets.add(socket); socket.on("error", () => {}).on("close", () => { sockets.delete(socket); client.destroy(); server.destroy(); }); }
});
await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const cutAll = () => { for (const socket of sockets) socket.resetAndDestroy(); };
process.env.TRIGGER_API_URL = `http://127.0.0.1:${proxy.address().port}`;
const API = process.env.TRIGGER_API_URL;

const sdk = require(V4 ? "@trigger.dev/sdk" : "@trigger.dev/sdk/v3"), { auth, runs, tasks } = sdk;
const core = require("@trigger.dev/core/v3"), workers = require("@trigger.dev/core/v3/workers");

// ---- checks ----

let pass = 0, failed = 0;
const ok = (right, what, extra = "") => { right ? pass++ : failed++; console.log(`${right ? "  ok  " : " FAIL "} ${what}${right || extra === "" ? "" : `  -- ${String(extra).slice(0, 400)}`}`); };
const same = (got, expected, what) => ok(JSON.stringify(got) === JSON.stringify(expected), what, JSON.stringify(got));
const check = async (name, run) => { console.log(`# ${name}`); try { await run(); } catch (error) { ok(false, name, error?.stack ?? error); } };
process.on("unhandledRejection", (error) => ok(false, "unhandled rejection", error?.stack ?? error));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(done, what, ms = 60_000) {
  for (const end = Date.now() + ms; !(await done()); await sleep(10)) if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
}
const trigger = async () => { const handle = await tasks.trigger(TASK, { n: 1 }); await advanceRun(handle.id, "EXECUTING"); return handle; };
const finish = (id) => advanceRun(id, "COMPLETED_SUCCESSFULLY", { output: "1" });
async function all(stream, into = []) { for await (const part of stream) into.push(part); return into; }

/** A source of chunks that the test feeds. */
function source() {
  let controller;
  const stream = new ReadableStream({ start(c) { controller = c; } });
  return { stream, push: (...chunks) => chunks.forEach((chunk) => controller.enqueue(chunk)), end: () => controller.close() };
}
const client = () => core.apiClientManager.clientOrThrow();

/** Collects a run and its streams: { runs, parts: { key: [] } }. */
function watchWithStreams(id) {
  const seen = { runs: [], parts: {} };
  const subscription = runs.subscribeToRun(id);
  seen.done = (async () => {
    for await (const part of subscription.withStreams())
      if (part.type === "run") seen.runs.push(part.run);
      else (seen.parts[part.type] ??= []).push(part.chunk);
  })().catch((error) => { seen.error = error; });
  seen.stop = () => subscription.unsubscribe();
  return seen;
}

// ---- 4.8.3 ----

async function checkV4() {
  const { streams } = sdk;
  core.realtimeStreams.setGlobalManager(new workers.StandardRealtimeStreamsManager(client(), API));

  await check("streams.pipe and withStreams", async () => {
    const { id } = await trigger();
    const seen = watchWithStreams(id);
    const from = source();
    const piped = streams.pipe("tokens", from.stream, { target: id });
    from.push({ t: "Hello" }, "wörld 🎉", 3);
    await until(() => seen.parts.tokens?.length === 3, "three chunks through withStreams");
    same(seen.parts.tokens, [{ t: "Hello" }, "wörld 🎉", 3], "chunks arrive unchanged while the pipe is open");
    same(seen.runs.at(-1).realtimeStreams, ["tokens"], "the run lists its stream");
    from.push(null, [1, [2]]);
    from.end();
    await piped.waitUntilComplete();
    await until(() => seen.parts.tokens.length === 5, "all chunks");
    const writer = streams.writer("more", { target: id, execute: ({ write }) => { write("a"); write("b"); } });
    await writer.waitUntilComplete();
    await until(() => seen.parts.more?.length === 2, "a second stream that comes later");
    same(seen.parts.more, ["a", "b"], "its chunks");
    await finish(id);
    await until(() => seen.runs.at(-1).status === "COMPLETED", "the end of the run");
    seen.stop();
  });

  await check("streams.append and streams.read", async () => {
    const { id, publicAccessToken } = await trigger();
    await streams.append("log", "one", { target: id });
    await streams.append("log", "two\nlines", { target: id });
    await streams.append("log", "three", { target: id });
    const got = [], reading = streams.read(id, "log").then((stream) => all(stream, got));
    await until(() => got.length === 3, "three parts");
    same(got, ["one", "two\nlines", "three"], "parts in order");
    const before = opened;
    const later = [], readLater = streams.read(id, "log", { startIndex: 2 }).then((stream) => all(stream, later));
    const latest = [], readLatest = streams.read(id, "log", { from: "latest" }).then((stream) => all(stream, latest));
    const token = [], readToken = auth.withAuth({ baseURL: API, accessToken: publicAccessToken }, () => streams.read(id, "log")).then((stream) => all(stream, token));
    await until(() => later.length === 1 && token.length === 3, "the other readers");
    await until(() => opened === before + 3, "the reader of the latest part has connected, though it has received nothing");
    await streams.append("log", "four", { target: id });
    await until(() => latest.length === 1, "the part after latest");
    const define = streams.define({ id: "log" });
    await define.append({ five: 5 }, { target: id });
    await finish(id);
    await Promise.all([reading, readLater, readLatest, readToken]);
    same(got, ["one", "two\nlines", "three", "four", { five: 5 }], "the reader ends with the run, with everything");
    same([later, latest, token.length], [["three", "four", { five: 5 }], ["four", { five: 5 }], 5], "startIndex, latest, and a public token");
    let refused;
    await streams.append("log", "late", { target: id }).catch((error) => { refused = error; });
    ok(/completed run/.test(refused?.message), "an ended run refuses parts", refused);
  });

  await check("a stream whose beginning was discarded", async () => {
    const { id } = await trigger(), part = "x".repeat(500_000);
    for (let i = 0; i < 12; i++) await streams.append("large", `${i}${part}`, { target: id });
    const got = [];
    let failed;
    await streams.read(id, "large").then((stream) => all(stream, got)).catch((error) => { failed = error; });
    ok(failed?.status === 410, "streams.read fails with the status", failed);
    same(got, [], "and returns no part");
    const rest = [], first = Number(failed?.headers?.["x-stream-first-chunk"]);
    const reading = streams.read(id, "large", { startIndex: first }).then((stream) => all(stream, rest));
    await until(() => rest.length === 12 - first, "the rest");
    ok(rest[0].startsWith(`${first}x`), "startIndex reads the rest", rest[0]?.slice(0, 20));
    await finish(id);
    await reading;
  });

  await check("a reader that is too slow for its stream", async () => {
    const { id } = await trigger(), part = "x".repeat(500_000);
    await streams.append("large", "0", { target: id });
    const stream = await streams.read(id, "large"), reader = stream.getReader(), numbers = [];
    const next = async () => { const { value } = await reader.read(); numbers.push(parseInt(value)); };
    await next();
    const { client: to, server: from } = reading;
    from.unpipe(to);
    for (let i = 1; i < 60; i++) await streams.append("large", `${i}${part}`, { target: id });
    from.pipe(to);
    let failed;
    try { for (;;) await next(); } catch (error) { failed = error; }
    ok(failed?.status === 410, "reading fails with the status", failed);
    same(numbers, numbers.map((_, i) => i), "and the parts that it read have no gap");
    await finish(id);
  });

  await check("cut connections", async () => {
    const { id } = await trigger();
    const from = source(), count = 300, expected = Array.from({ length: count }, (_, n) => ({ n }));
    const got = [], reading = streams.read(id, "long").then((stream) => all(stream, got));
    const piped = streams.pipe("long", from.stream, { target: id });
    for (let n = 0; n < count; n += 100) {
      from.push(...expected.slice(n, n + 50));
      await until(() => got.length >= n + 25, "chunks before the cut");
      cutAll();
      from.push(...expected.slice(n + 50, n + 100));
      await until(() => got.length >= n + 75, "chunks after the cut", 30_000);
    }
    from.end();
    await piped.waitUntilComplete();
    await finish(id);
    await reading;
    same(got, expected, "reader and writer continue, and each chunk arrives once");
  });

  await check("streams.input", async () => {
    const { id, publicAccessToken } = await trigger();
    const inputs = new workers.StandardInputStreamManager(client(), API);
    inputs.setRunId(id, "v2");
    const chat = streams.input({ id: "chat" }), got = [];
    await chat.send(id, { text: "before a listener exists" });
    inputs.on("chat", (data) => got.push(data));
    await until(() => got.length === 1, "the record that was sent before");
    await auth.withAuth({ baseURL: API, accessToken: publicAccessToken }, () => chat.send(id, "5"));
    await until(() => got.length === 2, "the record that was sent with the handle's token");
    same(got, [{ text: "before a listener exists" }, "5"], "values are unchanged");
    cutAll();
    await chat.send(id, [3]);
    await until(() => got.length === 3, "a record after a cut", 30_000);
    same(got[2], [3], "once");
    const once = await inputs.once("other", { timeoutMs: 300 });
    ok(!once.ok, "once times out");
    inputs.reset();
    let refused;
    await auth.withAuth({ baseURL: API, accessToken: (await tasks.trigger(TASK, {})).publicAccessToken }, () => chat.send(id, 1)).catch((error) => { refused = error; });
    ok(refused?.status === 403, "another run's token may not send", refused);
    await finish(id);
  });

  // The SDK as inside a task: with its own runtime, which resolves waitpoints from the worker's polls.
  await check("streams.input(...).wait", async () => {
    const { id } = await trigger();
    const runtime = new workers.SharedRuntimeManager({ send() {} }, false);
    const inputs = new workers.StandardInputStreamManager(client(), API);
    const dated = (waitpoint) => ({ ...waitpoint, completedAt: new Date(waitpoint.completedAt), completedAfter: waitpoint.completedAfter && new Date(waitpoint.completedAfter) });
    inputs.setRunId(id, "v2");
    core.runtime.setGlobalRuntimeManager(runtime);
    core.inputStreams.setGlobalManager(inputs);
    core.taskContext.setGlobalTaskContext({ ctx: { run: { id }, task: {}, attempt: {}, environment: {}, organization: {}, project: {}, queue: {} }, worker: {} });
    let polling = true, snapshot;
    const poll = (async () => {
      for (; polling; await sleep(20)) {
        const execution = await fetchExecution(id);
        if (execution.snapshot.friendlyId !== snapshot && execution.snapshot.executionStatus === "EXECUTING") await runtime.resolveWaitpoints(execution.completedWaitpoints.map(dated));
        snapshot = execution.snapshot.friendlyId;
      }
    })();
    const approval = streams.input({ id: "approval" });
    const blocked = () => until(async () => (await fetchExecution(id)).snapshot.executionStatus === "EXECUTING_WITH_WAITPOINTS", "the run is blocked");
    const first = approval.wait();
    await blocked();
    await approval.send(id, { approved: true, by: "älice" });
    same(await first, { ok: true, output: { approved: true, by: "älice" } }, "the record that comes while the run waits");
    await approval.send(id, "5");
    same(await approval.wait(), { ok: true, output: "5" }, "the record that came before the next wait, unchanged");
    const third = approval.wait({ timeout: "1h", tags: ["a"], idempotencyKey: "third" }).unwrap();
    await blocked();
    await approval.send(id, [3]);
    same(await third, [3], "a third, each once");
    const once = approval.once({ timeoutMs: 10_000 });
    await approval.send(id, "four");
    same(await once, { ok: true, output: "four" }, "reading continues after the records of the waits");
    const timedOut = await approval.wait({ timeout: "1s" });
    ok(!timedOut.ok && /timed out/i.test(timedOut.error?.message), "a wait without a record times out", JSON.stringify(timedOut));
    polling = false;
    await poll;
    core.taskContext.disable();
    core.inputStreams.disable?.();
    inputs.reset();
    await fetchExecution(id);
    await finish(id);
  });
}

// ---- 3.3.17 ----

async function checkV3() {
  await check("metadata.stream and withStreams", async () => {
    const { id } = await trigger();
    const manager = new workers.StandardMetadataManager(client(), API);
    manager.runId = id;
    const seen = watchWithStreams(id);
    const from = source();
    await manager.stream("tokens", from.stream);
    from.push({ t: "Hello" }, "wörld 🎉");
    await until(() => seen.parts.tokens?.length === 2, "two chunks through withStreams");
    same(seen.parts.tokens, [{ t: "Hello" }, "wörld 🎉"], "chunks arrive unchanged while the pipe is open");
    from.push(3);
    from.end();
    await manager.waitForAllStreams();
    await until(() => seen.parts.tokens.length === 3, "the last chunk");
    const again = [];
    await all(await manager.fetchStream("tokens").then((stream) => { void finish(id); return stream; }), again);
    same(again, [{ t: "Hello" }, "wörld 🎉", 3], "a later reader gets all chunks, and ends with the run");
    seen.stop();
  });

  await check("a stream whose beginning was discarded", async () => {
    const { id } = await trigger();
    const manager = new workers.StandardMetadataManager(client(), API), from = source();
    manager.runId = id;
    await manager.stream("large", from.stream);
    for (let i = 0; i < 12; i++) from.push(`${i}${"x".repeat(500_000)}`);
    from.end();
    await manager.waitForAllStreams();
    let failed;
    await manager.fetchStream("large").then((stream) => all(stream)).catch((error) => { failed = error; });
    ok(failed?.status === 410, "reading fails with the status", failed);
    await finish(id);
  });

  await check("metadata.stream of a second attempt", async () => {
    const { id } = await trigger();
    for (const attempt of ["first", "second"]) {
      const manager = new workers.StandardMetadataManager(client(), API), from = source();
      manager.runId = id;
      await manager.stream("tokens", from.stream);
      from.push(attempt, 2);
      from.end();
      await manager.waitForAllStreams();
    }
    const manager = new workers.StandardMetadataManager(client(), API), got = [];
    manager.runId = id;
    await all(await manager.fetchStream("tokens").then((stream) => { void finish(id); return stream; }), got);
    same(got, ["first", 2, "second", 2], "the stream has the chunks of both attempts");
  });

  await check("metadata.parent.stream", async () => {
    const parent = await trigger();
    const child = await client().triggerTask(TASK, { payload: "1", options: { payloadType: "application/json", parentRunId: parent.id } });
    const manager = new workers.StandardMetadataManager(client(), API);
    manager.runId = child.id;
    const seen = watchWithStreams(parent.id);
    const from = source();
    await manager.parent.stream("up", from.stream);
    from.push("to the parent");
    from.end();
    await manager.waitForAllStreams();
    await until(() => seen.parts.up?.length === 1, "the child's chunk at the parent");
    same(seen.parts.up, ["to the parent"], "it is the parent's stream");
    seen.stop();
    await finish(parent.id);
  });
}

await auth.withAuth({ baseURL: API, accessToken: KEY, secretKey: KEY }, V4 ? checkV4 : checkV3);
console.log(`${pass} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
