// Rotation of the encryption key while the gateway serves: sealed data open with the new key only, and a kill at any
// moment leaves a database that one of the two keys opens.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { keys, sleep, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const at = (more = "", env = "dev") => `/api/v1/projects/${keys.ref}/envvars/${env}${more}`;
const hex = (digit) => digit.repeat(64);
const keyFile = (gateway, more = "") => path.join(gateway.data, `encryption.key${more}`);
const rotate = (gateway, env = {}) => runProgram(["vault", "rotate", "--data", gateway.data], { env });

async function setSome(gateway, count = 20) {
  const variables = Object.fromEntries([...Array(count)].map((_, i) => [`V_${i}`, `value ${i}`]));
  const reply = await gateway.post(at("/import"), { variables, override: true });
  assert.equal(reply.status, 200, reply.text);
  return variables;
}

/** Asserts that keys and variables are unchanged. */
async function check(gateway, variables) {
  const { status, json } = await gateway.get(at());
  assert.equal(status, 200);
  assert.deepEqual(Object.fromEntries(json.map(({ name, value }) => [name, value])), variables);
  for (const key of [keys.dev, keys.staging, keys.prod])
    assert.equal((await gateway.get("/api/v1/runs", { key })).status, 200);
}

test("a generated key takes effect while calls are served, and the old one opens nothing any more", async (t) => {
  const gateway = await startGateway({ t });
  const variables = await setSome(gateway, 300);
  const old = fs.readFileSync(keyFile(gateway), "utf8");
  let going = true, served = 0;
  const traffic = (async () => {
    for (let i = 0; going; i++) {
      const name = `BUSY_${i % 10}`;
      const reply = await gateway.put(at(`/${name}`), { value: String(i) });
      if (reply.status === 404) await gateway.post(at(), { name, value: String(i) });
      else assert.equal(reply.status, 200, reply.text);
      variables[name] = String(i);
      served++;
    }
  })();
  await until(() => served > 12);
  for (let round = 0; round < 3; round++) {
    const before = served;
    const end = await rotate(gateway);
    assert.equal(end.code, 0, end.all);
    assert.match(end.stdout, /^\d+ values are sealed with encryption key [0-9a-f]{8} now\n$/);
    assert.ok(Number.parseInt(end.stdout, 10) >= 304, end.stdout);
    await until(() => served > before + 3, { what: "writes continue" });
  }
  going = false;
  await traffic;
  await check(gateway, variables);
  assert.equal(fs.existsSync(keyFile(gateway, ".next")), false);
  const now = fs.readFileSync(keyFile(gateway), "utf8");
  assert.notEqual(now, old);
  assert.equal((fs.statSync(keyFile(gateway)).mode & 0o777).toString(8), "600");
  await gateway.kill();
  await gateway.restart();
  await check(gateway, variables);
  await gateway.stop();

  fs.writeFileSync(keyFile(gateway), old);
  await gateway.restart({ ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /sealed with another encryption key, which is [0-9a-f]{8}, not with [0-9a-f]{8}; put the right one back as \S+encryption\.key/);
  fs.writeFileSync(keyFile(gateway), now);
  await gateway.restart();
  await check(gateway, variables);
  for (const key of [old, now]) assert.ok(!(gateway.stdout + gateway.stderr).includes(key.trim()));
  await gateway.stop();
});

test("after a rotation new data can be sealed, and keys can be replaced", async (t) => {
  const gateway = await startGateway({ t });
  const program = async (...words) => {
    const end = await runProgram([...words, "--data", gateway.data]);
    assert.equal(end.code, 0, end.all);
    return end.stdout;
  };
  await program("project", "create", "Second", "--ref", "proj_zzzzzzzzzzzzzzzzzzzz");
  await program("vault", "rotate");
  const key = (await program("keys", "rotate", "dev", "--project", "proj_zzzzzzzzzzzzzzzzzzzz")).match(/tr_dev_\w+/)[0];
  await program("project", "create", "Third");
  await program("vault", "rotate");
  const printed = await program("keys");
  assert.equal(printed.trim().split("\n").length, 12);
  await gateway.kill();
  await gateway.restart();
  assert.equal((await gateway.get("/api/v1/runs", { key })).status, 200);
  assert.equal(await program("keys"), printed);
  await gateway.stop();
});

test("a key from the environment is rotated to another one, which the next start requires", async (t) => {
  const gateway = await startGateway({ t, env: { RUNCAST_ENCRYPTION_KEY: hex("a") } });
  const variables = await setSome(gateway);
  const without = await rotate(gateway);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /^runcast: .*RUNCAST_NEXT_ENCRYPTION_KEY/);
  const same = await rotate(gateway, { RUNCAST_NEXT_ENCRYPTION_KEY: hex("a") });
  assert.match(same.stderr, /^runcast: the new encryption key is already in use\n$/);
  const end = await rotate(gateway, { RUNCAST_NEXT_ENCRYPTION_KEY: hex("b") });
  assert.equal(end.code, 0, end.all);
  await check(gateway, variables);
  variables.LATER = "x";
  assert.equal((await gateway.post(at(), { name: "LATER", value: "x" })).status, 200);
  await gateway.stop();

  await gateway.restart({ ready: false });
  assert.equal((await gateway.ended()).code, 1);
  assert.match(gateway.stderr, /sealed with another encryption key.*set the right one as RUNCAST_ENCRYPTION_KEY/);
  await gateway.restart({ env: { RUNCAST_ENCRYPTION_KEY: hex("a"), RUNCAST_NEXT_ENCRYPTION_KEY: hex("b") } });
  await check(gateway, variables);
  assert.match(gateway.stderr, /the database is sealed with the next encryption key/);
  await gateway.stop();
  await gateway.restart({ env: { RUNCAST_ENCRYPTION_KEY: hex("b") } });
  await check(gateway, variables);
  await gateway.stop();
  for (const secret of [hex("a"), hex("b")]) assert.ok(!(gateway.stdout + gateway.stderr).includes(secret));
});

