// Projects and organizations that users create themselves, as far as the operator allows it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { keys, startGateway } from "../support/js/gateway.mjs";
import { addSecondProject, otherKeys } from "../support/js/second_project.mjs";

const asPerson = { key: keys.pat };

test("a user's projects exist at once with four environments, up to the limit of the organization, also when many are requested together", async (t) => {
  const gateway = await startGateway({ t, options: ["--user-projects", "3"] });
  const make = (name) => gateway.post("/api/v1/orgs/my-organization/projects", { name }, asPerson);
  const first = await make("  My Shop! ");
  assert.equal(first.status, 200, first.text);
  assert.deepEqual([first.json.name, first.json.slug, first.json.organization.slug], ["My Shop!", "my-shop", "my-organization"]);
  for (const env of ["dev", "staging", "prod"]) {
    const { json } = await gateway.get(`/api/v1/projects/${first.json.externalRef}/${env}`, asPerson);
    assert.equal((await gateway.post("/api/v1/tasks/hello/trigger", {}, { key: json.apiKey })).status, 200);
  }
  const statuses = (await Promise.all(["a", "b", "c", "d"].map(make))).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, 422, 422, 422]);
  assert.match((await make("e")).json.error, /too many projects \(3, max 3\).*user-projects/);
  assert.equal((await gateway.http.request("PATCH", `/api/v1/projects/${first.json.externalRef}`, { body: { name: "Größe 分支 ✓" }, ...asPerson })).json.name, "Größe 分支 ✓");
  await gateway.kill();
  await gateway.restart();
  assert.equal((await gateway.get("/api/v1/projects", asPerson)).json.length, 3);
  for (const name of ["", " ", "a".repeat(101), "a\nb", "\u009b31m", "\u202eevil", "a\u2028b", "\u2066", 5, null]) assert.equal((await make(name)).status, 400, JSON.stringify(name));
  await gateway.stop();
});

test("no user, and no key, can create or rename anything in another user's organization", async (t) => {
  const gateway = await startGateway({ t });
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart({ options: ["--user-organizations", "2"] });
  const other = { key: otherKeys.pat };
  assert.equal((await gateway.post("/api/v1/orgs/my-organization/projects", { name: "x" }, other)).status, 404);
  assert.equal((await gateway.http.request("PATCH", `/api/v1/projects/${keys.ref}`, { body: { name: "x" }, ...other })).status, 404);
  assert.equal((await gateway.post("/api/v1/orgs/my-organization/projects", { name: "x" }, { key: keys.dev })).status, 401);
  assert.equal((await gateway.http.request("PATCH", `/api/v1/projects/${keys.ref}`, { body: { name: "Renamed" }, ...asPerson })).json.name, "Renamed");
  const made = await gateway.post("/api/v1/orgs", { title: "My organization" }, asPerson);
  assert.equal(made.status, 200, made.text);
  assert.match(made.json.slug, /^my-organization-\w{6}$/);
  assert.equal((await gateway.post("/api/v1/orgs", { title: "One more" }, asPerson)).status, 422);
  assert.equal((await gateway.get("/api/v1/orgs", other)).json.length, 1);
  assert.deepEqual((await gateway.get("/api/v1/projects/runtimes", asPerson)).json.map(({ project, deployment }) => [project.externalRef, deployment]), [[keys.ref, null]]);
  await gateway.stop();
});

test("where only the operator creates them, users are told who does", async (t) => {
  const gateway = await startGateway({ t, options: ["--user-projects", "0"] });
  const project = await gateway.post("/api/v1/orgs/my-organization/projects", { name: "x" }, asPerson), organization = await gateway.post("/api/v1/orgs", { title: "x" }, asPerson);
  assert.deepEqual([project.status, organization.status], [422, 422]);
  assert.match(project.json.error, /runcast project create/);
  assert.match(organization.json.error, /runcast org create/);
  await gateway.stop();
});
