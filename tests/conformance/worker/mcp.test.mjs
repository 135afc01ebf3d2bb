// The MCP server of the official CLI against a gateway: each of its tools works, or reports that runcast lacks the feature.
// The worker is the `dev` command that the server starts.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import { copyOf } from "../../support/js/cli.mjs";
import { Builder, Deployer } from "../../support/js/deployments.mjs";
import { keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";
import { startMcp } from "../../support/js/mcp.mjs";
import { addSecondProject, otherKeys } from "../../support/js/second_project.mjs";

const folder = copyOf("mcp");
const project = { projectRef: keys.ref };
const closings = [];
let gateway, mcp;

before(async () => {
  gateway = await startGateway();
  await gateway.stop();
  addSecondProject(gateway.data);
  await gateway.restart();
  mcp = await startMcp({ t: { after: (fn) => closings.push(fn) }, gateway, folder });
});
after(async () => {
  for (const close of closings) await close();
  await gateway.stop();
});

const ask = async (name, args) => {
  const { text, isError } = await mcp.call(name, { ...project, ...args });
  assert.ok(!isError, `${name}: ${text}`);
  return text;
};
const fail = async (name, args, client = mcp) => {
  const { text, isError } = await client.call(name, { ...project, ...args });
  assert.ok(isError, `${name}: ${text}`);
  return text;
};
const idIn = (text) => /run_\w+/.exec(text)[0];
const trigger = async (taskId, payload, options) => idIn(await ask("trigger_task", { taskId, payload, options }));
const isConnected = async () => (await gateway.get(`/api/v1/projects/${keys.ref}/dev-status`, { key: keys.pat })).json.isConnected;

test("it names the user, and the projects that the user can read", async () => {
  assert.match(await ask("whoami"), /\*\*Email:\*\* admin@example\.com/);
  assert.match(await ask("list_orgs"), /^- My organization \(id=org_\w+\) \(slug=my-organization\)/);
  const projects = await ask("list_projects");
  assert.match(projects, new RegExp(`- My project \\(projectRef=${keys.ref}\\)`));
  assert.doesNotMatch(projects, /Other project/);
});

test("without a CLI it reports that none is connected, and triggered runs wait", async () => {
  assert.match(await fail("get_current_worker"), /No version is current; start the CLI's dev command/);
  assert.match(await ask("trigger_task", { taskId: "greet", payload: { name: "Eve" }, options: { tags: ["early"] } }), /The dev CLI is not connected/);
  assert.match(await ask("dev_server_status"), /Dev Server Status: stopped/);
});

test("it starts the CLI's dev command, whose version is the current one", { timeout: 180_000 }, async () => {
  const started = await ask("start_dev_server", { configPath: folder }); // it waits for at most 30 s
  assert.match(started, /Dev server is (ready|still starting)/);
  await until(async () => /Dev Server Status: ready/.test(await ask("dev_server_status")), { timeoutMs: 60_000, what: "the dev server is ready" });
  assert.equal(await isConnected(), true);
  const worker = await ask("get_current_worker");
  assert.match(worker, /^Current worker for dev is \d{8}\.1 using 4\.8\.3 of the SDK/);
  assert.match(worker, /3 tasks registered:\n- fails in src\/trigger\/tasks\.ts\n- greet in [^\n]+\n- waits in /);
  assert.match(worker, new RegExp(`Runs: ${gateway.url}/projects/v3/${keys.ref}/runs`));
  assert.doesNotMatch(worker, /WARNING/); // CLI and SDK have one version
});

test("it shows the schema of a task's payload", async () => {
  const [, schema] = /```json\n([^]*)\n```/.exec(await ask("get_task_schema", { taskSlug: "greet" }));
  assert.deepEqual(JSON.parse(schema), { type: "object", properties: { name: { type: "string", description: "who is greeted" } }, required: ["name"] });
  assert.match(await ask("get_task_schema", { taskSlug: "waits" }), /No payload schema defined/);
  assert.match(await fail("get_task_schema", { taskSlug: "unknown" }), /Available tasks: fails, greet, waits/);
});

test("it triggers, waits, and shows the run, its trace and its spans", async () => {
  const said = await ask("trigger_task", { taskId: "greet", payload: { name: "Ada" }, options: { tags: ["shown"] } }), runId = idIn(said);
  assert.doesNotMatch(said, /not connected/);
  assert.match(await ask("wait_for_run_to_complete", { runId, timeoutInSeconds: 60 }), /Status: completed\n[^]*Hello, Ada!/);
  const trace = await until(async () => { // spans arrive a moment after the end
    const text = await ask("get_run_details", { runId, maxTraceLines: 500, cursor: undefined });
    return text.includes("greeting somebody") && text;
  }, { timeoutMs: 30_000, everyMs: 200, what: "the log is in the trace" }).catch(async () => ask("get_run_details", { runId }));
  assert.match(trace, /Payload: \{\n {2}"name": "Ada"/);
  assert.match(trace, /Attempt 1 \[COMPLETED\]/);
  const [root, attempt] = [...trace.matchAll(/\[([0-9a-f]{16})\]/g)].map(([, id]) => id);
  assert.match(await ask("get_span_details", { runId, spanId: root }), /## Span: greet \[COMPLETED\]/);
  assert.match(await ask("get_span_details", { runId, spanId: attempt }), new RegExp(`## Span: Attempt 1 \\[COMPLETED\\]\nSpan ID: ${attempt}\nParent ID: ${root}`));
  assert.match(await fail("get_span_details", { runId, spanId: "0123456789abcdef" }), /Span not found/);
});

test("it lists runs by filters, page by page", async () => {
  const runId = await trigger("fails", {}, { tags: ["bad"] });
  assert.match(await ask("wait_for_run_to_complete", { runId }), /Status: failed[^]*it was meant to fail/);
  assert.match(await ask("list_runs", { tag: "bad" }), new RegExp(`^Found 1 run\\s+1\\. ${runId} \\| fails \\| failed`));
  for (const filter of [{ status: "FAILED" }, { taskIdentifier: "fails", period: "1h" }]) assert.match(await ask("list_runs", filter), new RegExp(`^Found 1 run\\s+1\\. ${runId}`));
  const first = await ask("list_runs", { limit: 1 }), [, cursor] = /Next cursor: (\S+)/.exec(first);
  assert.match(await ask("list_runs", { limit: 1, cursor }), /^Found 1 run/);
  assert.match(await ask("list_runs", { environment: "staging" }), /No runs found/);
});

test("it replays and cancels", async () => {
  const runId = await trigger("greet", { name: "Bob" });
  await ask("wait_for_run_to_complete", { runId });
  const [, again] = /replayed as (run_\w+)\./.exec(await ask("replay_run", { runId, payload: { name: "Eve" } }));
  assert.match(await ask("wait_for_run_to_complete", { runId: again }), /Hello, Eve!/);
  const long = await trigger("waits", { seconds: 3600 });
  assert.match(await ask("wait_for_run_to_complete", { runId: long, timeoutInSeconds: 1 }), /Status: (waiting|executing)/);
  assert.match(await ask("cancel_run", { runId: long }), /canceled\.\nStatus: CANCELED\nTask: waits/);
});

test("runs that it triggers and replays wait for the limit of their task; a debounced run is shown, canceled and replayed", async () => {
  const pause = async (action) => assert.equal((await gateway.post("/api/v1/concurrency-limits/task%2Fgreet/pause", { action })).status, 200);
  await pause("pause");
  const runId = await trigger("greet", { name: "Kim" }, { tags: ["held"] });
  const [, again] = /replayed as (run_\w+)\./.exec(await ask("replay_run", { runId, concurrencyKey: "kim", tags: ["held"] }));
  assert.match(await ask("list_runs", { tag: "held", status: "QUEUED" }), /^Found 2 runs/);
  for (const id of [runId, again]) assert.equal((await gateway.get(`/api/v3/runs/${id}`)).json.waitingFor.reason, "limit_paused");
  await pause("resume");
  for (const id of [runId, again]) assert.match(await ask("wait_for_run_to_complete", { runId: id, timeoutInSeconds: 60 }), /Hello, Kim!/);

  const push = async () => (await gateway.post("/api/v1/tasks/greet/trigger", { payload: { name: "Lee" }, options: { debounce: { key: "lee", delay: "1h" } } })).json;
  const { id } = await push();
  assert.match(await ask("get_run_details", { runId: id }), /Status: delayed/i);
  const [, copy] = /replayed as (run_\w+)\./.exec(await ask("replay_run", { runId: id }));
  assert.match(await ask("wait_for_run_to_complete", { runId: copy, timeoutInSeconds: 60 }), /Hello, Lee!/);
  assert.equal((await push()).id, id, "the replay has not taken the key");
  assert.match(await ask("cancel_run", { runId: id }), /canceled\.\nStatus: CANCELED/);
  assert.notEqual((await push()).id, id);
});

test("it stops the CLI, and the gateway knows at once", async () => {
  assert.match(await ask("stop_dev_server"), /Dev server stopped/);
  await until(async () => !await isConnected(), { what: "no worker is connected" });
});

test("it lists deployments and branches, and the version of production", async () => {
  const cli = new Deployer(gateway), builder = await Builder.start(gateway, "--project", keys.ref), answer = cli.deploy();
  await builder.build();
  const { version, shortCode } = (await answer).json;
  assert.match(await ask("list_deploys", { environment: "prod" }), new RegExp(`^Found 1 deployment\\s+- ${shortCode} \\| v${version} \\| DEPLOYED`));
  assert.match(await ask("list_deploys", { environment: "prod", status: "FAILED" }), /^Found 0 deployments/);
  assert.match(await ask("get_current_worker", { environment: "prod" }), new RegExp(`^Current worker for prod is ${version.replace(".", "\\.")}`));
  assert.match(await ask("list_preview_branches"), /No preview branches found/);
  await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch: "page" }, { key: keys.pat });
  assert.match(await ask("list_preview_branches"), /- page/);
  const runId = idIn(await ask("trigger_task", { environment: "preview", branch: "page", taskId: "greet", payload: {} }));
  assert.match(await ask("list_runs", { environment: "preview", branch: "page" }), new RegExp(runId));
});

test("it creates a project in an organization of the user; the project can be used at once", async () => {
  const [, ref] = /^Project created successfully: Second \(projectRef=(proj_\w+)\) \(slug=second\)/.exec(await ask("create_project_in_org", { orgParam: "my-organization", name: "Second" }));
  assert.match(await ask("list_projects"), new RegExp(ref));
  assert.match(await ask("trigger_task", { projectRef: ref, taskId: "greet", payload: {} }), /run_\w+/);
  assert.match(await fail("create_project_in_org", { orgParam: "other", name: "Third" }), /Organization not found/);
});

// Arguments of each tool whose feature runcast lacks.
const absent = {
  get_query_schema: { table: "runs" }, query: { query: "SELECT 1" }, list_dashboards: {}, run_dashboard_query: { dashboardKey: "a", widgetId: "b" },
  create_dashboard: { title: "a" }, set_dashboard_widgets: { dashboardId: "a", widgets: [] }, list_prompts: {}, get_prompt_versions: { slug: "a" },
  promote_prompt_version: { slug: "a", version: 1 }, create_prompt_override: { slug: "a", textContent: "a" }, update_prompt_override: { slug: "a", textContent: "a" },
  remove_prompt_override: { slug: "a" }, reactivate_prompt_override: { slug: "a", version: 1 }, start_agent_chat: { agentId: "a" },
  read_session_channel: { sessionId: "a", channel: "out" }, write_session_channel: { sessionId: "a", channel: "in", value: "a" }, get_report: { key: "health" },
  list_alert_capabilities: {}, list_alerts: {}, resolve_alert: { alertId: "a" },
  list_webhook_endpoints: {}, get_webhook_endpoint_details: { endpointId: "a" }, list_webhook_deliveries: { endpointId: "a" }, get_webhook_delivery: { deliveryId: "a" },
  replay_webhook_delivery: { deliveryId: "a" }, generate_webhook_secret: { endpointId: "a" }, set_webhook_secret: { endpointId: "a", secret: "a" },
};
// Tools that need more than a gateway, such as a page.
const local = ["search_docs", "create_alert", "initialize_project", "deploy", "list_profiles", "switch_profile", "send_agent_message", "close_agent_chat", "list_agents"];

test("a tool for a missing feature reports that, and no tool is new", async () => {
  const tried = new Set([...fs.readFileSync(new URL(import.meta.url), "utf8").matchAll(/(?:ask|fail)\("(\w+)"/g)].map(([, name]) => name));
  assert.deepEqual((await mcp.tools()).filter((name) => !tried.has(name) && !absent[name] && !local.includes(name)), []);
  for (const [name, args] of Object.entries(absent)) assert.match(await fail(name, args), /runcast does not have/, name);
  assert.match(await ask("list_agents", { environment: "prod" }), /No agents found/);
});

test("another organization's user gets nothing of this project, nor does an invalid token", async (t) => {
  const stranger = await startMcp({ t, gateway, folder, env: { TRIGGER_ACCESS_TOKEN: otherKeys.pat } });
  for (const [name, args] of [["get_current_worker", {}], ["list_preview_branches", {}], ["create_project_in_org", { orgParam: "my-organization", name: "Trespass" }]])
    assert.match(await fail(name, args, stranger), /not found/i, name);
  for (const [name, args] of [["list_runs", {}], ["trigger_task", { taskId: "greet", payload: {} }], ["list_deploys", { environment: "prod" }]])
    assert.match(await fail(name, args, stranger), /Project not found|Could not get the authentication token/i, name);
  const nobody = await startMcp({ t, gateway, folder, env: { TRIGGER_ACCESS_TOKEN: `tr_pat_${"z".repeat(40)}` } });
  assert.match(await fail("list_projects", {}, nobody), /Invalid or Missing|401|Invalid/i);
});

test("a profile in the home directory has the same effect as the variable", async (t) => {
  const home = temporaryFolder(), config = path.join(home, ".config/trigger");
  fs.mkdirSync(config, { recursive: true });
  fs.writeFileSync(path.join(config, "config.json"), JSON.stringify({ version: 2, currentProfile: "here", profiles: { here: { accessToken: keys.pat, apiUrl: gateway.url } } }));
  const client = await startMcp({ t, gateway, folder, home, env: { TRIGGER_ACCESS_TOKEN: undefined, TRIGGER_API_URL: undefined }, flags: ["--profile", "here", "--readonly"] });
  assert.match((await client.call("whoami")).text, /\*\*Profile:\*\* here\n\*\*Email:\*\* admin@example\.com/);
  assert.match((await client.call("list_profiles")).text, /- \*\*here\*\* \(active\)/);
  assert.ok(!(await client.tools()).includes("trigger_task")); // --readonly
});
