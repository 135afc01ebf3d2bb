// No environment learns anything about another. Three environments of two projects, with equal tags, keys, tasks,
// queues and batches, use the gateway at random over every transport. Each guesses the ids, tokens and positions of the
// others. Two oracles judge the responses:
//
//   canaries   whatever a side writes contains words of its own, and every id belongs to the side that made it:
//              none of them may ever reach another side, except as the echo of that side's own request
//   nothing    a response about another side's thing is, byte for byte, the response about a thing that does not
//              exist
//
// OPS=1000000 SEED=7 node --test tests/integration/isolation.test.mjs
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, describe, test } from "node:test";

import { keys, sleep, startGateway, until } from "../support/js/gateway.mjs";
import { Pipe } from "../support/js/pipe.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { addSecondProject, otherKeys } from "../support/js/second_project.mjs";
import { runProgram } from "../support/js/program.mjs";
import { publicToken, signJwt } from "../support/js/tokens.mjs";
import { Builder, Deployer } from "../support/js/deployments.mjs";
import { deploymentsOf, leaks, noteGuess, owners, plain, remember, routesWithIds, Side, sides } from "../support/js/trespass.mjs";
import { opcodes, WebSocket } from "../support/js/websocket.mjs";

const operations = Number(process.env.OPS ?? (process.env.TESTS_IN_FULL ? 100_000 : 50_000));
const electric = { "x-trigger-electric-version": "1.0.0-beta.1", "x-trigger-api-version": "2025-07-16" };
const ndjson = { "content-type": "application/x-ndjson" };
let gateway, epoch, routes;

// ---- failures ----

const wrong = [], counts = new Map();
function complain(text) {
  if (wrong.length < 30) wrong.push(text);
}
const count = (kind) => counts.set(kind, (counts.get(kind) ?? 0) + 1);
const total = () => [...counts.values()].reduce((sum, one) => sum + one, 0);

function check(side, kind, sent, text, sees) {
  count(kind);
  const found = leaks(side, sent, text, sees);
  if (found.length) complain(`${kind}: ${side.letter} got ${found.slice(0, 3)} for ${sent.slice(0, 300)}: ${text.slice(0, 600)}`);
}

// ---- one actor: a side, a connection, a sequence of random numbers ----

const tags = Array.from({ length: 60 }, (_, i) => `tag-${i}`);
const tasks = ["task-0", "task-1", "task-2"];
const idempotencyKeys = Array.from({ length: 300 }, (_, i) => `key-${i}`);

/** An unused id of the same form. */
const never = (random, id) => id.slice(0, -8) + Array.from({ length: 8 }, () => "0123456789abcdefghijklmnopqrstuvwxyz"[random.below(36)]).join("");

class Actor {
  constructor(side, pipe, random) { Object.assign(this, { side, pipe, random, others: sides.filter((one) => one !== side) }); }

  async ask(kind, request) {
    const answer = await this.pipe.send(request);
    check(this.side, kind, JSON.stringify(request), `${answer.head}\r\n\r\n${answer.body}`, request.sees);
    if (answer.status >= 500) complain(`${kind}: ${answer.status} ${answer.body}`);
    return answer;
  }

  /** Sends a request about another side's thing and one about nothing: both responses must be the same. */
  async askBoth(kind, id, make) {
    const nothing = never(this.random, id);
    noteGuess(routes, make(id));
    const [theirs, nobodys] = await Promise.all([this.ask(`foreign ${kind}`, make(id)), this.ask(`foreign ${kind}`, make(nothing))]);
    const [left, right] = [plain(`${theirs.head}\n\n${theirs.body}`, id), plain(`${nobodys.head}\n\n${nobodys.body}`, nothing)];
    if (left !== right) complain(`${kind} tells another's ${id} from nothing: ${left} — and of nothing: ${right}`);
  }

  pick(list) { return list.length ? this.random.pick(list) : undefined; }
  other() { return this.random.pick(this.others); }

  async step() {
    const kind = this.random.weighted({ trigger: 8, batch: 1.5, stream: 0.7, change: 5, read: 15, list: 3, poll: 7, foreignRead: 30, foreignWrite: 22, foreignName: 8, token: 6, person: 3, keep: 3, foreignKept: 8, foreignWait: 5, foreignDeployment: 3, deployed: 4, trace: 2, packet: 2, bulk: 0.3 });
    await this[kind]();
  }

  options() {
    const { side, random } = this;
    return {
      tags: [random.pick(tags), side.canary("tag")], metadata: { secret: side.canary("metadata") },
      ...(random.chance(0.5) && { idempotencyKey: random.chance(0.8) ? random.pick(idempotencyKeys) : side.canary("key") }),
      ...(random.chance(0.1) && { queue: { name: side.canary("queue") } }), ...(random.chance(0.2) && { concurrencyKey: side.canary("concurrency") }), ...(random.chance(0.2) && { delay: "1h" }),
    };
  }

  async trigger() {
    const { side, random } = this;
    const task = random.chance(0.95) ? random.pick(tasks) : `canary-${side.letter}-task`;
    const request = { method: "POST", path: `/api/v1/tasks/${task}/trigger`, key: this.pick([side.key, side.admin]), body: { payload: { secret: side.canary("payload") }, options: this.options() },
      headers: random.chance(0.3) ? { "x-trigger-request-idempotency-key": `request-${random.below(400)}` } : {} };
    const { status, body } = await this.ask("trigger", request);
    if (status === 200) remember(side.runs, JSON.parse(body).id);
    else complain(`trigger: ${status} ${body}`);
  }

  async batch() {
    const { side, random } = this;
    const items = Array.from({ length: 1 + random.below(3) }, () => ({ task: random.pick(tasks), payload: { secret: side.canary("item") }, options: this.options() }));
    const { status, body } = await this.ask("batch", { method: "POST", path: `/api/v${1 + random.below(2)}/tasks/batch`, key: side.key, body: { items },
      headers: random.chance(0.3) ? { "idempotency-key": `batch-${random.below(30)}` } : {} });
    if (status !== 202) { complain(`batch: ${status} ${body}`); return; }
    const made = JSON.parse(body);
    remember(side.batches, made.id);
    for (const run of made.runs ?? []) remember(side.runs, run.id);
  }

