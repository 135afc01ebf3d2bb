// Credentials: the truth table of tokens.table.mjs, one test per row, which names each wrong cell.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { keys } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { begin, closing, connect, end, gateway, trigger } from "../support/js/realtime.mjs";
import { signJwt } from "../support/js/tokens.mjs";
import { grants, rows, scopes, subscriptions, userAsks } from "./tokens.table.mjs";

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
const w = { ref: keys.ref, task: "task:1.table", tag: "tag:of the table", doomed: "" };
const sub = {}; // by environment
let broken, sound;

/** Status and text of a response; for one that never ends, as soon as its head is there. */
function ask(method, target, { key, body, headers = {}, held = false, to = gateway } = {}) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const all = { ...(key && { authorization: `Bearer ${key}` }), ...(text !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }), ...headers };
  return new Promise((resolve, reject) => {
    const request = http.request({ port: to.port, host: "127.0.0.1", method, path: encodeURI(target), headers: all, agent: held ? false : agent });
    request.setTimeout(60_000, () => request.destroy(new Error(`${method} ${target}: no answer`)));
    request.on("error", reject);
    request.on("response", (response) => {
      const { statusCode: status } = response;
      if (held && status < 400) {
        resolve({ status });
        response.on("error", () => {}).destroy();
        return;
      }
      let whole = "";
      response.setEncoding("utf8").on("data", (part) => { whole += part; }).on("end", () => resolve({ status, text: whole, headers: response.headers })).on("error", reject);
    });
    request.end(text);
  });
}

const seconds = () => Math.floor(Date.now() / 1000);
const claims = (more) => ({ sub: sub.dev, pub: true, iss: "https://id.trigger.dev", aud: "https://api.trigger.dev", iat: seconds(), exp: seconds() + 900, ...more });
const token = (list, more) => signJwt(keys.dev, claims({ scopes: list, ...more }));
const forUser = (list, more) => token(list, { act: w.act, ...more });

/** Tokens that grant everything but are wrong in one respect. */
function makeBroken() {
  const all = claims({ scopes: ["admin"] });
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const right = signJwt(keys.dev, all), [head, payload, signature] = right.split(".");
  const with_alg = (alg, digest) => {
    const signed = `${part({ alg })}.${payload}`;
    return `${signed}.${crypto.createHmac(digest, keys.dev).update(signed).digest("base64url")}`;
  };
  const rsa = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rs256 = `${part({ alg: "RS256" })}.${payload}`;
  const without = (name) => { const rest = { ...all }; delete rest[name]; return rest; };
  return {
    "signed by another environment": signJwt(keys.prod, all),
    "signed by nobody": signJwt("", all),
    "signed by a personal token": signJwt(keys.pat, all),
    "of an unknown environment": signJwt(keys.dev, { ...all, sub: "env_unknown" }),
    "of the other environment": signJwt(keys.dev, { ...all, sub: sub.prod }),
    "without sub": signJwt(keys.dev, without("sub")),
    "without pub": signJwt(keys.dev, without("pub")),
    "with pub false": signJwt(keys.dev, { ...all, pub: false }),
    "with pub as a text": signJwt(keys.dev, { ...all, pub: "true" }),
    "without iss": signJwt(keys.dev, without("iss")),
    "of another issuer": signJwt(keys.dev, { ...all, iss: "https://id.trigger.dev/" }),
    "without aud": signJwt(keys.dev, without("aud")),
    "for another audience": signJwt(keys.dev, { ...all, aud: "https://api.example.com" }),
    expired: signJwt(keys.dev, { ...all, exp: seconds() }),
    "expired long ago": signJwt(keys.dev, { ...all, exp: 0 }),
    "with exp as a text": signJwt(keys.dev, { ...all, exp: `${all.exp}` }),
    "with exp null": signJwt(keys.dev, { ...all, exp: null }),
    "not valid yet": signJwt(keys.dev, { ...all, nbf: seconds() + 3600 }),
    "issued in the future": signJwt(keys.dev, { ...all, iat: seconds() + 3600 }),
    "of alg none": `${part({ alg: "none" })}.${payload}.`,
    "of alg none, signed": with_alg("none", "sha256"),
    "of alg HS512": with_alg("HS512", "sha512"),
    "that calls itself HS512": with_alg("HS512", "sha256"),
    "of alg RS256": `${rs256}.${crypto.sign("sha256", Buffer.from(rs256), rsa.privateKey).toString("base64url")}`,
    "that calls itself RS256": with_alg("RS256", "sha256"),
    "of another typ": signJwt(keys.dev, all, { alg: "HS256", typ: "at+jwt" }),
    "with crit": signJwt(keys.dev, all, { alg: "HS256", crit: ["exp"] }),
    "with one part more": `${right}.${signature}`,
    "with an empty part more": `${right}.`,
    "with one part less": `${head}.${payload}`,
    "with an empty signature": `${head}.${payload}.`,
    "with padding": `${head}.${payload}.${signature}=`,
    "with a padded payload": (() => {
      const signed = `${head}.${Buffer.from(JSON.stringify({ ...all, x: "" })).toString("base64")}`;
      return `${signed}.${crypto.createHmac("sha256", keys.dev).update(signed).digest("base64url")}`;
    })(),
    "with another end": `${right.slice(0, -1)}${right.endsWith("A") ? "B" : "A"}`,
    "with other claims": `${head}.${part({ ...all, exp: all.exp + 1 })}.${signature}`,
    "that is huge": signJwt(keys.dev, { ...all, x: "x".repeat(13_000) }),
  };
}

