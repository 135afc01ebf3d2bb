// Organizations, projects, users and their tokens, made with the program as an operator does and read as the official
// clients do; and what is cut off when a credential becomes invalid.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { EventStream } from "../support/js/event_stream.mjs";
import { isSqlite, keys, startGateway, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { RunsSocket } from "../support/js/runs.mjs";
import { publicToken } from "../support/js/tokens.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const fromSdk = (file) => import(pathToFileURL(path.join(here, "../conformance/sdk-v4/node_modules/@trigger.dev", file)).href);
const { auth, configure, runs } = await fromSdk("sdk/dist/esm/v3/index.js");
const schemas = await fromSdk("core/dist/esm/v3/schemas/api.js");
const once = { retry: { maxAttempts: 1 } };

let gateway;
before(async () => {
  gateway = await startGateway();
  configure({ baseURL: gateway.url, secretKey: keys.dev });
});
after(() => gateway.stop());

const run = (...words) => runProgram([...words, "--data", gateway.data]);
/** Output of the program when the command succeeds. */
async function tell(...words) {
  const { code, stdout, all } = await run(...words);
  assert.equal(code, 0, `${words.join(" ")}: ${all}`);
  return stdout;
}
async function makeToken(email, name = "test") {
  return (await tell("token", "create", "--user", email, "--name", name)).trim();
}
const target = (ref, rest = "") => `/api/v1/projects/${ref}${rest}`;

describe("a personal token", () => {
  const shop = "proj_shop00000001";
  let token, shopKeys;
  before(async () => {
    await tell("org", "create", "Acme & Sons");
    const made = await tell("project", "create", "Shop", "--org", "acme-sons", "--ref", shop);
    shopKeys = Object.fromEntries([...made.matchAll(/^ {2}(\w+) +(tr_\w+)$/gm)].map((match) => match.slice(1)));
    await tell("user", "create", "Ada", "--email", "ada@example.com", "--org", "acme-sons");
    token = await makeToken("ada@example.com");
  });
  const asked = (rest, key = token) => gateway.get(rest, { key });

  test("learns who its user is, in the form that the CLI checks", async () => {
    const { json } = await asked(`/api/v2/whoami?projectRef=${shop}`);
    const who = schemas.WhoAmIResponseSchema.parse(json);
    assert.equal(who.email, "ada@example.com");
    assert.deepEqual([who.project.name, who.project.orgTitle], ["Shop", "Acme & Sons"]);
    assert.equal((await asked(`/api/v2/whoami?projectRef=${keys.ref}`)).json.project, undefined);
    schemas.WhoAmIResponseSchema.parse((await asked("/api/v2/whoami", keys.pat)).json);
  });

  test("lists its organization and the projects of it", async () => {
    const organizations = schemas.GetOrgsResponseBody.parse((await asked("/api/v1/orgs")).json);
    assert.deepEqual(organizations.map(({ title, slug }) => [title, slug]), [["Acme & Sons", "acme-sons"]]);
    for (const from of ["/api/v1/projects", "/api/v1/orgs/acme-sons/projects", `/api/v1/orgs/${organizations[0].id}/projects`]) {
      const [project, ...others] = schemas.GetProjectsResponseBody.parse((await asked(from)).json);
      assert.deepEqual([project.externalRef, project.name, project.slug, project.organization.slug, others.length], [shop, "Shop", "shop", "acme-sons", 0]);
      assert.ok(Math.abs(project.createdAt - Date.now()) < 60_000);
    }
    schemas.GetProjectResponseBody.parse((await asked(target(shop))).json);
    assert.deepEqual((await asked("/api/v1/projects", keys.pat)).json.map(({ externalRef }) => externalRef), [keys.ref]);
  });

  test("reads the keys of its environments", async () => {
    for (const env of ["dev", "staging", "prod", "preview"]) {
      const { json } = await asked(target(shop, `/${env}`));
      assert.deepEqual([json.apiKey, json.name], [shopKeys[env], "Shop"]);
      assert.ok(json.projectId && json.apiUrl);
    }
  });

  test("gets the same bytes for another organization's project as for one that does not exist", async () => {
    const bytes = async (key, ref, [method, rest, body]) => {
      const { status, text } = await gateway.http.request(method, target(ref, rest), { key, body });
      assert.equal(status, 404, `${method} ${rest}`);
      return text;
    };
    const branch = { env: "preview", branch: "x" };
    const calls = [["GET", ""], ["GET", "/dev"], ["GET", "/runs"], ["GET", "/branches"], ["POST", "/branches", branch],
      ["POST", "/branches/archive", branch], ["GET", "/envvars/prod"], ["POST", "/envvars/prod", { name: "A", value: "1" }]];
    for (const call of calls) {
      assert.equal(await bytes(token, keys.ref, call), await bytes(token, "proj_doesnotexist0000", call));
      assert.equal(await bytes(keys.pat, shop, call), await bytes(keys.pat, "proj_doesnotexist0000", call));
    }
    for (const [key, foreign] of [[token, "my-organization"], [keys.pat, "acme-sons"]]) {
      const theirs = await asked(`/api/v1/orgs/${foreign}/projects`, key), nobodys = await asked("/api/v1/orgs/none/projects", key);
      assert.deepEqual([theirs.status, theirs.text], [404, nobodys.text]);
    }
  });

  test("runs.list of the SDK needs the project, and gives its environments' runs", async () => {
    const trigger = async (env) => (await gateway.post("/api/v1/tasks/t/trigger", { payload: 1 }, { key: shopKeys[env] })).json.id;
    const dev = await trigger("dev"), staging = await trigger("staging"), prod = await trigger("prod");
    await auth.withAuth({ accessToken: token }, async () => {
      const ids = async (...more) => (await runs.list(shop, ...more)).data.map(({ id }) => id);
      assert.deepEqual(await ids(), [prod, staging, dev]);
      assert.deepEqual(await ids({ env: "staging" }), [staging]);
      assert.deepEqual(await ids({ env: ["dev", "prod"], limit: 1 }), [prod]);
      const walked = [];
      for await (const one of await runs.list(shop, { env: ["dev", "prod"], limit: 1 })) walked.push(one.id);
      assert.deepEqual(walked, [prod, dev]);
      await assert.rejects(runs.list(keys.ref, { env: "dev" }, once), { status: 404 });
      await assert.rejects(runs.list({ limit: 1 }, once), { status: 401 });
      await assert.rejects(runs.retrieve(dev, once), { status: 401 });
    });
    assert.equal((await gateway.get(target(shop, "/runs?filter%5Benv%5D=nowhere"), { key: token })).status, 400);
    assert.equal((await gateway.get(target(shop, "/runs"), { key: shopKeys.dev })).status, 401);
  });

  test("in dev, runs and schedules show the name of a user of the project's own organization", async () => {
    for (const [key, ref, name] of [[shopKeys.dev, shop, "Ada"], [keys.dev, keys.ref, "Admin"]]) {
      await Worker.register(gateway, { tasks: [{ id: "daily", triggerSource: "schedule" }], key, ref });
      const schedule = { task: "daily", cron: "0 0 * * *", deduplicationKey: "whose" };
      const { environments } = (await gateway.post("/api/v1/schedules", schedule, { key })).json;
      await gateway.post("/api/v1/tasks/t/trigger", { payload: 1 }, { key });
      const { data } = (await gateway.get("/api/v1/runs", { key })).json;
      assert.deepEqual([environments[0].userName, data[0].env.user], [name, name]);
    }
  });

  test("lists all organizations that have its user's address, at once and after a restart", async () => {
    const refs = async (rest, key) => (await asked(rest, key)).json.map(({ externalRef }) => externalRef).sort();
    await tell("org", "create", "Guild");
    await tell("project", "create", "Hall", "--org", "guild", "--ref", "proj_hall00000001");
    await tell("user", "create", "Eve", "--email", "eve@example.com", "--org", "guild");
    const eve = await makeToken("eve@example.com");
    assert.deepEqual(await refs("/api/v1/projects", eve), ["proj_hall00000001"]);
    await tell("user", "create", "Eve", "--email", "eve@example.com", "--org", "acme-sons");
    for (let i = 0; i < 2; i++) {
      const second = await makeToken("eve@example.com");
      for (const key of [eve, second]) {
        assert.deepEqual(await refs("/api/v1/projects", key), ["proj_hall00000001", shop]);
        assert.deepEqual(await refs("/api/v1/orgs/guild/projects", key), ["proj_hall00000001"]);
        assert.deepEqual(await refs("/api/v1/orgs/acme-sons/projects", key), [shop]);
        assert.deepEqual((await asked("/api/v1/orgs", key)).json.map(({ slug }) => slug).sort(), ["acme-sons", "guild"]);
        assert.equal((await asked(target(shop, "/envvars/dev"), key)).status, 200);
        for (const rest of [target(keys.ref), target(keys.ref, "/envvars/dev"), "/api/v1/orgs/my-organization/projects"]) assert.equal((await asked(rest, key)).status, 404);
      }
      assert.deepEqual(await refs("/api/v1/projects"), [shop], "a user of one of them sees that one");
      await gateway.stop();
      await gateway.restart();
    }
  });

  test("a key of one project cannot read another project", async () => {
    const { id } = (await gateway.post("/api/v1/tasks/t/trigger", { payload: 1 }, { key: shopKeys.dev })).json;
    for (const key of [keys.dev, shopKeys.prod]) assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key })).status, 404);
    assert.equal((await gateway.get(`/api/v3/runs/${id}`, { key: shopKeys.dev })).status, 200);
  });
});