  async stream() {
    const { side, random } = this;
    const { status, body } = await this.ask("stream", { method: "POST", path: "/api/v3/batches", key: side.key, body: { runCount: 1, ...(random.chance(0.3) && { idempotencyKey: `stream-${random.below(30)}` }) } });
    if (status > 202) { complain(`stream: ${status} ${body}`); return; }
    const { id } = JSON.parse(body);
    remember(side.batches, id);
    await this.ask("stream", { method: "POST", path: `/api/v3/batches/${id}/items`, key: side.key, headers: ndjson,
      body: JSON.stringify({ index: 0, task: random.pick(tasks), payload: side.canary("line"), options: this.options() }) });
  }

  async change() {
    const { side, random } = this, id = this.pick(side.runs);
    if (!id) return;
    const what = random.pick(["cancel", "tags", "metadata", "replay", "reschedule", "reset"]);
    const call = (path, body, method = "POST") => this.ask(what, { method, path, key: side.key, body });
    if (what === "cancel") { side.canceled.add(id); await call(`/api/v2/runs/${id}/cancel`, {}); }
    else if (what === "tags") await call(`/api/v1/runs/${id}/tags`, { tags: [side.canary("added")] });
    else if (what === "metadata") await call(`/api/v1/runs/${id}/metadata`, { metadata: { secret: side.canary("put") } }, "PUT");
    else if (what === "replay") { if (random.chance(0.3)) await call(`/api/v1/runs/${id}/replay`, {}); }
    else if (what === "reschedule") await call(`/api/v1/runs/${id}/reschedule`, { delay: "2h" });
    else await call(`/api/v1/idempotencyKeys/${random.pick(idempotencyKeys)}/reset`, { taskIdentifier: random.pick(tasks) });
  }

  readsOf(run, batch) {
    const all = [`/api/v3/runs/${run}`, `/api/v1/runs/${run}/result`, `/api/v1/runs/${run}/children`, `/api/v1/runs/${run}/metadata`, `/api/v1/runs/${run}/packets/payload`, `/api/v1/runs/${run}/packets/output`,
      `/api/v1/runs/${run}/events`, `/api/v1/runs/${run}/trace`, `/api/v1/runs/${run}/trace?page[size]=2`, `/api/v1/runs/${run}/spans/00f067aa0ba902b7`, `/engine/v1/dev/runs/${run}/snapshots/latest`,
      `/realtime/v1/runs/${run}?offset=-1`, `/realtime/v1/runs/${run}?offset=-1&skipColumns=payload`];
    return batch ? [...all, `/api/v1/batches/${batch}`, `/api/v2/batches/${batch}`, `/api/v1/batches/${batch}/results`, `/realtime/v1/batches/${batch}?offset=-1`] : all;
  }

  async read() {
    const { side, random } = this, run = this.pick(side.runs);
    if (!run) return;
    const path = random.pick(this.readsOf(run, this.pick(side.batches)));
    const { status, body } = await this.ask("read", { method: "GET", path: encodeURI(path), key: side.key, headers: random.chance(0.5) ? electric : {} });
    if (status !== 200 && !/result|packets|spans/.test(path)) complain(`${path}: ${status} ${body}`);
  }

  async list() {
    const { side, random } = this;
    const cursor = Buffer.from(this.pick(this.random.pick(sides).runs) ?? "run_0").toString("base64url");
    const query = random.pick([`filter[tag]=${random.pick(tags)}`, `filter[taskIdentifier]=${random.pick(tasks)}`, "filter[status]=QUEUED,CANCELED", `page[after]=${cursor}`, `page[before]=${cursor}`, ""]);
    if (random.chance(0.2)) {
      const theirs = random.pick(sides), [path, after] = random.pick([["/api/v1/waitpoints/tokens", this.pick(theirs.waitpoints)], ["/api/v1/bulk-actions", this.pick(theirs.bulks)]]);
      await this.ask("list", { method: "GET", path: encodeURI(`${path}?page[size]=10${after ? `&page[${random.pick(["after", "before"])}]=${after}` : ""}`), key: side.key });
      return;
    }
    await this.ask("list", { method: "GET", path: encodeURI(`/api/v1/runs?page[size]=${1 + random.below(10)}&${query}`), key: random.pick([side.key, side.admin]) });
  }

  /** A position of this side or another, or one that was never handed out. */
  position() {
    const { random } = this, from = this.pick(random.pick(sides).positions);
    if (from && random.chance(0.8)) return from;
    const seen = random.below(5000);
    return { offset: `${seen}_${random.below(seen + 1)}`, handle: `${epoch}-${random.pick(["t", "r", "b"])}-${random.below(2) * 1e12}` };
  }

  async poll() {
    const { side, random } = this;
    const position = random.chance(0.3) ? { offset: "-1" } : this.position();
    const things = [`/realtime/v1/runs?tags=${random.pick(tags)}`, `/realtime/v1/runs?tags=${random.pick(tags)}&createdAt=1m`, `/realtime/v1/runs/${this.pick(side.runs) ?? "run_0"}?`, `/realtime/v1/batches/${this.pick(side.batches) ?? "batch_0"}?`];
    const { head } = await this.ask("poll", { method: "GET", path: `${random.pick(things)}&${new URLSearchParams(position)}`, key: random.pick([side.key, side.admin, side.reader]), headers: electric });
    const offset = /electric-offset: (\S+)/.exec(head)?.[1], handle = /electric-handle: (\S+)/.exec(head)?.[1];
    if (offset && handle) remember(side.positions, { offset, handle });
  }

  async foreignRead() {
    const { side, random } = this, other = this.other(), run = this.pick(other.runs), batch = this.pick(other.batches);
    if (!run || !batch) return;
    const paths = this.readsOf("<run>", "<batch>"), path = random.pick(paths), id = path.includes("<run>") ? run : batch;
    const key = random.pick([side.key, side.key, side.admin, side.reader, undefined]);
    const position = path.startsWith("/realtime") && random.chance(0.5) ? `&${new URLSearchParams(this.position())}` : "";
    await this.askBoth(`GET ${path.split("?")[0]}`, id, (one) => ({ method: "GET", path: encodeURI(path.replace(/<\w+>/, one)) + position, key: key ?? tokenFor(side, one), headers: electric }));
  }

