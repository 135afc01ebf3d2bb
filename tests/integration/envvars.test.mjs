// Environment variables over HTTP: with a secret key and with a personal access token, which calls are refused and
// change nothing, which variables tasks get, and that no secret is ever found in plain text.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { isSqlite, keys, startGateway } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway.stop());

const at = (env = "dev", more = "", ref = keys.ref) => `/api/v1/projects/${ref}/envvars/${env}${more}`;
const credentials = [["a secret key", keys.dev], ["a personal access token", keys.pat]];
const success = { success: true };

async function expectReply(promise, status, json) {
  const reply = await promise;
  assert.equal(reply.status, status, reply.text);
  if (json instanceof RegExp) assert.match(reply.json.error, json);
  else if (json !== undefined) assert.deepEqual(reply.json, json);
  return reply;
}
const list = async (env = "dev", key = keys.pat) => (await expectReply(gateway.get(at(env), { key }), 200)).json;
const values = async (env, key) => Object.fromEntries((await list(env, key)).map(({ name, value }) => [name, value]));
const upload = (body, { env = "dev", key = keys.pat } = {}) => gateway.post(at(env, "/import"), body, { key });

for (const [who, key] of credentials)
  test(`${who} creates, reads, updates, uploads and deletes`, async () => {
    const name = `LIFE_${key === keys.pat ? "P" : "K"}`, one = at("dev", `/${name}`);
    await expectReply(gateway.post(at(), { name, value: "one" }, { key }), 200, success);
    await expectReply(gateway.get(one, { key }), 200, { name, value: "one", isSecret: false });
    assert.deepEqual((await list("dev", key)).filter((v) => v.name === name), [{ name, value: "one", isSecret: false }]);
    await expectReply(gateway.post(at(), { name, value: "overwritten" }, { key }), 200, success);
    await expectReply(gateway.put(one, { value: "two" }, { key }), 200, success);
    await expectReply(gateway.get(one, { key }), 200, { name, value: "two", isSecret: false });
    await expectReply(gateway.post(one, { value: "three" }, { key }), 200, success);
    await expectReply(gateway.put(one, { value: " \n" }, { key }), 400, /cannot be set/);
    await expectReply(gateway.get(one, { key }), 200, { name, value: "three", isSecret: false });
    const more = { [name]: "four", [`${name}_B`]: "b=1\nline \u00fc" };
    await expectReply(upload({ variables: more }, { key }), 400, {
      error: "Some of the variables are already set for these environments. Set override to true to override them.",
      variableErrors: [{ key: name, error: "Variable already set in Development." }],
    });
    assert.equal((await values("dev", key))[`${name}_B`], undefined, "all or nothing");
    await expectReply(upload({ variables: more, override: true }, { key }), 200, success);
    const { [name]: a, [`${name}_B`]: b } = await values("dev", key);
    assert.deepEqual([a, b], Object.values(more));
    await expectReply(gateway.delete(one, { key }), 200, success);
    await expectReply(gateway.delete(`${one}_B`, { key }), 200, success);
    await expectReply(gateway.get(one, { key }), 404, { error: "Environment variable not found" });
    await expectReply(gateway.delete(one, { key }), 404, { error: "Environment variable not found" });
    await expectReply(gateway.put(one, { value: "x" }, { key }), 404, { error: "Environment variable not found" });
  });

test("a name that only another environment has can be created by an update, but not deleted", async () => {
  await expectReply(upload({ variables: { ELSEWHERE: "prod" } }, { env: "prod" }), 200, success);
  await expectReply(gateway.delete(at("dev", "/ELSEWHERE")), 400, { error: "Environment variable value not found" });
  await expectReply(gateway.get(at("dev", "/ELSEWHERE")), 404, { error: "Environment variable not found" });
  await expectReply(gateway.put(at("dev", "/ELSEWHERE"), { value: "dev" }), 200, success);
  assert.deepEqual([(await values("dev")).ELSEWHERE, (await values("prod")).ELSEWHERE], ["dev", "prod"]);
});

