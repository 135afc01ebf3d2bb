// The published request schemas of SDK 4.8.3 and how the gateway treats them. Each member is used, refused, or without
// effect, as the tables here and the README list it. The gateway accepts the types that a schema accepts, and refuses
// others with 400. It reports unknown members to the caller. A test fails for each member that a newer schema adds.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const packageOf = "../conformance/sdk-v4/node_modules/@trigger.dev/core/dist/esm/v3/schemas/";
const api = await import(packageOf + "api.js");
const queues = await import(packageOf + "queues.js");
const { BackgroundWorkerMetadata } = await import(packageOf + "resources.js");
const readme = fs.readFileSync(fileURLToPath(new URL("../../src/api/router/README.md", import.meta.url)), "utf8");

const gateway = await startGateway();
after(() => gateway.stop());

// ---- members of a schema ----

/** The schema without wrappers that only say how a value is read or that it is optional. */
function bare(schema) {
  const def = schema._zod.def;
  if (def.type === "pipe") return bare(def.in._zod.def.type === "transform" ? def.out : def.in);
  return def.innerType ? bare(def.innerType) : schema;
}

/** The objects that a value of the schema can be. */
function objectsIn(schema) {
  const one = bare(schema), def = one._zod.def;
  if (def.type === "object") return [one];
  if (def.type === "union") return def.options.flatMap(objectsIn);
  return def.type === "intersection" ? [def.left, def.right].flatMap(objectsIn) : [];
}

/** [path, schema] of every member, also of members and of elements of lists. */
function members(schema, at = "") {
  const found = new Map();
  const note = (path, inner) => found.set(path, [...found.get(path) ?? [], inner]);
  for (const object of objectsIn(schema))
    for (const [name, inner] of Object.entries(object._zod.def.shape)) {
      note(at + name, inner);
      for (const [path, all] of members(inner, `${at}${name}.`)) for (const each of all) note(path, each);
    }
  const one = bare(schema), def = one._zod.def;
  const lists = def.type === "array" ? [def.element] : def.type === "union" ? def.options.map(bare).filter((each) => each._zod.def.type === "array").map((each) => each._zod.def.element) : [];
  for (const element of lists) for (const [path, all] of members(element, at ? `${at.slice(0, -1)}[].` : "[].")) for (const each of all) note(path, each);
  return found;
}

const isStrict = (schema) => objectsIn(schema).some(({ _zod: { def } }) => def.catchall?._zod.def.type === "never");

// ---- the tables ----

const words = (text) => text.trim().split(/\s+/).filter(Boolean);
const options = {
  used: "concurrency concurrencyKey delay debounce debounce.key debounce.delay debounce.mode debounce.maxDelay externalDeploymentId gates gates[].queue gates[].concurrencyKey idempotencyKey idempotencyKeyTTL idempotencyKeyOptions idempotencyKeyOptions.key lockToVersion machine maxAttempts maxDuration metadata metadataType payloadType queue queue.name tags test ttl priority",
  idle: "parentAttempt region",
  shown: "idempotencyKeyOptions.scope payloadSize",
};
const within = (at, text) => words(text).map((name) => at + name).join(" ");
const item = (at) => ({ used: `${at}task ${at}payload ${at}options ${within(`${at}options.`, options.used)}`, idle: `${at}context ${within(`${at}options.`, options.idle)}`, shown: within(`${at}options.`, options.shown) });
const waitpoint = "idempotencyKey idempotencyKeyTTL timeout tags";
const day = { delay: "1h" };
const debounced = { ...day, gates: [{ queue: "task/hello" }], debounce: { key: "published", delay: "30m" } };
const trigger = "/api/v1/tasks/hello/trigger";
const variables = `/api/v1/projects/${keys.ref}/envvars/prod`;