  async foreignWrite() {
    const { side, random } = this, other = this.other(), run = this.pick(other.runs), batch = this.pick(other.batches);
    if (!run || !batch) return;
    const snapshot = this.pick(other.snapshots) ?? "snapshot_1", mark = side.canary("trespass"), task = random.pick(tasks);
    const engine = (one, what) => `/engine/v1/dev/runs/${one}/snapshots/${snapshot}/${what}`;
    const writes = {
      cancel: (one) => ["POST", `/api/v2/runs/${one}/cancel`, {}], replay: (one) => ["POST", `/api/v1/runs/${one}/replay`, {}],
      tags: (one) => ["POST", `/api/v1/runs/${one}/tags`, { tags: [mark] }], metadata: (one) => ["PUT", `/api/v1/runs/${one}/metadata`, { metadata: { mark } }],
      reschedule: (one) => ["POST", `/api/v1/runs/${one}/reschedule`, { delay: "3h" }],
      parent: (one) => ["POST", `/api/v1/tasks/${task}/trigger`, { options: { parentRunId: one } }],
      "batch parent": (one) => ["POST", "/api/v1/tasks/batch", { items: [{ task }], parentRunId: one }],
      start: (one) => ["POST", engine(one, "attempts/start"), {}], heartbeat: (one) => ["POST", engine(one, "heartbeat"), {}],
      complete: (one) => ["POST", engine(one, "attempts/complete"), { completion: { ok: true, id: one, output: JSON.stringify(mark), outputType: "application/json" } }],
      wait: (one) => ["POST", `/engine/v1/runs/${one}/wait/duration`, { date: "2040-01-01T00:00:00Z" }],
      debug: (one) => ["POST", `/engine/v1/dev/runs/${one}/logs/debug`, { message: mark }],
      disconnect: (one) => ["POST", "/engine/v1/dev/disconnect", { runFriendlyIds: [one] }],
      stream: (one) => ["PUT", `/realtime/v1/streams/${one}/self/part`], chunks: (one) => ["POST", `/realtime/v1/streams/${one}/self/part`, { data: mark }],
      append: (one) => ["POST", `/realtime/v1/streams/${one}/self/part/append`, { data: mark }], probe: (one) => ["HEAD", `/realtime/v1/streams/${one}/self/part`],
      events: (one) => ["GET", `/realtime/v1/events?run=${one}`], "input wait": (one) => ["POST", `/api/v1/runs/${one}/input-streams/wait`, { streamId: "part" }], input: (one) => ["POST", `/realtime/v1/streams/${one}/input/part`, { data: mark }],
      "stream reader": (one) => ["GET", `/realtime/v1/streams/${one}/part`], "input reader": (one) => ["GET", `/realtime/v1/streams/${one}/input/part`],
    };
    const name = random.chance(0.12) ? "items" : random.pick(Object.keys(writes));
    if (name === "items")
      return this.askBoth("items", batch, (one) => ({ method: "POST", path: `/api/v3/batches/${one}/items`, key: side.key, headers: ndjson, body: JSON.stringify({ index: 0, task, payload: mark }) }));
    const key = ["cancel", "parent"].includes(name) ? random.pick([side.key, side.admin]) : side.key;
    return this.askBoth(name, run, (one) => { const [method, path, body] = writes[name](one); return { method, path, key, body, headers: { "timeout-seconds": "1" } }; });
  }

  /** Names that others use: a tag, a key, a batch as a filter. */
  async foreignName() {
    const { side, random } = this, other = this.other(), word = this.pick(other.canaries), batch = this.pick(other.batches), worker = this.pick(other.workers), run = this.pick(other.runs);
    if (!word || !batch || !run) return;
    const task = random.pick(tasks);
    const asks = [
      [word, (one) => ({ path: `/api/v1/runs?filter[tag]=${one}` })], [word, (one) => ({ path: `/api/v1/runs?filter[taskIdentifier]=${one}` })],
      [batch, (one) => ({ path: `/api/v1/runs?filter[batch]=${one}` })], [word, (one) => ({ path: `/realtime/v1/runs?offset=-1&tags=${one}` })],
      [run, (one) => ({ path: `/projects/v3/${other.ref}/runs/${one}` })], [run, (one) => ({ path: `/orgs/${one}` })], [run, (one) => ({ path: `/runs/${one}` })],
      [word, (one) => ({ path: `/api/v1/queues/${one}?type=custom` })], [word, (one) => ({ path: `/api/v1/queues/${one}/usage?type=custom` })], [word, (one) => ({ path: `/api/v1/queues/task%2F${one}?type=task` })],
      [word, (one) => ({ method: "POST", path: `/api/v1/idempotencyKeys/${one}/reset`, body: { taskIdentifier: task } })],
      [other.sub, (one) => ({ path: `/packets/v1/${one}/trigger/packet_1/payload.json?expires=9999999999&signature=${"A".repeat(43)}` })],
      [other.ref === side.ref ? "proj_aaaaaaaaaaaaaaaaaaaa" : other.ref, (one) => ({ path: `/api/v1/projects/${one}/envvars` })],
      [other.sub, (one) => ({ method: "PUT", path: `/packets/v1/${one}/trigger/packet_1/payload.json?expires=9999999999&signature=${"A".repeat(43)}`, body: word })],
      ...["traces", "logs", "metrics"].map((kind) => [other.sub, (one) => ({ method: "POST", path: `/otel/${one}/${"A".repeat(43)}/v1/${kind}`, body: {} })]),
      [word, (one) => ({ path: `/api/v1/waitpoints/tokens?filter[tags]=${one}` })], [word, (one) => ({ path: `/api/v1/waitpoints/tokens?filter[idempotencyKey]=${one}` })],
      ...(other.ref === side.ref ? [] : [[other.ref, (one) => ({ method: "POST", path: `/api/v1/projects/${one}/background-workers`, body: { localOnly: true, metadata: {} } })]]),
      ...(worker ? [[worker, (one) => ({ path: `/api/v1/runs?filter[version]=${one}` })]] : []),
    ];
    const [id, make] = random.pick(asks);
    await this.askBoth("a name", id, (one) => { const request = make(one); return { method: "GET", key: side.key, ...request, path: encodeURI(request.path).replace("%252F", "%2F") }; });
  }