test("a personal access token reaches the four environments, each with its own variables", async () => {
  for (const env of ["dev", "staging", "prod", "preview"])
    await expectReply(gateway.post(at(env), { name: "WHERE", value: env }, { key: keys.pat }), 200, success);
  for (const env of ["dev", "staging", "prod", "preview"]) assert.equal((await values(env)).WHERE, env);
  assert.equal((await values("stg")).WHERE, "staging");
  for (const [env, key] of [["dev", keys.dev], ["staging", keys.staging], ["prod", keys.prod]])
    assert.equal((await values(env, key)).WHERE, env);
});

test("the list is ordered by name", async () => {
  await expectReply(upload({ variables: { ORDER_B: "1", ORDER_A: "2", ORDER_C: "3" } }), 200, success);
  const names = (await list()).map((v) => v.name);
  assert.deepEqual(names, [...names].sort());
});

test("a secret is write-only, and stays one", async () => {
  const shown = { name: "SECRET", value: "<redacted>", isSecret: true };
  for (const change of [
    () => gateway.post(at(), { name: "SECRET", value: "hush", isSecret: true }),
    () => gateway.put(at("dev", "/SECRET"), { value: "still" }),
    () => gateway.post(at(), { name: "SECRET", value: "again" }),
    () => upload({ variables: { SECRET: "more" }, override: true }),
  ]) {
    await expectReply(change(), 200, success);
    await expectReply(gateway.get(at("dev", "/SECRET")), 200, shown);
    assert.deepEqual((await list()).find((v) => v.name === "SECRET"), shown);
  }
  await expectReply(upload({ variables: { SECRET: "open now" }, override: true, isSecret: false }), 200, success);
  assert.equal((await values()).SECRET, "open now");
});

test("an import skips variables that can never be set, and names them", async () => {
  const ours = ["API_URL", "SECRET_KEY", "STREAM_URL", "RUN_ID", "PREVIEW_BRANCH", "MACHINE_PRESET"].map((name) => `TRIGGER_${name}`);
  const reserved = "The name is not allowed: the gateway sets it for its tasks.", empty = "The value is empty.";
  const named = (names, error) => names.map((key) => ({ key, error }));
  const dropped = Object.fromEntries(ours.map((name) => [name, "x"]));
  for (const value of ["k", "l"]) {
    const reply = await expectReply(upload({ variables: { ...dropped, BLANK: "  ", NOTHING: "", KEPT: value, TOO: "t" }, override: true }), 200);
    assert.deepEqual(reply.json, { success: true, skipped: [...named(ours, reserved), ...named(["BLANK", "NOTHING"], empty)] });
    const now = await values();
    assert.deepEqual([now.KEPT, now.TOO, now.BLANK, now.TRIGGER_RUN_ID], [value, "t", undefined, undefined]);
  }
  const { json: { skipped } } = await expectReply(upload({ variables: { "B C": "z", ELSE: "e" } }), 200);
  assert.deepEqual(skipped.map(({ key }) => key), ["B C"]);
  assert.match(skipped[0].error, /letters, digits/);
  await expectReply(upload({ variables: { SENTRY_DSN: "", KEPT: "m" } }), 400, /already set/);
  await expectReply(upload({ variables: dropped }), 400, { error: `You must set at least one valid variable. ${ours[0]}: ${reserved}`, variableErrors: named(ours, reserved) });
  await expectReply(upload({ variables: {} }), 400, { error: "You must set at least one valid variable." });
  await expectReply(upload({ variables: { BLANK: "" } }), 400, { error: `You must set at least one valid variable. BLANK: ${empty}`, variableErrors: named(["BLANK"], empty) });
  for (const name of ours)
    await expectReply(gateway.post(at(), { name, value: "x" }), 400, { variableErrors: named([name], reserved),
      error: `You must set at least one valid variable. All the variables submitted are not allowed. ${name}: ${reserved}` });
});