test("after a kill at any moment of a rotation, the next start says which key is valid, and has everything", async (t) => {
  const gateway = await startGateway({ t, release: true });
  const variables = await setSome(gateway, 400);
  const seen = { old: 0, next: 0, over: 0 };
  let delay = 0;
  for (let round = 0; round < 24; round++) {
    const { old } = seen, asked = rotate(gateway).catch((error) => ({ code: -1, all: error.message }));
    // The delay counts from when the next key exists; it grows after a kill before the commit, and shrinks after one
    // that came later.
    await until(() => fs.existsSync(keyFile(gateway, ".next")), { everyMs: 0, timeoutMs: 5000 }).catch(() => {});
    await sleep(delay); // any moment
    await gateway.kill();
    await asked;
    gateway.stderr = "";
    const asks = round % 3 === 0 && await runProgram(["keys", "--data", gateway.data]); // this command also settles which key is valid
    if (asks) assert.equal(asks.code, 0, asks.all);
    await gateway.restart();
    gateway.stderr += asks ? asks.stderr : "";
    if (/the database is sealed with the next encryption key/.test(gateway.stderr)) seen.next++;
    else if (/nothing is sealed with the next encryption key/.test(gateway.stderr)) seen.old++;
    else seen.over++;
    delay = seen.old > old ? delay * 1.4 + 2 : delay * 0.8;
    assert.equal(fs.existsSync(keyFile(gateway, ".next")), false);
    await check(gateway, variables);
  }
  t.diagnostic(`killed before the commit ${seen.old} times, behind it ${seen.next}, when all was over ${seen.over}`);
  assert.ok(seen.old > 0, "some kill came before the commit");
  assert.ok(seen.next + seen.over > 0, "some kill came behind it");
  await gateway.stop();
});

test("without a gateway, or without its second word, the command says what to do", async () => {
  const nobody = await runProgram(["vault", "rotate", "--data", "/nowhere/at/all"]);
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /^runcast: no gateway serves the data in \/nowhere\/at\/all; start it first/);
  const half = await runProgram(["vault"]);
  assert.equal(half.code, 2);
  assert.match(half.stderr, /vault rotate/);
});

// ---- a disk that fails ----

async function onFailingDisk(t) {
  const control = path.join(temporaryFolder(), "control");
  const gateway = await startGateway({ t, preload: "shim_sync", env: { SHIM_CONTROL: control } });
  gateway.order = (what) => fs.writeFileSync(control, what);
  return gateway;
}

test("a rotation whose commit fails is retried until the storage reports what was written", async (t) => {
  const gateway = await onFailingDisk(t);
  const variables = await setSome(gateway);
  gateway.order("eio");
  let over = false;
  const asked = rotate(gateway).finally(() => { over = true; });
  await until(async () => over || (await gateway.get("/readyz")).status === 503, { what: "a write has failed" });
  gateway.order("ok");
  const end = await asked;
  if (end.code) assert.match(end.stderr, /cannot write the encryption key/); // the key file was written first
  else assert.match(end.stdout, /values are sealed with encryption key/);
  await until(() => gateway.isReady());
  await check(gateway, variables);
  assert.equal((await rotate(gateway)).code, 0);
  await gateway.kill();
  await gateway.restart();
  await check(gateway, variables);
  await gateway.stop();
});

test("after a rotation whose outcome is unknown, the next one is decided by what is stored", async (t) => {
  const gateway = await onFailingDisk(t);
  const variables = await setSome(gateway);
  for (let round = 0; round < 3; round++) {
    gateway.order("eio");
    const lost = await gateway.put(at("/V_1"), { value: `perhaps ${round}` });
    assert.equal(lost.status, 503, lost.text);
    gateway.order("ok");
    await until(() => gateway.isReady());
    const reply = await gateway.put(at("/V_1"), { value: `sure ${round}` });
    assert.equal(reply.status, 200, reply.text);
    variables.V_1 = `sure ${round}`;
    await check(gateway, variables);
  }
  await gateway.kill();
  await gateway.restart();
  await check(gateway, variables);
  await gateway.stop();
});