function makeSound() {
  const all = claims({ scopes: ["admin"] }), endless = { ...all };
  delete endless.exp;
  delete endless.iat;
  return { "that never ends": signJwt(keys.dev, endless), "of typ JWT": signJwt(keys.dev, all, { alg: "HS256", typ: "JWT" }),
    "for several audiences": signJwt(keys.dev, { ...all, aud: ["x", "https://api.trigger.dev"] }),
    "valid since now": signJwt(keys.dev, { ...all, nbf: seconds() }) };
}

before(async () => {
  await begin();
  for (const name of ["dev", "prod"]) sub[name] = (await gateway.post("/api/v1/auth/jwt/claims", undefined, { key: keys[name] })).json.sub;
  w.sub = sub.dev;
  const batch = (await gateway.post("/api/v1/tasks/batch", { items: [{ task: w.task, payload: "1", options: { tags: [w.tag] } }] })).json;
  w.worker = (await runProgram(["worker-token", "create", "--data", gateway.data])).stdout.trim();
  w.prodRun = (await trigger({}, { task: w.task, key: keys.prod })).id;
  const signed = (await gateway.post(`/api/v1/projects/${keys.ref}/dev/jwt`, {}, { key: keys.pat })).json.token;
  w.act = JSON.parse(Buffer.from(signed.split(".")[1], "base64url")).act;
  w.waitpoint = (await gateway.post("/api/v1/waitpoints/tokens", {})).json.id;
  Object.assign(w, { batch: batch.id, run: batch.runs[0].id, doomed: (await trigger({}, { task: w.task })).id });
  [broken, sound] = [makeBroken(), makeSound()];
});
after(async () => {
  agent.destroy();
  await end();
});

// ---- which routes there are ----