// ---- refusals: status, text, and nothing has changed ----

const long = "v".repeat(65537), manyNames = Object.fromEntries([...Array(1001)].map((_, i) => [`MANY_${i}`, "x"]));
const json = (text) => Buffer.from(text, "latin1");
const shape = (error, where) => (reply) => {
  assert.equal(reply.json.error, `${error}: ${where}: ${reply.json.issues[0].message}`);
  assert.deepEqual(reply.json.issues[0].path, [where]);
  assert.equal(typeof reply.json.issues[0].message, "string");
};
const says = (pattern) => (reply) => assert.match(reply.json.error, pattern);
const blames = (name, pattern) => (reply) => {
  assert.match(reply.json.error, /^Some of the variables cannot be set\. \S+: \w/);
  assert.deepEqual(reply.json.variableErrors.map((e) => e.key), [name]);
  assert.match(reply.json.variableErrors[0].error, pattern);
};
const created = "Invalid request body", uploaded = "Invalid body";
const malformed = [["an empty body", "", says(/^Request body is empty$/)], ["malformed JSON", "{\"name\":", says(/^Invalid JSON/)],
  ["invalid UTF-8", json("{\"name\":\"A\",\"value\":\"\xff\"}"), says(/^Invalid JSON/)],
  ["a member twice", "{\"value\":\"a\",\"value\":\"b\"}", says(/twice/)],
  ["an array", [], says(/must be a JSON object/)], ["null", "null", says(/must be a JSON object/)]];
const refusals = {
  create: { send: (body, more) => gateway.post(at(more?.env, "", more?.ref), body, more), cases: [
    ...malformed,
    ["no name", { value: "x" }, shape(created, "name")], ["no value", { name: "A" }, shape(created, "value")],
    ["a number as name", { name: 1, value: "x" }, shape(created, "name")],
    ["null as value", { name: "A", value: null }, shape(created, "value")],
    ["a text as isSecret", { name: "A", value: "x", isSecret: "yes" }, shape(created, "isSecret")],
    ["a name with an equals sign", { name: "A=B", value: "x" }, blames("A=B", /letters, digits/)],
    ["a name with a slash", { name: "A/B", value: "x" }, blames("A/B", /letters, digits/)],
    ["a name that is too long", { name: "n".repeat(257), value: "x" }, blames("n".repeat(257), /256/)],
    ["a value that is too long", { name: "A", value: long }, blames("A", /65536 bytes/)],
    ["a zero byte", { name: "A", value: "a\u0000b" }, blames("A", /zero byte/)],
    ["a blank value", { name: "A", value: " " }, says(/^You must set at least one valid variable\. A: The value is empty\.$/)],
  ] },
  upload: { send: (body, more) => gateway.post(at(more?.env, "/import", more?.ref), body, more), cases: [
    ...malformed,
    ["no variables", {}, shape(uploaded, "variables")], ["a list of variables", { variables: [] }, shape(uploaded, "variables")],
    ["a number as value", { variables: { A: "x", B: 1 } }, shape(uploaded, "variables")],
    ["a name twice", "{\"variables\":{\"A\":\"x\",\"A\":\"y\"}}", shape(uploaded, "variables")],
    ["a text as override", { variables: { A: "x" }, override: "true" }, shape(uploaded, "override")],
    ["a number as isSecret", { variables: { A: "x" }, isSecret: 1 }, shape(uploaded, "isSecret")],
    ["parentVariables of another form", { variables: { A: "x" }, parentVariables: "A=x" }, shape(uploaded, "parentVariables")],
    ["a source of another form", { variables: { A: "x" }, source: { type: "me" } }, shape(uploaded, "source")],
    ["one value that is too long", { variables: { A: "x", B: long } }, blames("B", /65536 bytes/)],
    ["one that is set already", { variables: { A: "x", SET: "y" } }, says(/^Some of the variables are already set/)],
    ["more than 1000", { variables: manyNames }, shape(uploaded, "variables")],
    ["more than 256 KiB", { variables: Object.fromEntries("ABCDE".split("").map((n) => [n, "v".repeat(60000)])) }, says(/256 KiB/)],
  ] },
  update: { send: (body, more) => gateway.put(at(more?.env, "/SET", more?.ref), body, more), cases: [
    ...malformed,
    ["no value", {}, shape(created, "value")], ["a number as value", { value: 1 }, shape(created, "value")],
    ["a value that is too long", { value: long }, blames("SET", /65536 bytes/)],
    ["a zero byte", { value: "\u0000" }, blames("SET", /zero byte/)],
    ["an empty value", { value: "" }, blames("SET", /empty/)],
  ] },
};
const elsewhere = {
  list: (more) => gateway.get(at(more.env, "", more.ref), more),
  retrieve: (more) => gateway.get(at(more.env, "/SET", more.ref), more),
  create: (more) => gateway.post(at(more.env, "", more.ref), { name: "SET", value: "no" }, more),
  upload: (more) => gateway.post(at(more.env, "/import", more.ref), { variables: { SET: "no" }, override: true }, more),
  update: (more) => gateway.put(at(more.env, "/SET", more.ref), { value: "no" }, more),
  delete: (more) => gateway.delete(at(more.env, "/SET", more.ref), more),
};