  /** Things that are kept along with runs: variables, schedules, queues. */
  async keep() {
    const { side, random } = this, variables = `/api/v1/projects/${side.ref}/envvars/${side.slug}`;
    const call = (method, path, body) => this.ask("keep", { method, path, key: side.key, body });
    const what = random.pick(["variable", "variables", "schedule", "schedules", "queues", "limit", "stream", "stream"]), run = this.pick(side.runs);
    if (what === "stream" && run) {
      await call("POST", `/realtime/v1/streams/${run}/${random.pick(["self/part/append", "self/part", "input/part"])}`, { data: side.canary("chunk") });
      return;
    }
    if (what === "variable") await call("POST", variables, { name: `SECRET_${random.below(20)}`, value: side.canary("value"), isSecret: random.chance(0.2) });
    else if (what === "variables") await call("GET", random.pick([variables, `${variables}/SECRET_${random.below(20)}`, `/api/v1/projects/${side.ref}/envvars`]));
    else if (what === "schedule" && side.schedules.length < 60) {
      const { status, body } = await call("POST", "/api/v1/schedules", { task: "nightly", cron: "0 0 1 1 *", deduplicationKey: side.canary("dedup"), externalId: side.canary("external") });
      if (status === 200) side.schedules.push(JSON.parse(body).id);
    } else if (what === "queues") {
      const { body } = await call("GET", `/api/v1/queues?perPage=100&page=${1 + random.below(3)}`);
      for (const { id, name } of JSON.parse(body).data) // an id is derived from the name, so equal names have equal ids
        if (name.startsWith("canary") && side.queues.length < 200 && !side.queues.includes(id)) side.queues.push(id);
    } else if (what === "limit" && side.queues.length) await call("POST", `/api/v1/queues/${random.pick(side.queues)}/concurrency/override`, { type: "id", concurrencyLimit: 1 + random.below(9) });
    else await call("GET", "/api/v1/schedules?perPage=100");
  }

  async foreignKept() {
    const { side, random } = this, other = this.other(), schedule = this.pick(other.schedules), queue = this.pick(other.queues), bulk = this.pick(other.bulks), word = this.pick(other.canaries);
    const wish = { task: "nightly", cron: "1 1 1 1 *", externalId: side.canary("trespass") };
    const asks = [
      ...(schedule ? [["GET", ""], ["PUT", "", wish], ["DELETE", ""], ["POST", "/activate"], ["POST", "/deactivate"]].map(([method, rest, body]) => [schedule, (one) => ({ method, path: `/api/v1/schedules/${one}${rest}`, body })]) : []),
      ...(word ? ["GET", "DELETE"].map((method) => [word, (one) => ({ method, path: `/api/v1/schedules/${one}` })]) : []),
      ...(queue ? [["GET", "?type=id"], ["POST", "/pause", { type: "id", action: "pause" }], ["POST", "/concurrency/override", { type: "id", concurrencyLimit: 0 }], ["POST", "/concurrency/reset", { type: "id" }], ["POST", "/singleton", { type: "id", strategy: "skip" }], ["POST", "/rate", { type: "id", total: { starts: 1, period: "1d" } }]]
        .map(([method, rest, body]) => [queue, (one) => ({ method, path: `/api/v1/queues/${one}${rest}`, body })]) : []),
      ...(word ? [["GET", ""], ["GET", "?concurrencyKey=k"], ["GET", "/usage"], ["POST", "/override", { total: 0 }], ["POST", "/override", { concurrencyKey: "k", perKey: 0 }], ["POST", "/reset", {}], ["POST", "/pause", { action: "pause" }], ["POST", "/rate", { total: { starts: 1, period: "1d" } }]]
        .map(([method, rest, body]) => [word, (one) => ({ method, path: `/api/v1/concurrency-limits/${one}${rest}`, body })]) : []),
      ...(word ? [[word, (one) => ({ method: "POST", path: `/api/v1/queues/${one}/pause`, body: { type: "custom", action: "pause" } })]] : []),
      ...(bulk ? [["GET", ""], ["POST", "/abort"]].map(([method, rest]) => [bulk, (one) => ({ method, path: `/api/v1/bulk-actions/${one}${rest}` })]) : []),
      ...(other.ref === side.ref ? [] : [["GET", ""], ["GET", "/SECRET_1"], ["POST", "", { name: "SECRET_1", value: "x" }], ["PUT", "/SECRET_1", { value: "x" }], ["POST", "/SECRET_1", { value: "x" }], ["POST", "/import", { variables: { SECRET_1: "x" } }], ["DELETE", "/SECRET_1"]].flatMap(([method, rest, body]) =>
        [side.key, side.pat].map((key) => [other.ref, (one) => ({ method, path: `/api/v1/projects/${one}/envvars/${other.slug}${rest}`, body, key })]))),
    ];
    if (!asks.length) return;
    const [id, make] = random.pick(asks);
    await this.askBoth("what is kept", id, (one) => ({ key: side.key, ...make(one) }));
  }