/** "GET /api/v1/runs/:" for every row of the tables of routes in src. */
function routesOfTheProgram() {
  const folder = path.join(top, "src"), found = [], areas = new Set();
  for (const file of fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".c"))) {
    const text = fs.readFileSync(path.join(folder, file), "utf8");
    const macros = Object.fromEntries([...text.matchAll(/^#define (\w+) (.*)$/gm)].map(([, name, value]) => [name, value]));
    const written = (pieces) => (pieces.match(/"[^"]*"|\w+/g) ?? []).map((piece) => piece.startsWith('"') ? piece.slice(1, -1) : written(macros[piece])).join("");
    const table = /^static const struct route routes\[\] = \{(.*?)^\};/ms.exec(text)?.[1] ?? "";
    const rows = [...table.matchAll(/\.method = HTTP_(\w+)_,\s*\.path = ((?:"[^"]*"|\w+)(?:\s+(?:"[^"]*"|\w+))*),/g)];
    assert.equal(rows.length, table.match(/\bHTTP_/g)?.length ?? 0, `every row of ${file} can be read`);
    found.push(...rows.map(([, method, pattern]) => `${method} ${written(pattern).replace(/\{\w+\*\}/g, "*").replace(/\{\w+\}/g, ":")}`));
    for (const [, name] of text.matchAll(/^const struct area (\w+)_area = /gm)) areas.add(name);
  }
  const used = [...fs.readFileSync(path.join(folder, "api/router/areas.def"), "utf8").matchAll(/^AREA\((\w+)\)/gm)].map(([, name]) => name);
  assert.deepEqual([...areas].sort(), used.sort(), "the areas of src and those that are looked into");
  return found;
}

test("the table of credentials has a row for every route of the program, and no others", () => {
  const routes = routesOfTheProgram(), known = new Set(rows.map(({ route }) => route));
  assert.equal(new Set(routes).size, routes.length, "no route twice");
  assert.deepEqual(routes.filter((route) => !known.has(route)), [], "routes without a row in tests/integration/tokens.table.mjs");
  assert.deepEqual([...known].filter((route) => !routes.includes(route)), [], "rows without a route");
});

// ---- the table ----

/** Every credential: its name, the credential itself, and the statuses that a row requires for it. */
function credentials(row) {
  const takes = row.takes.split(" "), ok = row.ok ?? [200], no = [401];
  const anyone = takes.includes("anyone"), of = (kind) => anyone || takes.includes(kind) ? ok : no;
  const asked = row.asks?.(w) ?? [];
  const may = (...list) => !takes.includes("token") ? of("token") : list.some((scope) => asked.some((one) => grants(scope, one))) ? ok : [403];
  const foreign = takes.includes("key") ? row.foreign ?? ok : of("key");
  const cells = [
    ["no credential", undefined, anyone ? ok : no],
    ["a secret key", keys.dev, of("key")],
    ["the key of another environment", keys.prod, foreign],
    ["an unknown key", "tr_dev_zzzzzzzzzzzzzzzzzzzzzzzz", anyone ? ok : no],
    ["a key and more", `${keys.dev}x`, anyone ? ok : no],
    ["a preview key without its branch", keys.preview, anyone ? ok : no],
    ["a personal token", keys.pat, of("personal")],
    ["an unknown personal token", `tr_pat_${"z".repeat(40)}`, anyone ? ok : no],
    ["a worker's token", w.worker, of("worker")],
    ["an unknown worker's token", `tr_wgt_${"z".repeat(40)}`, anyone ? ok : no],
    ["a token without scopes", signJwt(keys.dev, claims({})), may()],
    ["a token of no scope", token([]), may()],
    ["a token whose scopes are a text", signJwt(keys.dev, claims({ scopes: "admin" })), may()],
    ["a token of the other environment, of everything", signJwt(keys.prod, claims({ sub: sub.prod, scopes: ["admin"] })), takes.includes("token") ? row.foreign ?? ok : of("token")],
    ["a token of several scopes", token(["write:tags", ...asked.map(([action, type, id]) => `${action}:${type}${id ? `:${id}` : ""}`)]), takes.includes("token") ? ok : of("token")],
  ];
  for (const [what, key] of Object.entries(broken)) cells.push([`a token ${what}`, key, /huge/.test(what) ? [431] : anyone ? ok : no]);
  for (const [what, key] of Object.entries(sound)) cells.push([`a token ${what}`, key, may("admin")]);
  const tokenRoute = takes.includes("token");
  for (const scope of tokenRoute ? scopes(w) : ["admin", "*:all", "read:all", `read:runs:${w.run}`, "write:runs", "trigger:tasks"])
    cells.push([`a token of ${JSON.stringify(scope)}`, token([scope]), may(scope)]);
  return [...cells, ...ofUsers(row, ok, no, may)];
}

/** Tokens that were signed for a user: judged like other public tokens, and by their scopes alone where the table
 *  says so. */
function ofUsers(row, ok, no, may) {
  const takes = row.takes.split(" "), isFor = takes.includes("user"), triggers = row.asks?.(w).some(([action]) => /^(trigger|batchTrigger)$/.test(action));
  const due = (scope, plain = true) => {
    if (!isFor || !plain) return triggers && grants(scope, ["write", "tasks"]) ? ok : may(scope);
    return userAsks(row).some((one) => grants(scope, one)) ? ok : [403];
  };
  const list = ["admin", "*:all", "read:all", "write:all", "write:tasks", "read:runs", "write:queues", "read:envvars", "write:deployments", "write:batch"];
  return [
    ...list.map((scope) => [`a user's token of ${scope}`, forUser([scope]), due(scope)]),
    ["a user's token of no scope", forUser([]), isFor ? [403] : may()],
    ["a user's token without columns", forUser(["admin"], { realtime: { skipColumns: ["tags"] } }), due("admin", false)],
    ...(takes.includes("token") ? [] : [["a user's token for one use", forUser(["admin"], { otu: true, jti: crypto.randomUUID() }), due("admin", false)]]),
    ["a token of another user", forUser(["admin"], { act: { ...w.act, sub: "user_nobody" } }), takes.includes("anyone") ? ok : no],
    ["a token of an unknown personal token", forUser(["admin"], { act: { ...w.act, pat: "000000000000" } }), takes.includes("anyone") ? ok : no],
    ["a token that names only a user", forUser(["admin"], { act: { sub: w.act.sub } }), may("admin")],
  ];
}

const limited = async (items, count, work) => {
  let at = 0;
  await Promise.all(Array.from({ length: count }, async () => { while (at < items.length) await work(items[at++]); }));
};

const refusals = {
  401: (key) => ({ title: key ? undefined : "Unauthorized" }),
  403: () => ({ error: "Unauthorized", code: "unauthorized", param: "access_token", type: "authorization" }),
};

describe("the table of credentials", () => {
  for (const row of rows.filter(({ takes }) => !takes.includes("socket"))) {
    test(`${row.route}${row.what ? ` ${row.what}` : ""} accepts ${row.takes.replace(" ", " and ")}`, async () => {
      const [method, pattern] = row.route.split(" "), { path: target, query, ...more } = row.at(w), wrong = [];
      await limited(credentials(row), row.held ? 8 : 32, async ([who, key, expected]) => {
        const { status, text } = await ask(method, `${target ?? pattern}${query ? `?${query}` : ""}`, { key, ...more, held: row.held });
        const right = expected.includes(status) && (expected === row.ok || !refusals[status] || status === row.ok?.[0] ||
          Object.entries(refusals[status](key)).every(([name, value]) => JSON.parse(text)[name] === value));
        if (!right) wrong.push(`${who}: ${status} ${text ?? ""}, not ${expected}`);
      });
      assert.equal(wrong.length, 0, `${wrong.length} cells are wrong:\n${wrong.slice(0, 20).join("\n")}`);
    });
  }

  test("GET /realtime/v1/ws accepts what the subscriptions accept", async () => {
    const wrong = [];
    const row = { takes: "key token", asks: () => [] };
    const cells = credentials(row).map(([who, key, expected]) => ({ who, key, enters: !!key && (expected[0] === 200 || expected[0] === 403) }));
    await limited(cells, 16, async ({ who, key, enters }) => {
      const left = [];
      const t = { after: (leave) => left.push(leave) };
      try {
        let socket;
        if (!enters) {
          const refused = await connect(t, { token: key, hello: null }).catch((error) => error);
          if (key ? ![401, 431].includes(refused.status) : refused.status) wrong.push(`${who}: the upgrade was answered ${refused.status}`);
          socket = await connect(t, { token: null, hello: null });
          socket.send({ op: "hello", token: key });
          const { code } = await closing(socket);
          if (code !== 4001) wrong.push(`${who}: after hello ${code}, not 4001`);
          return;
        }
        socket = await connect(t, { token: key });
        for (const [id, { what, asks, filter }] of subscriptions.entries()) {
          const scope = JSON.parse(/^a token of (".*")$/.exec(who)?.[1] ?? "null") ?? /^a user's token of ([\w:*]+)$/.exec(who)?.[1];
          const everything = /never|typ JWT|audiences|since now|everything|secret|another environment|without columns|only a user/.test(who);
          const may = everything || (scope !== undefined && asks(w).some((one) => grants(scope, one)));
          socket.send({ op: "sub", id, ...filter(w) });
          const { op, code } = await socket.next((one) => one.id === id && (one.op === "ok" || one.op === "error"));
          if (op !== (may ? "ok" : "error") || (!may && code !== "forbidden")) wrong.push(`${who} on ${what}: ${op} ${code ?? ""}`);
        }
      } finally {
        await Promise.all(left.map((leave) => leave()));
      }
    });
    assert.equal(wrong.length, 0, `${wrong.length} cells are wrong:\n${wrong.slice(0, 20).join("\n")}`);
  });
});