async function unchanged(what, work) {
  await gateway.post(at(), { name: "SET", value: "as it was" });
  const before = await Promise.all(["dev", "staging", "prod", "preview"].map((env) => list(env)));
  await work();
  assert.deepEqual(await Promise.all(["dev", "staging", "prod", "preview"].map((env) => list(env))), before, what);
}

for (const [operation, { send, cases }] of Object.entries(refusals))
  test(`${operation} refuses an invalid body with the reason, and changes nothing`, async () => {
    for (const [what, body, check] of cases)
      for (const [, key] of credentials)
        await unchanged(`${operation}: ${what}`, async () => {
          const reply = await expectReply(send(body, { key }), 400);
          check(reply);
        });
    await unchanged("too large", async () => {
      await expectReply(send("x".repeat(513 * 1024)), 413, /too large/);
    });
  });

test("every operation stays within the credential's environment and project", async () => {
  const otherEnv = /^Invalid environment slug for this API key\. /, otherRef = /^Invalid project ref for this API key\. /;
  const cases = [
    [{ key: keys.dev, env: "prod" }, 400, otherEnv], [{ key: keys.dev, env: "nope" }, 400, otherEnv],
    [{ key: keys.prod, env: "dev" }, 400, otherEnv], [{ key: keys.dev, ref: "proj_doesnotexistxxxxxxxx" }, 400, otherRef],
    [{ key: keys.pat, ref: "proj_doesnotexistxxxxxxxx" }, 404, /^Project not found$/],
    [{ key: keys.pat, env: "nope" }, 404, /^Environment not found$/],
    [{ key: keys.preview, env: "preview" }, 401, /^x-trigger-branch header required for preview env$/],
    [{ key: "tr_dev_wrongwrongwrongwrongwron" }, 401, /^Invalid API key$/],
    [{ key: "tr_pat_wrongwrongwrongwrongwrongwrongwrongwron" }, 401, /^Invalid or Missing PAT: the personal access token is unknown, expired or revoked$/],
    [{ key: null }, 401, /^No authorization header provided$/],
  ];
  for (const [operation, send] of Object.entries(elsewhere))
    for (const [more, status, text] of cases)
      await unchanged(`${operation} ${JSON.stringify(more)}`, () => expectReply(send(more), status, text));
});