  /** Tokens that runs wait for: its own, and those of other sides. */
  async foreignWait() {
    const { side, random } = this, other = this.other(), theirs = this.pick(other.waitpoints), mine = this.pick(side.waitpoints), run = this.pick(side.runs), foreign = this.pick(other.runs);
    if (!mine || random.chance(0.15)) {
      const { status, body } = await this.ask("waitpoint", { method: "POST", path: "/api/v1/waitpoints/tokens", key: side.key,
        body: { tags: [side.canary("awaited")], timeout: "1h", ...(random.chance(0.5) && { idempotencyKey: random.pick(idempotencyKeys) }) } });
      if (status === 200) remember(side.waitpoints, JSON.parse(body).id);
      else complain(`waitpoint: ${status} ${body}`);
      return;
    }
    const tokens = "/api/v1/waitpoints/tokens", data = { data: side.canary("completion") };
    if (random.chance(0.1)) await this.ask("waitpoint", { method: "POST", path: `${tokens}/${mine}/complete`, key: side.key, body: data });
    if (random.chance(0.1)) await this.ask("waitpoint", { method: "GET", path: `${tokens}/${mine}`, key: side.key });
    const asks = [
      ...(theirs ? [[theirs, (one) => ({ method: "GET", path: `${tokens}/${one}` })], [theirs, (one) => ({ method: "POST", path: `${tokens}/${one}/complete`, body: data })],
        [theirs, (one) => ({ method: "POST", path: `${tokens}/${one}/callback/${side.sub}/${"A".repeat(43)}`, body: data, key: undefined })],
        [theirs, (one) => ({ method: "POST", path: `/engine/v1/runs/${run}/waitpoints/tokens/${one}/wait`, body: {} })]] : []),
      ...(foreign ? [[foreign, (one) => ({ method: "POST", path: `/engine/v1/runs/${one}/waitpoints/tokens/${mine}/wait`, body: {} })]] : []),
    ];
    if (!asks.length || !run) return;
    const [id, make] = random.pick(asks);
    await this.askBoth("what is waited for", id, (one) => ({ key: side.key, ...make(one) }));
  }

  /** A worker token of the project, used for runs that it does not serve: those of dev, and of other projects. */
  async deployed() {
    const { side, random } = this, other = this.other(), run = this.pick(other.runs);
    if (!side.workerToken || !run) return;
    const path = (one, rest) => `/engine/v1/worker-actions/runs/${one}/${rest}`, snapshot = this.pick(other.snapshots) ?? "snapshot_1", mark = side.canary("trespass");
    const [method, rest, body] = random.pick([["GET", "snapshots/latest"], ["GET", `snapshots/since/${snapshot}`], ["POST", `snapshots/${snapshot}/attempts/start`, {}],
      ["POST", `snapshots/${snapshot}/attempts/complete`, { completion: { ok: true, id: run, output: JSON.stringify(mark), outputType: "application/json" } }], ["POST", `snapshots/${snapshot}/heartbeat`, {}],
      ["POST", `snapshots/${snapshot}/release`, { reason: mark }], ["POST", `snapshots/${snapshot}/suspend`, { success: true, checkpoint: { type: "DOCKER", location: mark } }],
      ["GET", `snapshots/${snapshot}/continue`], ["POST", `snapshots/${snapshot}/restore-outcome`, {}], ["POST", "logs/debug", { message: mark }]]);
    await this.askBoth("a deployed worker's run", run, (one) => ({ method, path: path(one, rest), key: side.workerToken, body: body && JSON.parse(JSON.stringify(body).replaceAll(run, one)) }));
  }

  /** The deployments of prod, requested from the other sides, and unknown ones, requested from everywhere. */
  async foreignDeployment() {
    const { side, random } = this;
    const [asked, make] = random.pick(deploymentsOf(this.other(), side, { id: never(random, sides[1].deployment.id), mark: side.canary("trespass") }));
    await this.askBoth("a deployment", asked, (one) => ({ method: "GET", key: side.key, ...make(one) }));
  }