/** Opens everything that stays open with a dev credential. ends() resolves when all of it is closed. */
async function openEverything(t, token) {
  const socket = await RunsSocket.open({ port: gateway.port, token, hello: {} });
  t.after(() => socket.cut());
  await socket.next("welcome");
  socket.send({ op: "sub", id: 1, all: true });
  await socket.next("ok");
  const headers = { authorization: `Bearer ${token}`, "x-trigger-electric-version": "1.0.14" };
  const stream = await EventStream.open(`${gateway.url}/realtime/v1/events?all=1`, { headers });
  t.after(() => stream.cut());
  assert.equal(stream.status, 200, stream.text);
  await stream.next("ok");
  const first = await gateway.get("/realtime/v1/runs?tags=nobody&offset=-1", { headers });
  const { "electric-handle": handle, "electric-offset": offset } = first.headers;
  const held = { over: false }, before = await gateway.metric("runcast_polls");
  gateway.get(`/realtime/v1/runs?tags=nobody&offset=${offset}&handle=${handle}&live=true&cursor=1`, { headers }).then((answer) => Object.assign(held, { over: true, answer }), () => { held.over = true; });
  await until(async () => held.over || (await gateway.metric("runcast_polls")) > before, { what: "the poll is held" });
  return {
    isOpen: () => !socket.ws.isClosed && !stream.ended && !held.over,
    async ends() {
      await until(() => socket.ws.isClosed && stream.ended && held.over, { what: "everything open ends" });
      const { code, reason } = await socket.closed;
      assert.deepEqual([code, reason], [4001, "the credential was revoked"]);
      const said = stream.events.at(-1);
      assert.deepEqual([said.type, said.data], ["error", { op: "error", code: "bad_token", message: reason }]);
      assert.ok(held.answer, "the poll is answered, not cut");
    },
  };
}