test("a project of another organization answers like an unknown one, byte for byte", async () => {
  const ref = "proj_zzzzzzzzzzzzzzzzzzzz", said = [];
  for (const words of [["org", "create", "Other"], ["project", "create", "Theirs", "--org", "other", "--ref", ref],
    ["user", "create", "Bob", "--email", "bob@example.com", "--org", "other"], ["token", "create", "--user", "bob@example.com"]]) {
    const end = await runProgram([...words, "--data", gateway.data]);
    assert.equal(end.code, 0, end.all);
    said.push(end.stdout);
  }
  const theirKey = said[1].match(/tr_dev_\w+/)[0], theirToken = said[3].match(/tr_pat_\w+/)[0];
  for (const key of [theirKey, theirToken]) {
    await expectReply(gateway.post(at("dev", "", ref), { name: "SET", value: "theirs" }, { key }), 200, success);
    await expectReply(gateway.get(at("dev", "/SET", ref), { key }), 200, { name: "SET", value: "theirs", isSecret: false });
  }
  const seen = ({ status, text }) => `${status} ${text}`;
  for (const [operation, send] of Object.entries(elsewhere))
    for (const key of [keys.pat, keys.dev])
      await unchanged(operation, async () => {
        const [theirs, nobodys] = [await send({ key, ref }), await send({ key, ref: "proj_yyyyyyyyyyyyyyyyyyyy" })];
        assert.ok([400, 404].includes(theirs.status));
        assert.equal(seen(theirs), seen(nobodys), operation);
      });
  await expectReply(gateway.get(at("dev", "", ref), { key: theirToken }), 200, [{ name: "SET", value: "theirs", isSecret: false }]);
});

test("an unknown name is not found, and an unsupported method lists those that are supported", async () => {
  for (const name of ["NOPE", "a%20b", "%C3%BC", "n".repeat(300)])
    await expectReply(gateway.get(at("dev", `/${name}`)), 404, { error: "Environment variable not found" });
  await expectReply(gateway.put(at("dev", "/NOPE"), { value: "x" }), 404, { error: "Environment variable not found" });
  await expectReply(gateway.get(at("dev", "/%ff")), 400, /percent-encoded UTF-8/);
  const reply = await expectReply(gateway.http.request("PATCH", at()), 405);
  assert.equal(reply.headers.allow, "GET, POST");
});

test("an environment holds at most 1000 variables", async () => {
  const half = (from) => Object.fromEntries([...Array(500)].map((_, i) => [`N_${from + i}`, "x"]));
  await expectReply(upload({ variables: half(0) }, { env: "staging" }), 200, success);
  await expectReply(upload({ variables: half(500) }, { env: "staging" }), 400, /at most 1000 variables/); // WHERE exists already
  await expectReply(gateway.delete(at("staging", "/WHERE"), { key: keys.pat }), 200, success);
  await expectReply(upload({ variables: half(500) }, { env: "staging" }), 200, success);
  await expectReply(upload({ variables: { ONE_MORE: "x" } }, { env: "staging" }), 400, /at most 1000 variables/);
  await expectReply(upload({ variables: { N_7: "y" }, override: true }, { env: "staging" }), 200, success);
  const all = await values("staging");
  assert.deepEqual([Object.keys(all).length, all.N_7, all.N_999], [1000, "y", "x"]);
});

test("simultaneous writes to one project all happen, and one of two first uploads wins", async () => {
  const names = [...Array(40)].map((_, i) => `AT_ONCE_${i}`);
  const replies = await Promise.all(names.map((name) => gateway.post(at("prod"), { name, value: name }, { key: keys.pat })));
  assert.ok(replies.every((reply) => reply.status === 200));
  const now = await values("prod");
  for (const name of names) assert.equal(now[name], name);
  const race = await Promise.all([..."abcdefgh"].map((value) => upload({ variables: { RACE: value } }, { env: "prod" })));
  assert.deepEqual(race.map((reply) => reply.status).sort(), [200, ...Array(7).fill(400)]);
});

// ---- branches ----

const onBranch = (branch, key = keys.pat) => ({ key, headers: { "x-trigger-branch": branch } });
const makeBranch = async (branch) => expectReply(
  gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat }), 200);