  /** Spans sent to its own signed address, for its own runs and for those of others. */
  async trace() {
    const { side, random } = this, address = this.pick(side.telemetry), about = random.pick(sides), run = this.pick(about.runs);
    if (!address || !run) return;
    const now = `${Date.now()}000000`, attributes = [{ key: "$metadata.ctx.run.id", value: { stringValue: run } }];
    const span = { traceId: "5".repeat(32), spanId: random.below(1e9).toString(16).padStart(16, "0"), name: side.canary("span"), kind: 1, startTimeUnixNano: now, endTimeUnixNano: now, attributes };
    await this.ask("trace", { method: "POST", path: `${address}/v1/traces`, headers: { "content-type": "application/json" },
      body: { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ scope: { name: "t" }, spans: [span] }] }] } });
  }

  /** Equal names of packets, where each side has its own content. */
  async packet() {
    const { side, random } = this, name = `equal/${random.below(40)}.json`, version = 1 + random.below(2), write = random.chance(0.3);
    const request = { method: write ? "PUT" : "GET", path: `/api/v${write ? version : 1}/packets/${name}`, key: side.key };
    noteGuess(routes, request);
    const { presignedUrl } = JSON.parse((await this.ask("packet", request)).body);
    const { pathname, search } = new URL(presignedUrl);
    await this.ask("packet", write ? { method: "PUT", path: pathname + search, body: JSON.stringify(side.canary("packet")) } : { method: "GET", path: pathname + search });
    const foreign = pathname.replace(side.sub, this.other().sub); // with the signature for its own packet
    await this.askBoth("a packet", this.other().sub, (one) => ({ method: "GET", path: foreign.replace(/env_\w+/, one) + search }));
  }

  /** Bulk actions: runs of another side count like runs that do not exist. */
  async bulk() {
    const { side, random } = this, theirs = [...new Set([this.pick(this.other().runs), this.pick(this.other().runs)])].filter(Boolean);
    const outcome = async (runIds) => {
      const made = await this.ask("bulk", { method: "POST", path: "/api/v1/bulk-actions", key: side.key, body: { action: "cancel", runIds, name: side.canary("bulk") } });
      if (made.status !== 202) return plain(`${made.head} ${made.body}`, "\0");
      const { id } = JSON.parse(made.body);
      remember(side.bulks, id);
      for (;;) {
        const { body } = await this.ask("bulk", { method: "GET", path: `/api/v1/bulk-actions/${id}`, key: side.key });
        const { status, counts } = JSON.parse(body);
        if (status !== "PENDING") return JSON.stringify({ status, counts });
        await sleep(5); // retries
      }
    };
    if (!theirs.length) return;
    const [left, right] = [await outcome(theirs), await outcome(theirs.map((id) => never(random, id)))];
    if (left !== right) complain(`bulk tells others' ${theirs} from nothing: ${left}, ${right}`);
  }

  /** Tokens that name the environment of another side or of nothing, signed with its own key. */
  async token() {
    const { side, random } = this, other = this.other(), run = this.pick(other.runs) ?? "run_0";
    const now = Math.floor(Date.now() / 1000);
    const claims = (sub) => ({ sub, pub: true, iss: "https://id.trigger.dev", aud: "https://api.trigger.dev", iat: now, exp: now + 60, scopes: ["admin"] });
    const path = random.pick([`/api/v3/runs/${run}`, "/api/v1/runs", `/realtime/v1/runs/${run}?offset=-1`, "/realtime/v1/events?all=1", `/realtime/v1/ws`]);
    await this.askBoth("a token for", other.sub, (one) => ({ method: "GET", path, key: signJwt(side.key, claims(one)), headers: { connection: "keep-alive" } }));
  }

  /** The key of another organization, in its own project and in ours. */
  async key(stranger, sees) {
    const { side, random } = this, id = random.pick(stranger.keyIds), [method, rest] = random.pick([["POST", "/reveal"], ["POST", "/rotate"], ["DELETE", ""]]);
    const ask = (ref, one) => ({ method, path: `/api/v1/projects/${ref}/dev/keys/${one}${rest}`, key: side.pat, sees, body: method === "POST" ? {} : undefined });
    await this.askBoth("a key", id, (one) => ask(side.ref, one));
    await this.askBoth("a project", stranger.ref, (one) => ask(one, id));
  }

  /** A personal token reaches the projects of its organization, and must not learn about others. */
  async person() {
    const { side, random } = this, stranger = sides.find((one) => one.pat !== side.pat);
    const sees = sides.filter((one) => one.pat === side.pat).map((one) => one.letter).join("");
    const path = random.pick(["/runs?page[size]=5", `/runs?page[size]=5&filter[tag]=${random.pick(tags)}`, "/dev", "/prod", "/staging", "/preview", "", "/branches", "/dev/keys", "+dev/keys", "key", "token", "/dev-status", "rename", "make", "+branches", "+branches/archive", "organization"]);
    if (path.startsWith("/runs")) await this.ask("person", { method: "GET", path: encodeURI(`/api/v1/projects/${side.ref}${path}`), key: side.pat, sees });
    if (path === "rename") return await this.askBoth("a project", stranger.ref, (one) => ({ method: "PATCH", path: `/api/v1/projects/${one}`, key: side.pat, sees, body: { name: "trespass" } }));
    if (path === "make") return await this.askBoth("an organization", stranger.organization, (one) => ({ method: "POST", path: `/api/v1/orgs/${one}/projects`, key: side.pat, sees, body: { name: "trespass" } }));
    if (path === "organization") return await this.askBoth("an organization", stranger.organization, (one) => ({ method: "GET", path: `/api/v1/orgs/${one}/projects`, key: side.pat, sees }));
    if (path === "key") return await this.key(stranger, sees);
    if (path === "token") return await this.askBoth("a token", stranger.patId, (one) => ({ method: "DELETE", path: `/api/v1/tokens/${one}`, key: side.pat, sees }));
    if (path === "+dev/keys") return await this.askBoth("a project", stranger.ref, (one) => ({ method: "POST", path: `/api/v1/projects/${one}/dev/keys`, key: side.pat, sees, body: { name: "trespass" } }));
    if (path.startsWith("+")) {
      const body = { branch: `canary-${side.letter}-trespass`, env: "preview" };
      await this.askBoth("a project", stranger.ref, (one) => ({ method: "POST", path: `/api/v1/projects/${one}/${path.slice(1)}`, key: side.pat, sees, body }));
      return;
    }
    await this.askBoth("a project", stranger.ref, (one) => ({ method: "GET", path: encodeURI(`/api/v1/projects/${one}${path}`), key: side.pat, sees }));
  }
}

/** A token of the side itself whose scope names this id. */
function tokenFor(side, id) {
  const now = Math.floor(Date.now() / 1000), type = id.startsWith("run") ? "runs" : "batch";
  return signJwt(side.key, { sub: side.sub, pub: true, iss: "https://id.trigger.dev", aud: "https://api.trigger.dev", iat: now, exp: now + 60, scopes: [`read:${type}:${id}`, "read:tasks:none"] });
}

// ---- workers ----