/** Treatment of the members of a schema by the gateway; good() returns the path and a valid body. */
const schemas = {
  TriggerTaskRequestBody: {
    used: `payload options ${within("options.", options.used)} options.parentRunId options.resumeParentOnCompletion`,
    idle: `context ${within("options.", `${options.idle} dependentAttempt dependentBatch parentBatch bulkActionId`)}`,
    shown: within("options.", `${options.shown} queue.concurrencyLimit`),
    good: () => [trigger, { payload: "1", options: { ...debounced, queue: { name: "hello" } } }],
  },
  BatchTriggerTaskV2RequestBody: {
    used: `items parentRunId resumeParentOnCompletion ${item("items[].").used}`,
    idle: `dependentAttempt ${item("items[].").idle}`,
    shown: item("items[].").shown,
    good: () => ["/api/v1/tasks/batch", { items: [{ task: "hello", payload: "1", options: { ...debounced } }] }],
  },
  BatchTriggerTaskV3RequestBody: {
    used: `items parentRunId resumeParentOnCompletion ${item("items[].").used}`,
    idle: item("items[].").idle,
    shown: item("items[].").shown,
    good: () => ["/api/v2/tasks/batch", { items: [{ task: "hello", payload: "1", options: { ...debounced } }] }],
  },
  CreateBatchRequestBody: {
    used: "runCount taskIdentifiers parentRunId resumeParentOnCompletion idempotencyKey idempotencyKeyOptions idempotencyKeyOptions.key",
    shown: "idempotencyKeyOptions.scope",
    good: () => ["/api/v3/batches", { runCount: 1 }],
  },
  BatchItemNDJSON: {
    used: `index ${item("").used}`, idle: words(item("").idle).filter((name) => name !== "context").join(" "), shown: item("").shown,
    named: "items[].", // as the header names members of a line
    lines: true,
    good: async () => {
      const { id } = (await gateway.post("/api/v3/batches", { runCount: 1 })).json;
      return [`/api/v3/batches/${id}/items`, { index: 0, task: "hello", payload: "1", options: { ...debounced } }];
    },
  },
  ReplayRunRequestBody: {
    used: "payload payloadType metadata tags queue concurrencyKey machine version delay ttl idempotencyKey idempotencyKeyTTL maxAttempts maxDuration priority",
    idle: "region",
    good: async () => [`/api/v1/runs/${await makeRun()}/replay`, { ...day }],
  },
  RescheduleRunRequestBody: { used: "delay", good: async () => [`/api/v1/runs/${await makeRun()}/reschedule`, { delay: "2h" }] },
  AddTagsRequestBody: { used: "tags", good: async () => [`/api/v1/runs/${await makeRun()}/tags`, { tags: "a" }] },
  CreateScheduleOptions: {
    used: "task cron deduplicationKey externalId timezone", shown: "window",
    good: () => ["/api/v1/schedules", { task: "tick", cron: "0 9 * * *", deduplicationKey: "published" }],
  },
  UpdateScheduleOptions: {
    used: "task cron externalId timezone", shown: "window", method: "PUT",
    good: async () => [`/api/v1/schedules/${(await gateway.post("/api/v1/schedules", { task: "tick", cron: "0 9 * * *", deduplicationKey: "published" })).json.id}`, { task: "tick", cron: "0 9 * * *" }],
  },
  CreateBulkActionRequestBody: {
    used: `action filter runIds name ${within("filter.", "status taskIdentifier version from to period bulkAction tag schedule isTest batch queue queue.type queue.name queue[].type queue[].name machine region")}`,
    shown: "targetRegion",
    good: () => ["/api/v1/bulk-actions", { action: "replay", filter: { tag: "nobody" } }],
  },
  CreateEnvironmentVariableRequestBody: { used: "name value isSecret", good: () => [variables, { name: "PUBLISHED", value: "1" }] },
  UpdateEnvironmentVariableRequestBody: { used: "value", method: "PUT", good: () => [`${variables}/PUBLISHED`, { value: "2" }] },
  ImportEnvironmentVariablesRequestBody: {
    used: "variables parentVariables override isSecret", shown: "source source.type source.userId source.integration",
    good: () => [`${variables}/import`, { variables: { PUBLISHED: "1" }, override: true }],
  },
  CreateWaitpointTokenRequestBody: { used: waitpoint, good: () => ["/api/v1/waitpoints/tokens", {}] },
  CompleteWaitpointTokenRequestBody: { used: "data", good: async () => [`/api/v1/waitpoints/tokens/${(await gateway.post("/api/v1/waitpoints/tokens", {})).json.id}/complete`, {}] },
  CreateInputStreamWaitpointRequestBody: {
    used: `streamId lastSeqNum ${waitpoint}`,
    good: async () => [`/api/v1/runs/${await makeRun()}/input-streams/wait`, { streamId: "a" }],
  },
};

