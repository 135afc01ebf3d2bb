// Parts of Trigger.dev's API that runcast lacks. The README's list of them is complete for SDK 4.8.3 and for the platform's
// published OpenAPI document, and the response at each listed path names the missing feature.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { absentRoutes, routesOf, unknownRoutes } from "../support/js/published.mjs";

const gateway = await startGateway();
const document = (await gateway.get("/openapi.json", { key: null })).json;
after(() => gateway.stop());

/** docs/v3-openapi.yaml of triggerdotdev/trigger.dev, August 2026. */
const published = `
POST /api/v1/schedules GET /api/v1/schedules GET /api/v1/schedules/{} PUT /api/v1/schedules/{} DELETE /api/v1/schedules/{} POST /api/v1/schedules/{}/deactivate
POST /api/v1/schedules/{}/activate GET /api/v1/timezones POST /api/v1/runs/{}/replay POST /api/v1/runs/{}/tags GET /api/v1/runs/{}/trace GET /api/v1/runs/{}/events
PUT /api/v1/runs/{}/metadata POST /api/v2/runs/{}/cancel GET /api/v1/deployments GET /api/v1/deployments/{} GET /api/v1/deployments/latest
POST /api/v1/deployments/{}/promote POST /api/v1/query GET /api/v1/query/schema GET /api/v1/query/dashboards POST /api/v1/runs/{}/reschedule
GET /api/v1/runs/{}/result GET /api/v3/runs/{} GET /api/v1/runs GET /api/v1/bulk-actions POST /api/v1/bulk-actions GET /api/v1/bulk-actions/{}
POST /api/v1/bulk-actions/{}/abort GET /api/v1/projects/{}/runs GET /api/v1/projects/{}/envvars/{} POST /api/v1/projects/{}/envvars/{}
POST /api/v1/projects/{}/envvars/{}/import GET /api/v1/projects/{}/envvars/{}/{} DELETE /api/v1/projects/{}/envvars/{}/{} PUT /api/v1/projects/{}/envvars/{}/{}
POST /api/v1/tasks/{}/trigger POST /api/v1/tasks/{}/batch POST /api/v1/tasks/batch GET /api/v1/batches/{} GET /api/v1/batches/{}/results GET /api/v1/queues
GET /api/v1/queues/{} POST /api/v1/queues/{}/pause POST /api/v1/queues/{}/concurrency/override POST /api/v1/queues/{}/concurrency/reset
POST /api/v1/waitpoints/tokens GET /api/v1/waitpoints/tokens POST /api/v1/waitpoints/tokens/{}/callback/{} POST /api/v1/waitpoints/tokens/{}/complete
GET /api/v1/waitpoints/tokens/{} POST /api/v1/sessions GET /api/v1/sessions GET /api/v1/sessions/{} PATCH /api/v1/sessions/{} POST /api/v1/sessions/{}/close
GET /api/v1/errors GET /api/v1/errors/{} POST /api/v1/errors/{}/resolve POST /api/v1/errors/{}/ignore POST /api/v1/errors/{}/unresolve`;

const client = fileURLToPath(new URL("../conformance/sdk-v4/node_modules/@trigger.dev/core/dist/esm/v3/apiClient/index.js", import.meta.url));

test("each route that the SDK calls exists, or is in the README's list", () => {
  const routes = routesOf(client, "baseUrl");
  assert.ok(routes.length > 100, `${routes.length} routes`);
  assert.deepEqual(unknownRoutes(routes, document), []);
});

test("each route of the platform's document exists, or is in the README's list", () => {
  const words = published.trim().split(/\s+/), routes = [];
  for (let i = 0; i < words.length; i += 2) routes.push({ method: words[i], path: words[i + 1] });
  // A token's own address contains the environment here; clients use the url that they get.
  assert.deepEqual(unknownRoutes(routes, document), ["POST /api/v1/waitpoints/tokens/{}/callback/{}"]);
});

test("each path of the README's list is 404, with an error that runcast does not have it", async () => {
  const routes = absentRoutes();
  assert.ok(routes.length >= 50, `${routes.length} routes`);
  for (const { method, path } of routes)
    for (const each of method ? [method] : ["GET", "POST"]) {
      const target = path.replace("/projects/{}", `/projects/${keys.ref}`).replaceAll("{}", "x");
      const { status, headers, json } = await gateway.http.request(each, target, { key: keys.pat });
      assert.equal(status, 404, `${each} ${target}: ${status}`);
      assert.match(json.error, /^Not found: runcast does not have \w/, `${each} ${target}`);
      assert.equal(headers["x-should-retry"], "false");
    }
});

test("without a credential these paths respond like any unknown path", async () => {
  assert.equal((await gateway.get("/api/v1/sessions", { key: null })).status, 401);
  assert.match((await gateway.get("/api/v1/sessionsx")).json.error, /no route at this path/);
});
