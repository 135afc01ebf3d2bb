// --rate-limit: a separate limit for each environment and each token, and an official SDK that waits until it may
// retry.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { publicToken } from "../support/js/tokens.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const sdk = path.join(here, "../conformance/sdk-v4/node_modules/@trigger.dev/sdk/dist/esm/v3/index.js");
const { configure, runs } = await import(pathToFileURL(sdk).href);

const list = (gateway, key) => gateway.get("/api/v1/runs?page%5Bsize%5D=1", { key });

/** Sends requests until one is refused; returns the responses. */
async function useUp(gateway, key, most = 100) {
  const answers = [];
  do answers.push(await list(gateway, key)); while (answers.at(-1).status === 200 && answers.length < most);
  return answers;
}

test("without the option nothing is limited, and no header mentions a limit", async (t) => {
  const gateway = await startGateway({ t });
  const { status, headers } = await list(gateway, keys.dev);
  assert.equal(status, 200);
  assert.ok(!Object.keys(headers).some((name) => name.startsWith("x-ratelimit")));
  await gateway.stop();
});

test("above the limit a call is 429 with the headers and the body that clients expect", async (t) => {
  const gateway = await startGateway({ t, options: ["--rate-limit", "20"] });
  const answers = await useUp(gateway, keys.dev);
  assert.equal(answers[0].headers["x-ratelimit-limit"], "10");
  assert.equal(answers[0].headers["x-ratelimit-remaining"], "9");
  assert.ok(answers.length >= 11 && answers.length < 20);
  const { status, headers, json } = answers.at(-1);
  assert.equal(status, 429);
  assert.match(headers["content-type"], /^application\/problem\+json/);
  assert.equal(headers["x-ratelimit-remaining"], "0");
  const wait = Number(headers["x-ratelimit-reset"]) - Date.now();
  assert.ok(wait > 0 && wait <= 3000, `${wait}`);
  assert.ok(headers["retry-after"] >= 1 && headers["retry-after"] <= 3);
  assert.deepEqual(Object.keys(json).sort(), ["detail", "error", "limit", "remaining", "reset", "secondsUntilReset", "status", "title", "type"]);
  assert.ok(headers["access-control-expose-headers"].includes("x-ratelimit-reset"));
  assert.equal(await gateway.metric("runcast_rate_limited_total"), 1);

  const run = await gateway.post("/api/v1/tasks/t/trigger", { payload: 1 });
  assert.equal(run.status, 429);
  assert.deepEqual((await gateway.get("/api/v1/runs", { key: keys.prod })).json.data, [], "another environment has its own share");
  const token = await publicToken(gateway, { scopes: ["read:runs"] }), second = await publicToken(gateway, { scopes: ["read:runs"], jti: "2" });
  assert.equal((await list(gateway, token)).status, 200, "and so has each token");
  assert.equal((await useUp(gateway, token)).at(-1).status, 429);
  assert.equal((await list(gateway, second)).status, 200);
  assert.equal((await gateway.get("/api/v1/projects", { key: keys.pat })).status, 200);
  const open = [["GET", "/api/v1/timezones"], ["POST", "/api/v1/auth/jwt/claims"], ["PUT", "/api/v2/packets/a.json"], ["OPTIONS", "/api/v1/runs"],
    ["GET", "/healthz"], ["GET", "/engine/v1/dev/config"]];
  for (const [method, target] of open) {
    const free = await gateway.http.request(method, target);
    assert.ok(free.status < 300 && !free.headers["x-ratelimit-limit"], `${method} ${target}: ${free.status}`);
  }
  await gateway.stop();
});

test("the SDK waits for the reset and then succeeds by itself", async (t) => {
  const gateway = await startGateway({ t, options: ["--rate-limit", "60"] });
  configure({ baseURL: gateway.url, secretKey: keys.dev });
  const refused = (await useUp(gateway, keys.dev)).at(-1);
  const page = await runs.list({ limit: 1 });
  assert.deepEqual(page.data, []);
  assert.ok(Date.now() >= Number(refused.headers["x-ratelimit-reset"]));
  assert.ok((await gateway.metric("runcast_rate_limited_total")) >= 2);
  await gateway.stop();
});