/** Request schemas of workers, of the CLI, of an older call, and of features that runcast lacks. */
const otherSchemas = words(`
  CreateBackgroundWorkerRequestBody DevDequeueRequestBody DevDisconnectRequestBody WaitForDurationRequestBody UpdateMetadataRequestBody GetJWTRequestBody
  UpsertBranchRequestBody WorkersCreateRequestBody CompleteProfileRequestBody CreateOrgRequestBody CreateProjectRequestBody
  InitializeDeploymentRequestBody StartDeploymentIndexingRequestBody ProgressDeploymentRequestBody FinalizeDeploymentRequestBody FailDeploymentRequestBody CancelDeploymentRequestBody CreateArtifactRequestBody
  BatchTriggerTaskRequestBody
  CreateSessionRequestBody UpdateSessionRequestBody CloseSessionRequestBody EndAndContinueSessionRequestBody CreateSessionStreamWaitpointRequestBody
  ResolvePromptRequestBody PromotePromptVersionRequestBody CreatePromptOverrideRequestBody UpdatePromptOverrideRequestBody ReactivatePromptOverrideRequestBody
  OverrideConcurrencyLimitRequestBody ResetConcurrencyLimitRequestBody`);

let makeRun;
before(async () => {
  await Worker.register(gateway, { tasks: ["hello", { id: "tick", triggerSource: "schedule" }] });
  await gateway.post(variables, { name: "PUBLISHED", value: "1" }, { key: keys.prod });
  makeRun = async () => (await gateway.post(trigger, { options: day })).json.id;
});

// ---- calls ----

const isOfProd = (path) => path.startsWith(variables);

async function call({ good, method = "POST", lines }, alter, key) {
  const [path, body] = await good();
  const sent = alter(structuredClone(body));
  const reply = await gateway.http.request(method, path, {
    body: lines ? `${JSON.stringify(sent)}\n` : sent, key: key ?? (isOfProd(path) ? keys.prod : keys.dev),
    ...lines && { headers: { "content-type": "application/x-ndjson" } },
  });
  return { sent, status: reply.status, text: reply.text, error: reply.json?.error ?? "", ignored: (reply.headers["x-ignored-members"] ?? "").split(", ").filter(Boolean) };
}

/** Sets the member at a path; creates the objects above it. */
function put(body, path, value) {
  let at = body;
  const steps = path.split(".");
  for (const [i, step] of steps.entries()) {
    const [, name, list] = /^(.*?)(\[\])?$/.exec(step);
    if (i === steps.length - 1) at[name] = value;
    else if (list) at = Array.isArray(at[name]) ? at[name][0] : (at[name] = [{}])[0];
    else at = typeof at[name] === "object" && at[name] ? at[name] : at[name] = {};
  }
  return body;
}

const candidates = ["x", "", 5, 1.5, -1, true, null, [], ["x"], [5], {}, { a: 1 }];
const isEmpty = (value) => value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);