const branchValues = async (branch, key) => Object.fromEntries(
  (await expectReply(gateway.get(at("preview"), onBranch(branch, key)), 200)).json.map(({ name, value }) => [name, value]));

test("a branch inherits the variables of preview, and its own override them", async () => {
  await makeBranch("one");
  await makeBranch("two");
  const set = (name, value, more, extra) => expectReply(gateway.post(at("preview"), { name, value, ...extra }, more), 200, success);
  await set("BASE", "preview", { key: keys.pat });
  await set("HUSH", "preview", { key: keys.pat }, { isSecret: true });
  for (const key of [keys.pat, keys.preview]) {
    const { BASE } = await branchValues("one", key);
    assert.equal(BASE, "preview");
  }
  await set("BASE", "one", onBranch("one"));
  await set("HUSH", "one", onBranch("one", keys.preview)); // secret like its parent's
  await set("ONLY", "one", onBranch("one", keys.preview));
  const one = await branchValues("one"), two = await branchValues("two"), preview = await values("preview");
  assert.deepEqual([one.BASE, one.HUSH, one.ONLY], ["one", "<redacted>", "one"]);
  assert.deepEqual([two.BASE, two.ONLY, preview.BASE, preview.ONLY], ["preview", undefined, "preview", undefined]);
  const names = Object.keys(one);
  assert.deepEqual(names, [...names].sort());
  await expectReply(gateway.delete(at("preview", "/BASE"), onBranch("one")), 200, success);
  assert.equal((await branchValues("one")).BASE, "preview");
  await expectReply(gateway.delete(at("preview", "/BASE"), onBranch("one")), 400, { error: "Environment variable value not found" });
  await expectReply(gateway.get(at("preview"), onBranch("no-such-branch")), 404, { error: "Branch not found" });
  await expectReply(gateway.get(at("preview"), onBranch("no-such-branch", keys.preview)), 401, { error: "No matching branch env" });
});

test("an upload to a branch can set its parent's variables too, each by its own rules", async () => {
  await makeBranch("three");
  const send = (body, more = onBranch("three")) => gateway.post(at("preview", "/import"), body, more);
  await expectReply(send({ variables: { P_A: "branch" }, parentVariables: { P_A: "parent", P_B: "parent" } }), 200, success);
  const [branch, preview] = [await branchValues("three"), await values("preview")];
  assert.deepEqual([branch.P_A, branch.P_B, preview.P_A, preview.P_B], ["branch", "parent", "parent", "parent"]);
  await expectReply(send({ variables: { P_A: "no" }, parentVariables: { P_C: "parent" } }), 200, success); // one of the two members is enough
  assert.deepEqual([(await branchValues("three")).P_A, (await values("preview")).P_C], ["branch", "parent"]);
  await expectReply(send({ variables: { P_A: "no" }, parentVariables: { P_B: "no" } }), 400, /already set/);
  await expectReply(send({ variables: { P_A: "" }, parentVariables: { P_D: "parent" }, override: true }), 200);
  const left = await expectReply(send({ variables: { P_E: "branch" }, parentVariables: { TRIGGER_RUN_ID: "x", P_E: "parent" } }), 200);
  assert.deepEqual(left.json.skipped.map(({ key }) => key), ["TRIGGER_RUN_ID"]);
  assert.deepEqual([(await branchValues("three")).P_E, (await values("preview")).P_E, (await values("preview")).P_D], ["branch", "parent", "parent"]);
  await expectReply(send({ variables: { Q_A: "x" }, parentVariables: { Q_B: "x" } }, { key: keys.pat }), 200, success); // not on a branch
  assert.equal((await values("preview")).Q_B, undefined);
});

test("the branch header is ignored outside preview", async () => {
  await expectReply(gateway.post(at("prod"), { name: "NO_BRANCH", value: "p" }, onBranch("no-such-branch")), 200, success);
  assert.equal((await values("prod")).NO_BRANCH, "p");
});

// ---- tasks ----

