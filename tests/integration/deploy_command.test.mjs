// runcast deploy, versions, promote and rollback, against a gateway with a real supervise role, only by its API.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { makeBundle } from "../support/js/bundles.mjs";
import { Builder, Deployer } from "../support/js/deployments.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";
import { startProxy } from "../support/js/proxies.mjs";
import { Supervisor } from "../support/js/supervisor.mjs";

async function begin({ t, options = [], role = [] } = {}) {
  const gateway = await startGateway({ t, options: ["--dequeue-wait", "2s", ...options] });
  const { token } = await Builder.start(gateway);
  const supervisor = await Supervisor.start(gateway, { t, token, options: role });
  const run = (words, { key = keys.prod, url = gateway.url, env = {}, ...more } = {}) =>
    runProgram(words, { env: { TRIGGER_API_URL: url, TRIGGER_SECRET_KEY: key, ...env }, timeoutMs: 60_000, ...more });
  const good = async (words, more) => {
    const end = await run(words, more);
    assert.equal(end.code, 0, end.all);
    return end.stdout;
  };
  const refused = async (words, code, why, more) => {
    const end = await run(words, more);
    assert.deepEqual([end.code, end.stdout], [code, ""], end.all);
    assert.match(end.stderr, why);
  };
  const deploy = async (bundle, words = [], more) => /^version (\S+) /.exec(await good(["deploy", bundle.folder, ...words], more))[1];
  const end = async () => { await supervisor.stop(); await gateway.stop(); };
  return { gateway, supervisor, run, good, refused, deploy, end };
}