/** Where the gateway deliberately differs from the schema, and why. */
const exceptions = [
  [/\bdelay = ("x"|"")/, "a delay that is neither a date nor a duration is not silently none"],
  [/\b(ttl|idempotencyKeyTTL) = "x"/, "a duration that is none is not silently the default"],
  [/\b(delay|timeout) = (5|1\.5|-1)$/, "a number of seconds would be a date in 1970"],
  [/\bdelay = (true|\[)/, "JavaScript makes a date of them, nobody else does"],
  [/\bmetadata = ("|-|\d|true|\[)/, "metadata must come back as an object"],
  [/\bmetadataType = "x"/, "metadata is JSON"],
  [/\bqueue = \{/, "SDK 3.3.17 sends a queue without a name"],
  [/\bqueue\.concurrencyLimit = null/, "SDK 3.3.17 sends null"],
  [/\btask = ""/, "no task has that id"],
  [/^items = \[\]/, "an empty batch"],
  [/\bregion = (\[\]|{})$/, "a region is a text"],
  [/^delay = (5|1.5|-1|null)$/, "a run is not put off to 1970"],
  [/^(filter\.\w+|targetRegion|name) = (null|""|\[\])$/, "of a bulk action: none"],
  [/^filter\.(from|to) = (true|\[)/, "JavaScript makes a date of them, nobody else does"],
  [/^filter\.period = "x"/, "a period that is none is not silently the default"],
  [/^(name|value|streamId|variables) = (""|{})/, "a name, a value is not empty"],
  [/\bdebounce\.(delay|maxDelay) = "/, "a duration that is none does not mean another one"],
  [/\bdebounce\.key = ""/, "a key is not empty"],
  [/^timeout = ("|true|\[5)/, "a timeout that is neither a date nor a duration is not silently none"],
  [/^(timeout|idempotencyKey|idempotencyKeyTTL|tags|lastSeqNum) = null/, "of a token: none"],
  [/^lastSeqNum = 1.5/, "records have whole numbers"],
];

for (const [name, row] of Object.entries(schemas)) {
  const schema = api[name];
  const known = { used: words(row.used), refused: words(row.refused ?? ""), idle: words(row.idle ?? ""), shown: words(row.shown ?? "") };
  const all = Object.values(known).flat();
  const inside = known.refused.map((path) => `${path}.`);
  const paths = [...members(schema).keys()].filter((path) => !known.refused.some((one) => path.startsWith(`${one}.`) || path.startsWith(`${one}[]`)));

  test(`${name}: the table has every member, and nothing else`, () => {
    assert.deepEqual(paths.filter((path) => !all.includes(path)), [], "members that are new");
    assert.deepEqual(all.filter((path) => !paths.includes(path)), [], "members that are gone");
    assert.equal(new Set(all).size, all.length, inside.join());
  });

  test(`${name}: types are accepted and refused as published`, async () => {
    const wrong = [];
    for (const path of paths)
      for (const value of candidates) {
        const { sent, status, text } = await call(row, (body) => put(body, path, value));
        const what = `${path} = ${JSON.stringify(value)}`, published = schema.safeParse(sent).success;
        const taken = status !== 400 && !(row.lines && status === 422 && /Validation error|Expected/.test(text));
        const isRefused = known.refused.includes(path);
        if (status === 422 && !row.lines) continue; // a rule of the service
        const right = isEmpty(value) && (isRefused || known.idle.includes(path)) ? true : isRefused ? false : published;
        if (right !== taken && !exceptions.some(([pattern]) => pattern.test(what))) wrong.push(`${what}: ${published ? "published" : "not published"}, ${status} ${text.slice(0, 120)}`);
      }
    assert.deepEqual(wrong, []);
  });

  test(`${name}: unknown members are ${isStrict(schema) ? "refused" : "reported to the caller"}`, async () => {
    const objects = ["", ...paths.filter((path) => members(schema).get(path).some((one) => objectsIn(one).length)).map((path) => `${path}.`)];
    for (const at of objects) {
      if (known.refused.some((one) => at.startsWith(one))) continue;
      const { status, error, ignored } = await call(row, (body) => put(body, `${at}unknownMember`, 1));
      if (isStrict(schema)) assert.match(`${status} ${error}`, /^400 .*unknownMember/);
      else assert.ok(ignored.includes(`${row.named ?? ""}${at}unknownMember`), `${at}: ${status} ${error} ${ignored}`);
    }
  });
}

// ---- declarations of a version ----

/** How the gateway treats the members of a registration; a member includes those inside of it. */
const registration = {
  honoured: words(`packageVersion contentHash cliPackageVersion tasks tasks[].id tasks[].filePath tasks[].exportName tasks[].queue tasks[].queue.name tasks[].queue.concurrencyLimit tasks[].queue.combinedConcurrencyLimit tasks[].concurrency tasks[].concurrency.inline tasks[].concurrency.inline.perKey tasks[].concurrency.inline.total tasks[].concurrency.limits tasks[].gates tasks[].gates[].queue tasks[].gates[].concurrencyKey concurrencyLimits concurrencyLimits[].name concurrencyLimits[].perKey concurrencyLimits[].total
    tasks[].retry tasks[].machine tasks[].machine.preset tasks[].triggerSource tasks[].schedule tasks[].maxDuration tasks[].ttl tasks[].payloadSchema queues queues[].name queues[].concurrencyLimit queues[].combinedConcurrencyLimit`),
  /** With a value that declares a limit, and how the sentence names it. */
  refused: {},
  /** With a value, and the feature that the warning names. */
  warned: {
    "tasks[].agentConfig": [{ type: "ai-sdk-chat" }, "sessions and agents that chat"],
    prompts: [[{ id: "p", filePath: "a.ts" }], "prompts"],
    webhookEndpoints: [[{ id: "w", filePath: "a.ts", source: "s" }], "endpoints for webhooks"],
    webhookSubscribers: [[{ endpointId: "w", target: { type: "task", taskId: "a" } }], "endpoints for webhooks"],
  },
  /** For readers (description), or known to the worker itself: the CLI executes with its own sources and its own runtime,
   *  and a machine has the cores and the memory of its preset. */
  harmless: words("tasks[].description tasks[].machine.cpu tasks[].machine.memory sourceFiles runtime runtimeVersion"),
};

const whole = ["tasks[].retry", "tasks[].schedule", ...Object.keys(registration.refused), ...Object.keys(registration.warned), ...registration.harmless];
let declared = 0;
async function declare(path, value) {
  const metadata = { packageVersion: "4.8.3", contentHash: `declared-${++declared}`, tasks: [{ id: "a", filePath: "a.ts" }], queues: [{ name: "q" }] };
  put(metadata, path, value);
  const reply = await gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata }, { key: keys.staging });
  const shown = await gateway.get(`/api/v1/projects/${keys.ref}/staging/workers/current`, { key: keys.pat });
  return { reply, warnings: shown.json.worker?.warnings ?? [] };
}

test("each member of a registration is used, refused, warned of, or harmless", () => {
  const known = [...registration.honoured, ...Object.keys(registration.refused), ...Object.keys(registration.warned), ...registration.harmless];
  const paths = [...members(BackgroundWorkerMetadata).keys()].filter((path) => !whole.some((one) => path.startsWith(`${one}.`) || path.startsWith(`${one}[]`)));
  assert.deepEqual(paths.filter((path) => !known.includes(path)), [], "members that are new");
  assert.deepEqual(known.filter((path) => !paths.includes(path)), [], "members that are gone");
});

test("a registration is refused, or its version gets a warning, as the table says", async () => {
  for (const [path, [value, offender]] of Object.entries(registration.refused)) {
    for (const empty of [null, Array.isArray(value) ? [] : typeof value === "object" ? {} : null]) assert.equal((await declare(path, empty)).reply.status, 200, path);
    const { reply } = await declare(path, value);
    assert.equal(reply.status, 400, path);
    assert.ok(reply.json.error.includes(`: ${offender};`), reply.text);
  }
  for (const [path, [value, feature]] of Object.entries(registration.warned)) {
    assert.deepEqual((await declare(path, Array.isArray(value) ? [] : null)).warnings, [], path);
    const { reply, warnings } = await declare(path, value);
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(warnings.map((one) => one.feature), [feature]);
  }
  for (const path of registration.harmless) assert.deepEqual((await declare(path, "x")).warnings, [], path);
});

// ---- the README ----

/** Returns the names in the README's table row with this title. */
function rowOf(title) {
  const [, cell] = new RegExp(`^\\| ${title} \\| (.*) \\|$`, "m").exec(readme);
  return [...cell.matchAll(/`([\w.]+)`/g)].map(([, name]) => name);
}

/** Names as in the README: without the index of an item, and a replay's options like a trigger's. */
const plain = (path) => path.replace(/^items\[\]\./, "");

test("the README lists members that are refused and those without effect", () => {
  const all = (kind) => [...new Set(Object.entries(schemas).flatMap(([name, row]) => words(row[kind] ?? "").map((path) => (name === "ReplayRunRequestBody" ? `options.${path}` : plain(path)))))];
  const missing = (kind, title) => all(kind).filter((path) => !rowOf(title).some((name) => path === name || path.endsWith(`.${name}`) || path.startsWith(`${name}.`)));
  assert.deepEqual(missing("refused", "400 with its name"), []);
  assert.deepEqual(missing("idle", "accepted, without effect"), []);
  assert.deepEqual(missing("shown", "accepted, perhaps stored, without effect"), []);
  const listed = rowOf("accepted, without effect"), known = all("idle");
  assert.deepEqual(listed.filter((name) => !known.includes(name)), [], "listed, and not so");
});

test("every request schema of the package has a table, or belongs to something else", () => {
  const requests = Object.keys({ ...api, ...queues }).filter((name) => /RequestBody$|^(Create|Update)\w*Options$|NDJSON$/.test(name));
  assert.deepEqual(requests.filter((name) => !schemas[name] && !otherSchemas.includes(name)), []);
  assert.deepEqual(otherSchemas.filter((name) => !requests.includes(name)), []);
});