async function work(side, pipe, over) {
  const metadata = { packageVersion: "4.8.3", contentHash: "equal", queues: [], tasks: [...tasks, `canary-${side.letter}-task`, "nightly"].map((id) => ({ id, filePath: "src/tasks.ts", ...(id === "nightly" && { triggerSource: "schedule" }) })) };
  const call = async (path, body) => {
    const request = { method: "POST", path, key: side.key, body };
    const answer = await pipe.send(request);
    check(side, "worker", JSON.stringify(request), `${answer.head}\r\n\r\n${answer.body}`);
    return { ...answer, json: JSON.parse(answer.body) };
  };
  const { json: { id } } = await call(`/api/v1/projects/${side.ref}/background-workers`, { localOnly: true, engine: "V2", metadata });
  side.workers.push(id);
  for (let n = 0; !over(); n++) {
    const currentWorker = n % 3 ? id : sides[n % sides.length].workers[0] ?? id; // sometimes the worker of another side
    const { json: { dequeuedMessages: [message] } } = await call("/engine/v1/dev/dequeue", { currentWorker, oldWorkers: [] });
    if (!message) { await new Promise((resolve) => setTimeout(resolve, 20)); continue; } // retries
    const { run: { friendlyId: run }, snapshot } = message;
    const at = (what) => `/engine/v1/dev/runs/${run}/snapshots/${what}`;
    const { json } = await call(`${at(snapshot.friendlyId)}/attempts/start`, { isWarmStart: true });
    if (!json.snapshot) continue;
    remember(side.snapshots, json.snapshot.friendlyId);
    remember(side.telemetry, new URL(json.envVars.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname);
    const completion = n % 2 ? { ok: true, id: run, output: JSON.stringify(side.canary("output")), outputType: "application/json" }
      : { ok: false, id: run, error: { type: "BUILT_IN_ERROR", name: side.canary("error"), message: side.canary("error"), stackTrace: side.canary("stack") } };
    await call(`${at(json.snapshot.friendlyId)}/attempts/complete`, { completion });
  }
}

// ---- subscribers ----

/** Held polls, from positions of any side. */
async function wait(side, port, random, over) {
  const actor = new Actor(side, null, random);
  while (!over()) {
    const pipe = await Pipe.open(port);
    const request = { method: "GET", path: `/realtime/v1/runs?tags=${random.pick(tags)}&live=true&cursor=1&${new URLSearchParams(actor.position())}`, key: side.key, headers: electric };
    const late = new Promise((resolve) => setTimeout(resolve, 300)); // what arrives until then is checked
    const answer = await Promise.race([pipe.send(request), late]);
    pipe.close();
    check(side, "held poll", JSON.stringify(request), answer ? `${answer.head}\r\n\r\n${answer.body}` : "");
  }
}

/** Event streams, resumed from positions of any side; each is read for a moment. */
async function listen(side, port, random, over) {
  while (!over()) {
    const other = random.pick(sides), from = random.pick([...other.positions.slice(-50), undefined]);
    const seen = Number(from?.offset.split("_")[0] ?? random.below(3000));
    const filter = random.pick([`tags=${random.pick(tags)}`, `tags=${random.pick(other.canaries)}`, `run=${random.pick(random.pick([side, other]).runs) ?? "run_0"}`, `batch=${random.pick(random.pick([side, other]).batches) ?? "batch_0"}`, `all=1&since=1s`]);
    const run = random.pick(random.pick([side, side, other]).runs) ?? "run_0";
    const target = random.pick([`/realtime/v1/events?${filter}`, `/realtime/v1/events?${filter}`, `/realtime/v1/streams/${run}/part`, `/realtime/v1/streams/${run}/input/part`]);
    const text = `GET ${target} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${side.key}\r\nlast-event-id: ${target.includes("events") ? `${epoch}.${seen}.${random.below(seen + 1)}` : `${Date.now() - random.below(5000)}-${random.below(3)}`}\r\n\r\n`;
    const socket = net.connect({ port, host: "127.0.0.1" });
    let got = "";
    socket.setEncoding("latin1").on("data", (part) => { got += part; }).on("error", () => {}).write(text);
    const began = Date.now();
    await until(() => (got.split("\n\n").length > 4 && Date.now() - began > 20) || Date.now() - began > 60 || / 40\d /.test(got.slice(0, 14)), { everyMs: 5 });
    socket.destroy();
    check(side, "event stream", text, got);
  }
}

const message = (text) => plain(text, "\0").replace(/"id":\d+/, '"id":0');

/** A socket that subscribes to other sides' things, to things that do not exist, and to its own. */
async function talk(side, port, random, over) {
  while (!over()) {
    const key = random.pick([side.key, side.admin, side.reader, side.narrow]);
    const ws = await WebSocket.open({ port, target: "/realtime/v1/ws", headers: { "sec-websocket-protocol": "runs.v1.json", authorization: `Bearer ${key}` } });
    const answers = new Map();
    let id = 0, sent = "", wake = () => {};
    ws.listen((bytes) => {
      const text = bytes.toString("latin1"), [, , about] = /^\{"op":"(ok|error|rows|end)","id":(\d+)/.exec(text) ?? [];
      check(side, "socket", sent, text);
      if (about === undefined) return;
      answers.set(Number(about), [...(answers.get(Number(about)) ?? []), text]);
      wake();
    });
    const say = (filter) => {
      const text = JSON.stringify({ op: "sub", id: ++id, ...filter });
      sent += text;
      ws.send(opcodes.text, text);
      count("socket");
      return id;
    };
    const answered = async (which) => {
      const done = () => ws.isClosed || (answers.get(which) ?? []).some((text) => /^\{"op":"error"/.test(text) || (/^\{"op":"rows"/.test(text) && !/"more":true/.test(text)));
      while (!done()) await new Promise((resolve) => { wake = resolve; ws.onClosed = resolve; });
      return (answers.get(which) ?? []).map(message).join("\n");
    };
    for (let n = 0; n < 40 && !over() && !ws.isClosed; n++) {
      const other = random.pick(sides.filter((one) => one !== side)), run = random.pick(other.runs), batch = random.pick(other.batches), word = random.pick(other.canaries);
      const seen = random.below(5000), from = random.chance(0.5) ? { from: [epoch, seen, random.below(seen + 1)] } : {};
      const foreign = random.pick([[run, (one) => ({ run: one })], [batch, (one) => ({ batch: one })], [word, (one) => ({ tags: [one] })], [word, (one) => ({ tags: [one], limit: 3 })]]);
      if (foreign[0]) {
        const nothing = never(random, foreign[0]);
        const asked = [nothing, foreign[0], nothing].map((one) => say({ ...foreign[1](one), ...from }));
        const [before, theirs, later] = [await answered(asked[0]), await answered(asked[1]), await answered(asked[2])];
        const told = plain(theirs, foreign[0]), nobodys = [before, later].map((one) => plain(one, nothing));
        // A position that is still to come is passed by other changes between two of the three.
        if (!nobodys.includes(told) && !ws.isClosed) complain(`a socket tells another's ${foreign[0]} from nothing: ${told} — and of nothing: ${nobodys.join(" and ")}`);
        for (const one of asked) ws.send(opcodes.text, JSON.stringify({ op: "unsub", id: one }));
      }
      await sleep(4); // so that the others come between
      await answered(say(random.pick([{ tags: [random.pick(tags)], limit: 5 }, { run: random.pick(side.runs) ?? "run_0" }, { tags: [random.pick(tags)], since: "1m", ...from }])));
    }
    await ws.cut();
  }
}

// ---- the test ----

before(async () => {
  gateway = await startGateway({ release: true });
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart();
  sides.push(new Side("A", keys.dev, keys.ref, "dev"), new Side("B", keys.prod, keys.ref, "prod"), new Side("C", otherKeys.dev, otherKeys.ref, "dev"));
  for (const side of sides) {
    side.pat = side.letter === "C" ? otherKeys.pat : keys.pat;
    side.sub = (await gateway.post("/api/v1/auth/jwt/claims", undefined, { key: side.key })).json.sub;
    owners.set(side.sub, side.letter);
    side.admin = await publicToken(gateway, { key: side.key, scopes: ["admin"], expiresInS: 86400 });
    side.reader = await publicToken(gateway, { key: side.key, scopes: ["read:runs"], expiresInS: 86400 });
    side.narrow = await publicToken(gateway, { key: side.key, scopes: ["read:tags:tag-1", "read:tasks:task-1"], expiresInS: 86400 });
    side.organization = (await gateway.get("/api/v1/orgs", { key: side.pat })).json[0].id;
    side.patId = (await gateway.get("/api/v1/tokens", { key: side.pat })).json.data.find(({ isThis }) => isThis).id;
    side.keyIds = (await Promise.all(["dev", "staging", "prod"].map(async (env) => (await gateway.get(`/api/v1/projects/${side.ref}/${env}/keys`, { key: side.pat })).json.data ?? []))).flat().map(({ id }) => id);
    side.runs.push((await gateway.post("/api/v1/tasks/task-0/trigger", {}, { key: side.key })).json.id);
    owners.set(side.runs[0], side.letter);
  }
  routes = routesWithIds((await gateway.get("/openapi.json", { key: null })).json);
  sides[1].workerToken = (await runProgram(["worker-token", "create", "--data", gateway.data, "--project", keys.ref])).stdout.trim();
  const builder = await Builder.start(gateway, "--project", keys.ref), answer = new Deployer(gateway).deploy({ skipPromotion: true });
  await builder.build(["task-0"]);
  owners.set((sides[1].deployment = (await answer).json).id, "B");
  const first = await gateway.get(`/realtime/v1/runs/${sides[0].runs[0]}?offset=-1`, { key: keys.dev, headers: electric });
  [epoch] = first.headers["electric-handle"].split("-");
});
after(() => gateway.stop());

describe("the oracles", () => {
  test("find a word, an id, a key or a token of another side", () => {
    const [a, b] = sides;
    const token = signJwt(b.key, { scopes: [`read:runs:${b.runs[0]}`] });
    assert.deepEqual(leaks(a, "", "x canary-A-tag1 y"), []);
    assert.deepEqual(leaks(a, "", "x canary-B-tag1 y"), ["canary-B-tag1"]);
    assert.deepEqual(leaks(a, "for canary-B-tag1", "x canary-B-tag1 y"), []);
    assert.deepEqual(leaks(a, "", `{"id":"${b.runs[0]}"}`), [b.runs[0]]);
    assert.deepEqual(leaks(a, "", `{"id":"${a.runs[0]}"}`), []);
    assert.deepEqual(leaks(a, "", `"${b.key}"`), ["the key of B"]);
    assert.deepEqual(leaks(a, "", token), [b.runs[0]]);
    assert.deepEqual(leaks(a, "", "canary-B-tag1", "AB"), []);
  });

  test("detect differences between two responses, except for the id that was requested and the time", () => {
    assert.equal(plain("HTTP/1.1 404\r\ndate: x\r\nx-runs-seq: e.5\r\n\r\nno run_1", "run_1"), plain("HTTP/1.1 404\r\ndate: y\r\n\r\nno run_2", "run_2"));
    assert.notEqual(plain("404 no run_1", "run_1"), plain("403 no run_2", "run_2"));
  });
});

test("nothing of one environment reaches another, by any transport", async (t) => {
  const seed = chooseSeed(t), { port } = gateway, began = Date.now();
  let broken = false;
  const foreign = () => [...counts].filter(([kind]) => kind.startsWith("foreign")).reduce((sum, [, n]) => sum + n, 0);
  const over = () => broken || wrong.length >= 30 || (total() >= operations && foreign() > operations / 3);
  const pipes = [], loops = [];
  let number = 0;
  const random = () => new Random(seed + 7919 * ++number);
  const open = async () => { pipes.push(await Pipe.open(port)); return pipes.at(-1); };
  for (const side of sides) {
    for (let connection = 0; connection < 4; connection++) {
      const pipe = await open();
      for (let lane = 0; lane < 6; lane++) {
        const actor = new Actor(side, pipe, random());
        loops.push((async () => { while (!over()) await actor.step(); })());
      }
    }
    loops.push(work(side, await open(), over), wait(side, port, random(), over), wait(side, port, random(), over));
    for (let i = 0; i < 2; i++) loops.push(listen(side, port, random(), over));
    loops.push(talk(side, port, random(), over));
  }
  await Promise.all(loops.map((loop) => loop.catch((error) => { broken = true; throw error; })));
  for (const pipe of pipes) pipe.close();
  t.diagnostic(`${total()} operations in ${((Date.now() - began) / 1000).toFixed(1)} s: ${[...counts].map(([kind, n]) => `${kind} ${n}`).join(", ")}`);
  assert.equal(wrong.length, 0, `SEED=${seed}\n${wrong.slice(0, 10).join("\n\n")}`);
  assert.ok(foreign() > operations / 3, `${foreign()} of ${total()} were about others' things`);
  assert.deepEqual(routes.filter(({ guesses }) => !guesses).map(({ name }) => name), [], "routes that take an id and were never tried with a guessed one");
  for (const kind of ["held poll", "event stream", "socket", "worker", "trigger", "list", "keep", "bulk", "waitpoint", "trace", "packet"]) assert.ok(counts.get(kind) > operations / 2000, `${kind}: ${counts.get(kind)}`);
});

test("no environment has changed anything of another", async () => {
  for (const side of sides) {
    let after, seen = 0;
    do {
      const { status, json, text } = await gateway.get(encodeURI(`/api/v1/runs?page[size]=100${after ? `&page[after]=${after}` : ""}`), { key: side.key });
      assert.equal(status, 200, text);
      for (const run of json.data) {
        seen++;
        assert.ok((owners.get(run.id) ?? side.letter).includes(side.letter), run.id);
        if (run.status === "CANCELED") assert.ok(side.canceled.has(run.id), `${run.id} of ${side.letter} was canceled by somebody else`);
        assert.deepEqual(run.tags.filter((tag) => tag.startsWith("canary") && !tag.startsWith(`canary-${side.letter}-`)), []);
      }
      after = json.pagination.next;
    } while (after);
    assert.ok(seen > operations / 1000, `${side.letter} has ${seen} runs`);
  }
});