describe("when a credential ends", () => {
  const works = async (key) => (await gateway.get("/api/v1/runs?page%5Bsize%5D=1", { key })).status;

  test("a token that was revoked, by its id or by itself, is 401", async () => {
    for (const byId of [true, false]) {
      const token = await makeToken("admin@example.com", "short-lived");
      const seen = (await gateway.get("/api/v1/projects", { key: token })).status;
      const [line] = (await tell("token", "list")).split("\n").filter((one) => one.endsWith("short-lived"));
      assert.match(await tell("token", "revoke", byId ? line.split(" ")[0] : token), /^revoked short-lived/);
      const after = await gateway.get("/api/v1/projects", { key: token });
      assert.deepEqual([seen, after.status], [200, 401]);
      assert.ok(!(await tell("token", "list")).includes("short-lived"));
    }
  });

  test("a key rotated without a grace period ends everything that was open with it, and the tokens that it signed", async (t) => {
    const signed = await publicToken(gateway, { key: keys.prod, scopes: ["read:runs", "read:tags"] });
    const open = [await openEverything(t, keys.prod), await openEverything(t, signed)];
    const bystander = await openEverything(t, keys.dev);
    assert.ok(open.every((one) => one.isOpen()));
    const renewed = (await tell("keys", "rotate", "prod", "--project", keys.ref, "--grace", "0")).trim();
    assert.match(renewed, /^tr_prod_\w{24}$/);
    assert.deepEqual([await works(keys.prod), await works(signed), await works(renewed)], [401, 401, 200]);
    for (const one of open) await one.ends();
    assert.ok(bystander.isOpen());
    assert.ok((await tell("keys")).includes(renewed));
    keys.prod = renewed;
  });

  test("with a grace period both keys work until it ends, and then the connections of the old key end", async (t) => {
    const old = keys.staging;
    const signed = await publicToken(gateway, { key: old, scopes: ["read:runs", "read:tags"] });
    const renewed = (await tell("keys", "rotate", "staging", "--project", keys.ref, "--grace", "15s")).trim();
    const over = Date.now() + 15_000;
    const open = await openEverything(t, old), second = await openEverything(t, signed), other = await openEverything(t, renewed);
    assert.deepEqual([await works(old), await works(signed), await works(renewed)], [200, 200, 200]);
    const shown = async (key) => (await gateway.get(target(keys.ref, "/staging"), { key })).json.apiKey;
    assert.deepEqual([await shown(old), await shown(renewed)], [old, renewed]); // a holder of the old key does not get the new one
    assert.ok(Date.now() < over && open.isOpen());
    const late = await publicToken(gateway, { key: renewed, scopes: ["read:runs"] });
    await until(() => Date.now() >= over - 50 || !open.isOpen(), { what: "the grace period has ended" });
    await open.ends();
    await second.ends();
    assert.ok(Date.now() >= over - 50);
    assert.deepEqual([await works(old), await works(signed), await works(renewed), await works(late)], [401, 401, 200, 200]);
    assert.ok(other.isOpen());
    keys.staging = renewed;
  });

  test("an archived branch ends what is open on it", async (t) => {
    const body = { env: "preview", branch: "open" };
    await gateway.post(target(keys.ref, "/branches"), body, { key: keys.pat });
    const headers = { "x-trigger-branch": "open" };
    const claims = await gateway.post("/api/v1/auth/jwt", { claims: { scopes: ["read:runs", "read:tags"] } }, { key: keys.preview, headers });
    const open = await openEverything(t, claims.json.token);
    assert.ok(open.isOpen());
    await gateway.post(target(keys.ref, "/branches/archive"), body, { key: keys.pat });
    await open.ends();
  });

  test("a worker whose held dequeue used a rotated key is refused", async () => {
    const waiting = gateway.post("/engine/v1/dev/dequeue", { currentWorker: "none", oldWorkers: [] }, { key: keys.dev });
    const renewed = (await tell("keys", "rotate", "dev", "--project", keys.ref, "--grace", "0")).trim();
    await waiting;
    assert.equal((await gateway.post("/engine/v1/dev/dequeue", { currentWorker: "none", oldWorkers: [] }, { key: keys.dev })).status, 401);
    Object.assign(keys, { dev: renewed });
    gateway.http.key = renewed;
  });
});