describe("a bundle of --dry-run", () => {
  let world, first, second;
  before(async () => { world = await begin(); });
  after(() => world.end());

  test("becomes the current version, and the next one replaces it", async () => {
    assert.equal(await world.good(["versions"]), "nothing was deployed to prod yet\n");
    const said = await world.good(["deploy", makeBundle().folder, "--env", "prod"]);
    first = /^version (\d{8}\.1) is deployed, and the current one of prod\n$/.exec(said)?.[1];
    assert.ok(first, said);
    second = await world.deploy(makeBundle());
    const { json } = await new Deployer(world.gateway).get("/api/v1/deployments/current");
    assert.equal(json.version, second);
    const [head, ...rows] = (await world.good(["versions", "--env", "production"])).trimEnd().split("\n");
    assert.match(head, /^ {2}VERSION +STATUS +CREATED \(UTC\) +DEPLOYED \(UTC\) +EXTERNAL ID$/);
    assert.match(rows[0], new RegExp(`^\\* ${second} +DEPLOYED +\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d +\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d +-$`));
    assert.match(rows[1], new RegExp(`^ {2}${first} +DEPLOYED`));
    assert.equal(rows.length, 2);
  });

  test("can be rolled back to and promoted again, by the command that the output names", async () => {
    await world.refused(["promote", first], 1, new RegExp(`^runcast: version ${first} is older than the current one, ${second}; runcast rollback makes an older version current, and runcast versions lists those that exist\n$`));
    assert.equal(await world.good(["rollback", first]), `version ${first} is the current one of prod, after ${second}\n`);
    assert.match(await world.good(["versions"]), new RegExp(`^\\* ${first}`, "m"));
    await world.refused(["rollback", second], 1, new RegExp(`version ${second} is newer than the current one, ${first}; runcast promote makes a newer version current, and runcast versions lists`));
    await world.refused(["rollback", first], 1, /is already the current one/);
    assert.equal(await world.good(["promote", second, "--env", "prod"]), `version ${second} is the current one of prod, after ${first}\n`);
    await world.refused(["promote", "20990101.1"], 1, /^runcast: 20990101\.1: Deployment not found; runcast versions lists those that exist\n$/);
    await world.refused(["rollback", "20200101.1"], 1, /^runcast: 20200101\.1: Deployment not found; runcast versions lists those that exist\n$/);
    await world.refused(["rollback", "latest"], 1, /"latest" is not a version like 20261125\.1; runcast versions/);
  });

  test("is not promoted with --skip-promotion, and not built twice with one external id", async () => {
    const bundle = makeBundle();
    const said = await world.good(["deploy", bundle.folder, "--skip-promotion", "--external-id", "commit-1"]);
    const [, version] = new RegExp(`^version (\\S+) is deployed; the current one of prod is ${second}; runcast promote (\\S+) makes this one current\n$`).exec(said) ?? assert.fail(said);
    assert.equal(await world.good(["deploy", bundle.folder, "--external-id=commit-1"]), `version ${version} of prod already has this external id: nothing was built\n`);
    assert.match(await world.good(["versions"]), new RegExp(`^ {2}${version} +DEPLOYED .*commit-1$`, "m"));
    await world.good(["promote", version]);
    await world.good(["rollback", second]);
  });

  test("that cannot be built reports why, and changes nothing", async () => {
    const { code, stdout, stderr } = await world.run(["deploy", makeBundle({ commands: ["printf 'the \\033[31mreason' >&2; exit 3"] }).folder]);
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, /^uploaded \d+ bytes; the version is being built\nruncast: nothing was deployed: Version \S+ failed: the command ".*" failed: it ended with exit code 3\n/);
    assert.match(stderr, /the \[31mreason/, "no sequence of a terminal's");
    const list = await world.good(["versions"]);
    assert.match(list, /^ {2}\S+ +FAILED +\d{4}-\d\d-\d\d \d\d:\d\d +- +-$/m);
    assert.match(list, new RegExp(`^\\* ${second}`, "m"));
  });

  test("is deployed to a preview branch, and to staging with its key", async () => {
    assert.equal((await world.gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "feature" }, { key: keys.pat })).status, 200);
    const said = await world.good(["deploy", makeBundle().folder, "--env", "preview", "--branch", "feature"], { key: keys.preview });
    assert.match(said, /the current one of the branch feature of preview\n$/);
    await world.refused(["versions", "--branch", "other"], 1, /No matching branch env/, { key: keys.preview });
    assert.match(await world.good(["deploy", makeBundle().folder, "--env", "staging"], { key: keys.staging }), /the current one of staging\n$/);
  });

  test("is refused before anything is sent, with what to do", async () => {
    const folder = makeBundle().folder, link = makeBundle().folder, large = makeBundle({ files: { "large.bin": "x".repeat(1 << 20) } }).folder;
    fs.symlinkSync("build.json", path.join(link, "link.json"));
    const cases = [
      [["deploy"], 2, /^runcast: DIR is missing; use runcast deploy DIR \[.* \(runcast help deploy/],
      [["deploy", folder, "other"], 2, /other: not for runcast deploy/],
      [["versions", "--skip-promotion"], 2, /--skip-promotion: not an option of runcast versions/],
      [["org", "list", "--branch", "x"], 2, /--branch: not an option of runcast org list/],
      [["versions"], 2, /^runcast: TRIGGER_API_URL is missing; set it to the address of the gateway, or use --url\n$/, { url: "" }],
      [["versions"], 2, /^runcast: TRIGGER_SECRET_KEY is missing; set it to the secret key of the environment/, { key: "" }],
      [["versions"], 2, /TRIGGER_SECRET_KEY is not the secret key of an environment/, { key: keys.pat }],
      [["versions"], 2, /development environment, which has no deployments; use the key of prod/, { key: keys.dev }],
      [["versions", "--env", "staging"], 2, /--env is staging, but TRIGGER_SECRET_KEY is the key of prod/],
      [["versions"], 2, /add --branch NAME/, { key: keys.preview }],
      [["versions", "--branch", "x"], 2, /only preview has branches, not prod/],
      [["versions"], 2, /^runcast: TRIGGER_API_URL: "runs\.example\.com": the URL does not begin with http:\/\/ or https:\/\/\n$/, { url: "runs.example.com" }],
      [["versions", "--url", "ftp://x"], 2, /^runcast: --url: "ftp:\/\/x": the URL does not begin with http:/],
      [["versions"], 2, /^runcast: TRIGGER_API_URL: the URL [^"]*\n$/, { url: "http://user:secret@runs.example.com" }],
      [["deploy", temporaryFolder()], 1, /cannot read build\.json; name the folder that npx trigger\.dev deploy --dry-run created/],
      [["deploy", link], 1, /"link\.json" is a link/],
      [["deploy", makeBundle({ cli: "4.3.0" }).folder], 1, /upgrade to 4\.4 or newer/],
      [["deploy", large, "--deploy-unpacked", "1m"], 1, /too large \(max 1048576 bytes, setting deploy-unpacked\)/],
      [["versions"], 1, /^runcast: cannot read the current version: Invalid API key\n$/, { key: `${keys.prod}x` }],
    ];
    for (const [words, code, why, more] of cases) await world.refused(words, code, why, more);
    assert.match((await runProgram(["help", "rollback"])).stdout, /makes an older version the current one/);
  });
});

test("a gateway that is unreachable is tried five times, and named", async () => {
  const url = `http://127.0.0.1:${await freePort()}`, begun = Date.now();
  const { code, stderr } = await runProgram(["versions"], { env: { TRIGGER_API_URL: url, TRIGGER_SECRET_KEY: keys.prod } });
  assert.equal(code, 1);
  assert.match(stderr, /^runcast: cannot read the current version: .*connect/i);
  assert.ok(Date.now() - begun >= 7000, "0.5, 1, 2 and 4 s");
});

test("a bundle larger than the gateway accepts is refused with both sizes", async (t) => {
  const world = await begin({ t, options: ["--deploy-bundle", "1m"] });
  const random = Buffer.from(Array.from({ length: 1 << 20 }, () => 33 + Math.floor(Math.random() * 90))).toString("latin1");
  await world.refused(["deploy", makeBundle({ files: { "random.txt": random + random } }).folder], 1, /the gateway rejected the bundle: contentLength: the bundle has \d+ bytes, and at most 1048576 are taken/);
  await world.end();
});

const slow = (ms, then = "") => `await new Promise((resolve) => setTimeout(resolve, ${ms})); ${then}; await variables(); await register(["hello"]);`;

test("a build that outlasts all held calls is waited for, whether it fails or not", async (t) => {
  const world = await begin({ t, options: ["--deploy-hold", "1s"] });
  const ends = [slow(15_000, 'console.error("the reason"); process.exit(4)'), slow(2000)].map((index) => world.run(["deploy", makeBundle({ index }).folder]));
  const [failed, deployed] = await Promise.all(ends); // one is built after the other, and each takes longer than the calls of 5 s with their pauses
  assert.deepEqual([deployed.code, /is deployed, and the current one of prod/.test(deployed.stdout)], [0, true], deployed.all);
  assert.deepEqual([failed.code, failed.stdout], [1, ""]);
  assert.match(failed.stderr, /runcast: version \S+ is FAILED: .*indexing failed: it ended with exit code 4; the version asks for Node 22, but v[\d.]+ executed it; [^\n]*\nthe reason\n/);
  await world.end();
});

test("after the gateway is killed during a build, the command retries and follows the same deployment", async (t) => {
  const world = await begin({ t });
  const deploying = world.run(["deploy", makeBundle({ index: slow(3000) }).folder]);
  const cli = new Deployer(world.gateway);
  await until(async () => (await cli.get("/api/v1/deployments")).json.data[0]?.status === "BUILDING", { what: "its build" });
  await world.gateway.kill();
  await world.gateway.restart();
  const { code, all } = await deploying;
  assert.equal(code, 0, all);
  assert.equal((await cli.get("/api/v1/deployments")).json.data.length, 1);
  await world.end();
});

test("deploys through TLS with a certificate that --ca-file trusts", async (t) => {
  const port = await freePort();
  const world = await begin({ t, options: ["--public-url", `https://127.0.0.1:${port}`] });
  const proxy = await startProxy("nginx", { port, gateway: world.gateway.port });
  t.after(() => proxy.stop());
  const trusting = 'process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"; await variables(); await register(["hello"]);';
  const words = ["deploy", makeBundle({ index: trusting }).folder, "--url", proxy.url];
  assert.match(await world.good([...words, "--ca-file", proxy.certificate], { url: "" }), /is deployed/);
  await world.refused(words, 1, /certificate/, { url: "" });
  await world.end();
});