test("workers get the variables of their environment, before the run and with it", async () => {
  await expectReply(upload({ variables: { FOR_TASKS: "open", FOR_TASKS_SECRET: "hush" }, override: true, isSecret: true }), 200, success);
  const { variables } = (await gateway.get(`/api/v1/projects/${keys.ref}/envvars`)).json;
  assert.deepEqual([variables.FOR_TASKS, variables.FOR_TASKS_SECRET, variables.TRIGGER_API_URL], ["open", "hush", gateway.url]);
  assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, { key: keys.prod })).json.variables.FOR_TASKS, undefined);
  const worker = await Worker.register(gateway, { tasks: ["told"] });
  const { started } = await worker.take(await worker.trigger("told"));
  assert.equal(started.envVars.FOR_TASKS_SECRET, "hush");
  assert.equal(started.envVars.TRIGGER_API_URL, gateway.url);
});

test("workers of a branch get its variables, which override those of preview, and its name", async () => {
  await makeBranch("tasks");
  for (const more of [{ key: keys.pat }, onBranch("tasks")])
    await expectReply(gateway.post(at("preview"), { name: "T_BASE", value: more.headers ? "branch" : "preview" }, more), 200, success);
  await expectReply(gateway.post(at("preview"), { name: "T_PARENT", value: "preview" }, { key: keys.pat }), 200, success);
  const { variables } = (await gateway.get(`/api/v1/projects/${keys.ref}/envvars`, onBranch("tasks", keys.preview))).json;
  assert.deepEqual([variables.T_BASE, variables.T_PARENT, variables.TRIGGER_PREVIEW_BRANCH], ["branch", "preview", "tasks"]);
});

// ---- at rest ----

test("values survive a kill, and are nowhere in clear", async (t) => {
  const own = await startGateway({ t, options: ["--log-level", "debug"] });
  const canaries = ["CANARY_open_1", "CANARY_secret_2", "CANARY_updated_3", "CANARY_refused_4"];
  const set = (body) => expectReply(own.post(at("dev", "/import"), body), 200, success);
  await set({ variables: { OPEN: canaries[0] } });
  await set({ variables: { HIDDEN: canaries[1] }, isSecret: true });
  await expectReply(own.put(at("dev", "/HIDDEN"), { value: canaries[2] }), 200, success);
  await expectReply(own.post(at("dev", "/import"), { variables: { OPEN: canaries[3], "B C": canaries[3] } }), 400); // OPEN is set already
  await expectReply(own.post(at("dev"), `{"name":"X","value":"${canaries[3]}"`), 400);
  const nowhere = (when) => {
    const files = fs.readdirSync(own.data).map((name) => path.join(own.data, name)).filter((file) => fs.statSync(file).isFile());
    assert.ok(files.some((file) => file.endsWith("-wal")) || when === "stopped" || !isSqlite);
    const bytes = [...files.map((file) => fs.readFileSync(file, "latin1")), own.stdout, own.stderr].join("\n");
    for (const canary of canaries) {
      assert.ok(!bytes.includes(canary), `${canary}, ${when}`);
      assert.ok(!bytes.includes(Buffer.from(canary).toString("base64").slice(0, 12)), `${canary} in base64, ${when}`);
      assert.ok(!bytes.includes(Buffer.from(canary).toString("hex")), `${canary} in hex, ${when}`);
    }
  };
  nowhere("serving");
  await own.kill();
  nowhere("killed");
  await own.restart();
  assert.deepEqual((await own.get(at())).json, [
    { name: "HIDDEN", value: "<redacted>", isSecret: true }, { name: "OPEN", value: canaries[0], isSecret: false }]);
  const { variables } = (await own.get(`/api/v1/projects/${keys.ref}/envvars`)).json;
  assert.equal(variables.HIDDEN, canaries[2]);
  await expectReply(own.put(at("dev", "/HIDDEN"), { value: "after the restart" }), 200, success);
  await own.stop();
  nowhere("stopped");
});