describe("the commands", () => {
  test("invalid commands report why and create nothing", async () => {
    const all = async () => [await tell("org", "list"), await tell("project", "list"), await tell("user", "list"), await tell("token", "list"), await tell("keys")];
    const before = await all(), ada = ["--email", "x@example.com", "--org", "acme-sons"];
    const wrong = [
      [["org"], /^runcast: org: incomplete; use runcast org create, list, rename or delete \(/], [["org", "remove", "x"], /not a command/], [["keys", "show"], /^runcast: keys show: not a command; runcast help keys/], [["token", "create"], /--user EMAIL/],
      [["org", "create"], /^runcast: NAME is missing; use runcast org create NAME \[--slug SLUG\] \(/], [["org", "create", "a", "b"], /b: not for runcast org create;/], [["org", "create", "a", "--email", "b"], /--email: not an option/],
      [["org", "create", ""], /1 to 100 bytes/], [["org", "create", "x".repeat(101)], /1 to 100 bytes/], [["org", "create", "a\u0007b"], /control/],
      [["org", "create", "ACME sons"], /acme-sons already/], [["project", "create", "a"], /several organizations/],
      [["project", "create", "a", "--org", "nobody"], /organization not found/], [["project", "create", "a", "--org", "acme-sons", "--ref", "x"], /a ref is proj_/],
      [["project", "create", "a", "--org", "acme-sons", "--ref", keys.ref], /with this ref already exists/], [["project", "create", "--org", "acme-sons"], /missing/],
      [["user", "create", "a", "--org", "acme-sons"], /--email/], [["user", "create", "a", ...ada, "--email", "ada"], /not an email address; give --email/],
      [["user", "create", "a", ...ada, "--email", "a@b@c.de"], /not an email address; give --email/], [["user", "create", "a", ...ada, "--email", "bob@x.y"], /^runcast: bob@x\.y: .*two or more letters/], [["user", "create", ...ada], /^runcast: NAME is missing; use runcast user create NAME --email EMAIL \[--org SLUG\] \(/], [["user", "create", "a", ...ada, "--email", "ada@example.com"], /already/],
      [["user", "create", "a", ...ada, "--email", "\"x\"@example.com"], /not an email address; give --email/], [["token", "create", "--user", "nobody@example.com"], /user not found; runcast user list/],
      [["token", "revoke", "0123456789ab"], /token not found/], [["token", "revoke", keys.dev], /token not found/], [["token", "revoke"], /use runcast token revoke ID \(/], [["keys", "rotate"], /use runcast keys rotate ENV \[--project REF\] \[--grace 24h\] \(/],
      [["keys", "rotate", "dev"], /several projects/], [["keys", "rotate", "test", "--project", keys.ref], /dev, staging, prod or preview/],
      [["keys", "rotate", "dev", "--project", "proj_none"], /project not found/], [["keys", "rotate", "dev", "--project", keys.ref, "--grace", "soon"], /max 365d/],
      [["keys", "rotate", "dev", "--project", keys.ref, "--grace", "366d"], /max 365d/], [["keys", "rotate", "dev", "--project", keys.ref, "--grace", "-1h"], /max 365d/],
    ];
    for (const [words, said] of wrong) {
      const { code, stdout, stderr } = await run(...words);
      assert.ok(code === 1 || code === 2, words.join(" "));
      assert.equal(stdout, "", words.join(" "));
      assert.match(stderr, said);
    }
    for (const words of [["org", "list", "--nmae", "x"], ["serve", "now"]]) assert.equal((await run(...words)).code, 2, words.join(" "));
    assert.deepEqual(await all(), before);
  });

  test("only the owner can open the admin socket, and garbage sent to it does no harm", async () => {
    const file = path.join(gateway.data, "admin.sock");
    assert.equal(fs.statSync(file).mode & 0o777, 0o600);
    const ask = (bytes) => new Promise((resolve, reject) => {
      let text = "";
      const socket = net.connect(file, () => socket.write(bytes));
      socket.on("data", (part) => { text += part; }).on("close", () => resolve(text)).on("error", reject);
    });
    for (const bytes of ["\n", "keys\n", "{}\n", "[1]\n", "[\"keys\"", "[[]]\n", `${JSON.stringify(Array(17).fill("x"))}\n`, "x".repeat(20_000)])
      if (bytes.endsWith("\n") || bytes.length > 4096) assert.match(await ask(bytes).catch(() => "error: reset"), /^error: /, bytes.slice(0, 30));
    assert.match(await ask("[\"org\",\"list\"]\n"), /^my-organization /);
    const { code, stderr } = await run("org", "create", "x".repeat(5000));
    assert.deepEqual([code, stderr], [1, "runcast: command too long (max 4096 bytes)\n"]);
  });

  if (isSqlite) test("commands work without a gateway, and what they made is there when it starts", async () => {
    const token = await makeToken("ada@example.com");
    await gateway.stop();
    const offline = await makeToken("admin@example.com", "offline");
    assert.match(await tell("token", "list"), /offline/);
    const preview = (await tell("keys", "rotate", "preview", "--project", keys.ref, "--grace", "1h")).trim();
    await gateway.restart();
    for (const key of [token, offline]) assert.equal((await gateway.get("/api/v1/projects", { key })).status, 200);
    const headers = { "x-trigger-branch": "late" };
    await gateway.post(target(keys.ref, "/branches"), { env: "preview", branch: "late" }, { key: offline });
    for (const key of [preview, keys.preview]) assert.equal((await gateway.get("/api/v1/runs", { key, headers })).status, 200);
  });

  test("no secret is in the log, nor in clear text in the database", async () => {
    const secrets = [...(await tell("keys")).matchAll(/tr_\w+/g)].map(([one]) => one);
    const token = await makeToken("ada@example.com", "canary");
    await gateway.get("/api/v1/projects", { key: token });
    const files = fs.readdirSync(gateway.data).filter((name) => name.startsWith("runcast.db")).map((name) => fs.readFileSync(path.join(gateway.data, name)));
    for (const secret of [token, ...secrets, keys.pat])
      for (const bytes of [gateway.stderr, ...files]) assert.ok(!bytes.includes(secret));
  });
});
