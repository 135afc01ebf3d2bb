// At least one call of every documented operation, by its id. Each must succeed at least once.
//
// w: get, post, put, delete (each a checked request, see contract.test.mjs), run, batch, ref, worker, makeRun(options),
// pat. A new operation needs a line here.
import { createHash, generateKeyPairSync, sign } from "node:crypto";

import { Builder, bundle, Deployer, form } from "../support/js/deployments.mjs";

const pat = (w) => ({ key: w.pat });
const signIn = async (w) => (await w.post("/api/v1/sign-in", { code: w.pat }, { key: null })).json.token;
/** Stays signed in as a page at the gateway's own address does, without TLS. Returns uses(body): a call's options. */
async function stay(w) {
  const { origin, host } = new URL(w.gateway.url), headers = { origin, host, "sec-fetch-site": "same-origin" }, { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const point = Buffer.from(publicKey.export({ format: "der", type: "spki" })).subarray(-65).toString("base64url"), key = await signIn(w);
  const { id } = (await w.post("/api/v1/sign-in/stay", { publicKey: point }, { key, headers })).json;
  const send = (body) => w.post("/dashboard/session", { ...body, id }, { key: null, headers });
  const prove = (challenge) => ({ signature: sign("sha256", Buffer.from(`runcast session\n${origin}\n${id}\n${challenge}`), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url") });
  return async (body) => send({ ...body, ...prove((await send({})).json.challenge) });
}
const secretKeys = (w) => `/api/v1/projects/${w.ref}/staging/keys`;
const secretKey = async (w) => (await w.post(secretKeys(w), { name: "another" }, pat(w))).json.id;
const lines = { headers: { "content-type": "application/x-ndjson" } };
const verifier = "a".repeat(43), login = { codeChallenge: createHash("sha256").update(verifier).digest("base64url"), codeChallengeMethod: "S256" };
const queue = "/api/v1/queues/hello", limit = "/api/v1/concurrency-limits/shared";
const variables = (w) => `/api/v1/projects/${w.ref}/envvars/dev`;
const cron = { task: "tick", cron: "0 9 * * *", deduplicationKey: "contract", externalId: "x", timezone: "Europe/Paris", window: "30m" };
const everyOption = { payloadType: "application/json", delay: "1h", ttl: 60, tags: "a", idempotencyKey: "every", idempotencyKeyTTL: "1h", queue: { name: "hello" },
  concurrencyKey: "k", machine: "micro", maxAttempts: 3, maxDuration: 60, priority: 1, metadata: { a: 1 }, test: true, region: "eu" };
/** A span of the run, as its worker sends it. */
const telemetry = async (w) => {
  const { variables } = (await w.get(`/api/v1/projects/${w.ref}/envvars`)).json;
  const attributes = [{ key: "ctx.run.id", value: { stringValue: w.run } }];
  const span = { spanId: "0123456789abcdef", name: "work", startTimeUnixNano: "1700000000000000000", endTimeUnixNano: "1700000000000000001", attributes };
  return w.post(`${new URL(variables.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname}/v1/traces`, { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }, { key: null });
};
const schedule = async (w) => `/api/v1/schedules/${(await w.post("/api/v1/schedules", cron)).json.id}`;
const branches = (w) => `/api/v1/projects/${w.ref}/branches`;
const stream = (w) => `/realtime/v1/streams/${w.run}`;
const tokens = "/api/v1/waitpoints/tokens";
const token = async (w) => (await w.post(tokens, {})).json;
const shape = "offset=-1";
const snapshot = (attempt) => `/engine/v1/dev/runs/${attempt.id}/snapshots/${attempt.snapshot}`;
const actions = "/engine/v1/worker-actions", as = (w) => ({ key: w.workerToken }), prod = (w) => ({ key: w.prod });
const taken = async (w) => { await w.makeRun({}, prod(w)); return (await w.post(`${actions}/dequeue`, {}, as(w))).json[0]; };
const leased = ({ run, snapshot: { id } }) => `${actions}/runs/${run.id}/snapshots/${id}`;
const bulk = async (w) => (await w.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: "unknown" } })).json.id;
/** A deployment that a builder has taken: what the builder received. A project has one build at a time, so this cancels
 *  the one that an earlier call left. */
const building = async (w) => {
  if (w.unfinished) await w.gateway.post(`${w.unfinished}/cancel`, {}, prod(w));
  const cli = new Deployer(w.gateway), builder = new Builder(w.gateway, w.workerToken);
  void cli.deploy({}, { tries: 1 });
  const build = await builder.take();
  w.unfinished = `/api/v1/deployments/${build.deployment.id}`;
  return { build, one: w.unfinished, its: `${actions}/builds/${build.deployment.id}` };
};
const made = ({ archive: { sha256, bytes } }) => ({ ok: true, index: "{}", sha256, bytes, architecture: "x64", libc: "glibc", runtimeVersion: "22.1.0", attempt: 1 });
const metadata = { contentHash: "hash", tasks: [{ id: "hello", filePath: "a.ts" }] };
/** A deployment that is deployed and current: { id, version, one }. */
const deployed = async (w) => {
  const { build, one, its } = await building(w);
  await w.post(`${one}/background-workers`, { metadata }, { key: build.key });
  await w.post(`${its}/complete`, made(build), as(w));
  return { ...build.deployment, one };
};
/** A deployment that is canceled during the build; returns its path with more appended. */
const undone = async (w, more) => { const { one } = await building(w); await w.post(`${one}/cancel`, { reason: "contract" }, prod(w)); return one + more; };
const presigned = (reply) => reply.json.presignedUrl.replace(/^https?:\/\/[^/]+/, "");

export const deploymentOptions = ["--deploy-hold", "2s", "--dequeue-wait", "1s"];
export const metricsToken = "the-metrics-token";

export const calls = {
  // runs
  trigger_task_v1: async (w) => {
    await w.post("/api/v1/tasks/hello/trigger", { payload: { a: 1 }, options: { tags: ["a"], ttl: "1h", delay: "1h" } });
    await w.post("/api/v1/tasks/hello/trigger", { options: { tags: 5 } }, { wrong: true });
    await w.post("/api/v1/tasks/hello/trigger", { payload: "{}", context: {}, options: { ...everyOption, idempotencyKeyOptions: { key: "once", scope: "global" } } });
  },
  list_runs_v1: async (w) => { await w.get("/api/v1/runs?page[size]=5&filter[status]=QUEUED,COMPLETED"); await w.get("/api/v1/runs?page[size]=0"); },
  list_run_events_v1: async (w) => { await telemetry(w); await w.get(`/api/v1/runs/${w.run}/events`); },
  retrieve_run_trace_v1: async (w) => { await w.get(`/api/v1/runs/${w.run}/trace`); await w.get(`/api/v1/runs/${w.run}/trace?page[size]=5`); },
  retrieve_span_v1: async (w) => { await telemetry(w); await w.get(`/api/v1/runs/${w.run}/spans/0123456789abcdef`); },
  list_project_runs_v1: (w) => w.get(`/api/v1/projects/${w.ref}/runs?filter[env]=dev`, pat(w)),
  retrieve_run_v3: async (w) => { for (const id of w.ends) await w.get(`/api/v3/runs/${id}?wait=1s`); for (const query of ["wait=1", "wait=soon"]) await w.get(`/api/v3/runs/${w.run}?${query}`); await w.get("/api/v3/runs/nobody"); },
  retrieve_run_result_v1: async (w) => { for (const id of w.ends) for (const query of ["", "?format=json", "?format=xml", "?wait=1s", "?wait=soon"]) await w.get(`/api/v1/runs/${id}/result${query}`); await w.get(`/api/v1/runs/${w.run}/result`); },
  count_runs_v1: async (w) => { await w.get("/api/v1/runs/counts?filter[status]=QUEUED,COMPLETED"); await w.get("/api/v1/runs/counts?filter[status]=NO"); },
  list_run_children_v1: async (w) => { await w.get(`/api/v1/runs/${w.run}/children?page[size]=5&filter[status]=QUEUED`); await w.get("/api/v1/runs/nobody/children"); },
  cancel_run_v2: async (w) => w.post(`/api/v2/runs/${await w.makeRun()}/cancel`, {}),
  replay_run_v1: async (w) => { await w.post(`/api/v1/runs/${w.run}/replay`, {}); await w.post(`/api/v1/runs/${w.run}/replay`, { nothing: 1 }, { wrong: true }); },
  reschedule_run_v1: async (w) => { await w.post(`/api/v1/runs/${await w.makeRun({ delay: "1h" })}/reschedule`, { delay: "2h" }); await w.post(`/api/v1/runs/${w.run}/reschedule`, { delay: "2h" }); },
  add_run_tags_v1: async (w) => { await w.post(`/api/v1/runs/${w.run}/tags`, { tags: ["b"] }); await w.post(`/api/v1/runs/${w.run}/tags`, { tags: Array.from("0123456789x") }); },
  get_run_metadata_v1: (w) => w.get(`/api/v1/runs/${w.run}/metadata`),
  update_run_metadata_v1: (w) => w.put(`/api/v1/runs/${w.run}/metadata`, { metadata: { a: 1 } }),
  reset_idempotency_key_v1: async (w) => { await w.makeRun({ idempotencyKey: "k" }); await w.post("/api/v1/idempotencyKeys/k/reset", { taskIdentifier: "hello" }); },

  // batches
  create_batch_v1: (w) => w.post("/api/v1/tasks/batch", { items: [{ task: "hello", payload: "{}" }] }),
  create_batch_v2: (w) => w.post("/api/v2/tasks/batch", { items: [{ task: "hello", payload: "{}" }] }),
  create_batch_v3: async (w) => { await w.post("/api/v3/batches", { runCount: 1 }); await w.post("/api/v3/batches", { runCount: 0 }, { wrong: true }); },
  stream_batch_items_v3: async (w) => {
    const { id } = (await w.post("/api/v3/batches", { runCount: 1 })).json;
    await w.post(`/api/v3/batches/${id}/items`, '{"index":0,"task":"hello","payload":"1"}\n', lines);
  },
  list_batches_v1: async (w) => { await w.get("/api/v1/batches?page[size]=2"); await w.get("/api/v1/batches?page[after]=nobody"); },
  retrieve_batch_v1: (w) => w.get(`/api/v1/batches/${w.batch}?wait=1s`),
  retrieve_batch_v2: async (w) => { for (const query of ["", "?wait=1s", "?wait=2m"]) await w.get(`/api/v2/batches/${w.batch}${query}`); },
  retrieve_batch_results_v1: (w) => w.get(`/api/v1/batches/${w.batch}/results`),

  // queues, bulk actions
  list_gateways_v1: (w) => w.get("/api/v1/gateways", pat(w)),
  environment_stats_v1: async (w) => { await w.get("/api/v1/environments/stats"); await w.get("/api/v1/environments/stats?since=1h"); await w.get("/api/v1/environments/stats?since=soon"); },
  list_queues_v1: async (w) => { await w.get("/api/v1/queues?page=1&perPage=2"); await w.get("/api/v1/queues?page=0"); },
  retrieve_queue_v1: async (w) => { for (const rest of ["", "&concurrencyKey=k"]) await w.get(`${queue}?type=task${rest}`); await w.get("/api/v1/queues/nobody"); },
  retrieve_queue_usage_v1: async (w) => { await w.get(`${queue}/usage?type=task`); await w.get("/api/v1/queues/nobody/usage"); },
  pause_queue_v1: async (w) => { for (const action of ["pause", "resume"]) await w.post(`${queue}/pause`, { type: "task", action }); },
  override_queue_concurrency_v1: (w) => w.post(`${queue}/concurrency/override`, { type: "task", concurrencyLimit: 50 }),
  reset_queue_concurrency_v1: async (w) => { for (let i = 0; i < 2; i++) await w.post(`${queue}/concurrency/reset`, { type: "task" }); },
  set_queue_singleton_v1: async (w) => { for (const strategy of ["skip", "cancel", "queue", null]) await w.post(`${queue}/singleton`, { type: "task", strategy }); await w.post("/api/v1/queues/nobody/singleton", { type: "custom", strategy: "skip" }); },
  list_concurrency_limits_v1: async (w) => { await w.get("/api/v1/concurrency-limits?page=1&perPage=2"); await w.get("/api/v1/concurrency-limits?page=0"); },
  retrieve_concurrency_limit_v1: async (w) => { for (const rest of [limit, `${limit}?concurrencyKey=k`, "/api/v1/concurrency-limits/nobody"]) await w.get(rest); },
  retrieve_concurrency_limit_usage_v1: async (w) => { for (const rest of [limit, "/api/v1/concurrency-limits/nobody"]) await w.get(`${rest}/usage`); },
  override_concurrency_limit_v1: async (w) => { for (const body of [{ total: 5 }, { concurrencyKey: "k", perKey: 1, ttl: "1h" }, {}]) await w.post(`${limit}/override`, body); },
  reset_concurrency_limit_v1: async (w) => { for (const body of [{}, { concurrencyKey: "k" }]) await w.post(`${limit}/reset`, body); },
  pause_concurrency_limit_v1: async (w) => { for (const action of ["pause", "resume"]) await w.post(`${limit}/pause`, { action }); },
  rate_queue_v1: async (w) => { for (const rate of [{ total: { starts: 1000, period: "1s" }, perKey: { starts: 1000, period: "1m" } }, { total: null, perKey: null }, {}]) await w.post(`${queue}/rate`, { type: "task", ...rate }); },
  rate_concurrency_limit_v1: async (w) => {
    for (const rate of [{ total: { starts: 1000, period: "1s" }, perKey: { starts: 1000, period: "1m" } }, {}]) await w.post(`${limit}/rate`, rate);
    for (const rest of [limit, `${limit}?concurrencyKey=k`]) await w.get(rest);
    await w.post(`${limit}/rate`, { total: null, perKey: null });
  },
  create_bulk_action_v1: async (w) => { await bulk(w); await w.post("/api/v1/bulk-actions", { action: "replay", filter: {} }); },
  list_bulk_actions_v1: (w) => w.get("/api/v1/bulk-actions?page[size]=1"),
  retrieve_bulk_action_v1: async (w) => w.get(`/api/v1/bulk-actions/${await bulk(w)}`),
  abort_bulk_action_v1: async (w) => {
    await w.post("/api/v1/tasks/batch", { items: Array.from({ length: 300 }, () => ({ task: "hello", options: { tags: ["bulk"] } })) });
    const { id } = (await w.post("/api/v1/bulk-actions", { action: "cancel", filter: { tag: "bulk" } })).json;
    await w.post(`/api/v1/bulk-actions/${id}/abort`);
  },

  // schedules
  preview_schedule_v1: async (w) => { for (const body of [{ cron: "0 9 * * 1-5", timezone: "Europe/Berlin", count: 2 }, { cron: "61 * * * *" }]) await w.post("/api/v1/schedules/preview", body); },
  list_workers_v1: (w) => w.get("/api/v1/environments/workers"),
  list_tokens_v1: (w) => w.get("/api/v1/tokens", pat(w)),
  list_keys_v1: async (w) => { for (const env of ["dev", "nobody"]) await w.get(`/api/v1/projects/${w.ref}/${env}/keys`, pat(w)); },
  create_token_v1: async (w) => { for (const name of ["made", ""]) await w.post("/api/v1/tokens", { name, expiresIn: "1d" }, pat(w)); },
  revoke_token_v1: async (w) => {
    const made = await w.post("/api/v1/tokens", { name: "revoked" }, pat(w)), key = await signIn(w);
    for (const options of [pat(w), { key }, { key }]) await w.delete(`/api/v1/tokens/${made.json.id}`, options);
  },
  create_key_v1: async (w) => { for (const name of ["made", ""]) await w.post(secretKeys(w), { name, expiresIn: "1d" }, pat(w)); },
  reveal_key_v1: async (w) => { for (const id of [await secretKey(w), "nobody"]) await w.post(`${secretKeys(w)}/${id}/reveal`, undefined, pat(w)); },
  rotate_key_v1: async (w) => {
    const id = await secretKey(w), key = await signIn(w);
    for (const options of [pat(w), { key }, { key }]) await w.post(`${secretKeys(w)}/${id}/rotate`, { grace: "1h" }, options);
  },
  revoke_key_v1: async (w) => {
    const id = await secretKey(w), key = await signIn(w), [main] = (await w.get(secretKeys(w), pat(w))).json.data;
    for (const [one, options] of [[id, pat(w)], [id, { key }], [id, { key }], [main.id, { key }]]) await w.delete(`${secretKeys(w)}/${one}`, options);
  },
  list_schedules_v1: async (w) => { await schedule(w); await w.get("/api/v1/schedules?page=1&perPage=10"); },
  create_schedule_v1: async (w) => { await schedule(w); await w.post("/api/v1/schedules", { ...cron, cron: "nonsense" }); },
  get_schedule_v1: async (w) => w.get(await schedule(w)),
  update_schedule_v1: async (w) => w.put(await schedule(w), { task: "tick", cron: "0 10 * * *", externalId: "y", timezone: "UTC", window: "1h" }),
  delete_schedule_v1: async (w) => w.delete(await schedule(w)),
  activate_schedule_v1: async (w) => w.post(`${await schedule(w)}/activate`),
  deactivate_schedule_v1: async (w) => w.post(`${await schedule(w)}/deactivate`),
  get_timezones_v1: (w) => w.get("/api/v1/timezones?excludeUtc=true", { key: null }),

  // variables
  list_project_envvars_v1: (w) => w.get(variables(w)),
  create_project_envvar_v1: async (w) => { await w.post(variables(w), { name: "CREATED", value: "1" }); await w.get(variables(w)); },
  upload_project_envvars_v1: (w) => w.post(`${variables(w)}/import`, { variables: { UPLOADED: "1" }, override: true }),
  get_project_envvar_v1: async (w) => { await w.post(`${variables(w)}/import`, { variables: { GOT: "1" }, override: true }); await w.get(`${variables(w)}/GOT`); },
  update_project_envvar_v1: async (w) => { await w.post(`${variables(w)}/import`, { variables: { PUT: "1" }, override: true }); await w.put(`${variables(w)}/PUT`, { value: "2" }); },
  post_project_envvar_v1: async (w) => { await w.post(`${variables(w)}/import`, { variables: { POST: "1" }, override: true }); await w.post(`${variables(w)}/POST`, { value: "2" }); },
  delete_project_envvar_v1: async (w) => { await w.post(`${variables(w)}/import`, { variables: { GONE: "1" }, override: true }); await w.delete(`${variables(w)}/GONE`); },

  // tokens
  get_jwt_claims_v1: (w) => w.post("/api/v1/auth/jwt/claims"),
  create_public_token_v1: async (w) => { await w.post("/api/v1/auth/public-tokens", { scopes: ["read:runs"] }); await w.post("/api/v1/auth/public-tokens", { scopes: [] }); },
  create_jwt_v1: (w) => w.post("/api/v1/auth/jwt", {}),
  create_environment_jwt_v1: async (w) => { for (const expirationTime of ["1h", "1d"]) await w.post(`/api/v1/projects/${w.ref}/prod/jwt`, { claims: { scopes: ["read:runs"] }, expirationTime }, pat(w)); },

  // packets
  create_upload_payload_url_v2: (w) => w.put("/api/v2/packets/contract%2Fa.json"),
  create_upload_payload_url_v1: (w) => w.put("/api/v1/packets/contract/b.json"),
  get_payload_url_v1: (w) => w.get("/api/v1/packets/contract/a.json"),
  get_run_packet_url_v1: async (w) => {
    const offer = await w.put("/api/v2/packets/contract%2Flarge.json");
    await w.put(presigned(offer), '"large"', { key: null, headers: { "content-type": "application/json" } });
    const run = await w.post("/api/v1/tasks/hello/trigger", { payload: offer.json.storagePath, options: { payloadType: "application/store" } });
    await w.get(`/api/v1/runs/${run.json.id}/packets/payload`);
  },
  write_packet_v1: async (w) => w.put(presigned(await w.put("/api/v2/packets/contract%2Fw.json")), "1", { key: null, headers: { "content-type": "application/json" } }),
  read_packet_v1: async (w) => {
    await w.put(presigned(await w.put("/api/v2/packets/contract%2Fr.json")), "1", { key: null, headers: { "content-type": "application/json" } });
    await w.get(presigned(await w.get("/api/v1/packets/contract/r.json")), { key: null });
  },

  // deployments
  create_artifact_v1: async (w) => { await w.post("/api/v1/artifacts", { type: "deployment_bundle", contentType: "application/gzip", contentLength: 100 }, { key: w.staging }); await w.post("/api/v1/artifacts", {}, prod(w)); },
  upload_artifact_v1: async (w) => {
    const bytes = bundle(), { uploadUrl, uploadFields } = (await w.post("/api/v1/artifacts", { type: "deployment_bundle", contentLength: bytes.length }, { key: w.staging })).json;
    const { body, headers } = form(uploadFields, bytes), { pathname: at, search } = new URL(uploadUrl), pathname = at.replace("bundles/", "bundles%2F"); // one segment of the document
    await w.send("POST", pathname + search, body, { key: null, headers });
  },
  deploy_settings_v1: async (w) => { await building(w); await w.get(`/api/v1/projects/${w.ref}/prod/deploy-settings`, prod(w)); await w.get(`/api/v1/projects/${w.ref}/dev/deploy-settings`); },
  initialize_deployment_v1: async (w) => {
    const cli = new Deployer(w.gateway), body = cli.body(await cli.artifact(), { externalId: "contract", gitMeta: { commitSha: "a" }, buildEnvVars: { A: "1" } });
    const answer = w.post("/api/v1/deployments", body, prod(w));
    await new Builder(w.gateway, w.workerToken).build();
    await answer;
    await w.post("/api/v1/deployments", body, prod(w));
    await w.post("/api/v1/deployments", { contentHash: "h" }, { ...prod(w), wrong: true });
  },
  list_deployments_v1: async (w) => { await deployed(w); await w.get("/api/v1/deployments?page[size]=5&status=DEPLOYED&period=1d", prod(w)); await w.get("/api/v1/deployments?page[size]=0", prod(w)); },
  retrieve_current_deployment_v1: async (w) => { await deployed(w); await w.get("/api/v1/deployments/current", prod(w)); await w.get("/api/v1/deployments/current"); },
  retrieve_latest_deployment_v1: async (w) => { await deployed(w); await w.get("/api/v1/deployments/latest", prod(w)); },
  retrieve_deployment_v1: async (w) => { await w.get((await deployed(w)).one, prod(w)); await w.get(await undone(w, ""), prod(w)); },
  retrieve_deployment_logs_v1: async (w) => w.get(`${(await deployed(w)).one}/logs`, prod(w)),
  register_deployed_worker_v1: async (w) => { const { build, one } = await building(w); await w.post(`${one}/background-workers`, { metadata }, { key: build.key }); await w.post(`${one}/background-workers`, { metadata }, prod(w)); },
  fail_deployment_v1: async (w) => { const { one } = await building(w); await w.post(`${one}/fail`, { error: { name: "E", message: "m" } }, prod(w)); await w.get(one, prod(w)); },
  cancel_deployment_v1: async (w) => { const at = await undone(w, "/cancel"); await w.post(at, {}, prod(w)); },
  progress_deployment_v1: async (w) => w.post(await undone(w, "/progress"), {}, prod(w)),
  promote_deployment_v1: async (w) => { const { version } = await deployed(w); await deployed(w); await w.post(`/api/v1/deployments/${version}/promote`, undefined, prod(w)); await w.post(`/api/v1/deployments/${version}/promote?allowRollbacks=true`, undefined, prod(w)); },
  ...Object.fromEntries([1, 2, 3].map((v) => [`finalize_deployment_v${v}`, async (w) => w.post((await undone(w, "/finalize")).replace("v1", `v${v}`), {}, prod(w))])),
  generate_registry_credentials_v1: async (w) => w.post(await undone(w, "/generate-registry-credentials"), undefined, prod(w)),
  remote_build_provider_status_v1: (w) => w.get("/api/v1/remote-build-provider-status", prod(w)),
  retrieve_current_worker_v1: async (w) => { await deployed(w); await w.get(`/api/v1/projects/${w.ref}/prod/workers/current`, pat(w)); },
  dequeue_build_v1: (w) => w.post(`${actions}/builds/dequeue`, { instance: "a", architecture: "x64", libc: "glibc" }, as(w)),
  heartbeat_build_v1: async (w) => { const { its, build } = await building(w); await w.post(`${its}/heartbeat`, { step: "BUILDING", log: "a\n", attempt: build.attempt }, as(w)); await w.post(`${its}/heartbeat`, { attempt: 7 }, as(w)); },
  complete_build_v1: async (w) => { await deployed(w); const { its } = await building(w); await w.post(`${its}/complete`, { ok: false, error: { name: "BuildError", message: "m" } }, as(w)); },
  read_deployment_archive_v1: async (w) => w.get(`${actions}/deployments/${(await deployed(w)).id}/archive`, as(w)),
  read_deployment_index_v1: async (w) => w.get(`${actions}/deployments/${(await deployed(w)).id}/index`, as(w)),

  // projects
  list_orgs_v1: (w) => w.get("/api/v1/orgs", pat(w)),
  list_org_projects_v1: async (w) => w.get(`/api/v1/orgs/${(await w.get("/api/v1/orgs", pat(w))).json[0].slug}/projects`, pat(w)),
  create_org_v1: async (w) => { for (const body of [{ title: "Ours" }, { title: "" }]) await w.post("/api/v1/orgs", body, { ...pat(w), wrong: !body.title }); },
  create_project_v1: async (w) => { const [{ slug }] = (await w.get("/api/v1/orgs", pat(w))).json; for (const org of [slug, "nobody"]) await w.post(`/api/v1/orgs/${org}/projects`, { name: "Made" }, pat(w)); },
  list_project_runtimes_v1: (w) => w.get("/api/v1/projects/runtimes", pat(w)),
  rename_project_v1: async (w) => { for (const ref of [w.ref, "proj_nobodysprojectaaaaaa"]) await w.patch(`/api/v1/projects/${ref}`, { name: "My project" }, pat(w)); },
  get_dev_status_v1: (w) => w.get(`/api/v1/projects/${w.ref}/dev-status`, pat(w)),
  list_projects_v1: (w) => w.get("/api/v1/projects", pat(w)),
  retrieve_project_v1: (w) => w.get(`/api/v1/projects/${w.ref}`, pat(w)),
  list_branches_v1: async (w) => { await w.post(branches(w), { env: "preview", branch: "listed" }, pat(w)); await w.get(branches(w), pat(w)); },
  upsert_branch_v1: (w) => w.post(branches(w), { env: "preview", branch: "made" }, pat(w)),
  archive_branch_v1: async (w) => { await w.post(branches(w), { env: "preview", branch: "old" }, pat(w)); await w.post(`${branches(w)}/archive`, { env: "preview", branch: "old" }, pat(w)); },

  // realtime
  subscribe_run_v1: (w) => w.get(`/realtime/v1/runs/${w.run}?${shape}`),
  subscribe_runs_v1: (w) => w.get(`/realtime/v1/runs?${shape}&tags=a`),
  subscribe_batch_v1: (w) => w.get(`/realtime/v1/batches/${w.batch}?${shape}`),
  stream_events_v1: (w) => w.begun(`/realtime/v1/events?run=${w.run}`),
  worker_notices_v1: (w) => w.upgrade("/socket.io/?EIO=4&transport=websocket"),
  open_socket_v1: (w) => w.upgrade(`/realtime/v1/ws`),

  // streams
  read_input_stream_v1: (w) => w.begun(`${stream(w)}/input/k`),
  send_input_stream_v1: (w) => w.post(`${stream(w)}/input/k`, { data: { a: 1 } }),
  read_stream_v1: (w) => w.begun(`${stream(w)}/k`),
  probe_stream_v1: (w) => w.head(`${stream(w)}/self/k`),
  create_stream_v1: (w) => w.put(`${stream(w)}/self/k`),
  pipe_stream_v1: (w) => w.post(`${stream(w)}/self/piped`, '"a"\n"b"\n', lines),
  append_stream_v1: (w) => w.post(`${stream(w)}/self/k/append`, "part", { headers: { "content-type": "text/plain" } }),

  // waitpoints
  create_waitpoint_token_v1: (w) => w.post(tokens, { timeout: "1h", tags: ["a"], idempotencyKey: "once" }),
  list_waitpoint_tokens_v1: async (w) => { await token(w); await w.get(`${tokens}?page[size]=10`); },
  retrieve_waitpoint_token_v1: async (w) => {
    const { id } = await token(w);
    await w.get(`${tokens}/${id}`);
    await w.post(`${tokens}/${id}/complete`, { data: { a: 1 } });
    await w.get(`${tokens}/${id}`);
  },
  complete_waitpoint_token_v1: async (w) => w.post(`${tokens}/${(await token(w)).id}/complete`, { data: 1 }),
  complete_waitpoint_token_by_url_v1: async (w) => w.post((await token(w)).url.replace(/^https?:\/\/[^/]+/, ""), { a: 1 }, { key: null }),
  create_input_stream_waitpoint_v1: (w) => w.post(`/api/v1/runs/${w.run}/input-streams/wait`, { streamId: "k", timeout: "1h", lastSeqNum: 3 }),
  wait_for_token_v1: async (w) => { const attempt = await (await w.dequeue()).start(); await w.post(`/engine/v1/runs/${attempt.id}/waitpoints/tokens/${(await token(w)).id}/wait`, {}); },

  // workers
  platform_notifications_v1: (w) => w.get("/api/v1/platform-notifications", pat(w)),
  whoami_v2: (w) => w.get(`/api/v2/whoami?projectRef=${w.ref}`, pat(w)),
  ...Object.fromEntries(["dev", "staging", "prod"].map((slug) => [`get_${slug}_environment_v1`, (w) => w.get(`/api/v1/projects/${w.ref}/${slug}`, pat(w))])),
  get_preview_environment_v1: (w) => w.get(`/api/v1/projects/${w.ref}/preview`, pat(w)),
  get_worker_variables_v1: (w) => w.get(`/api/v1/projects/${w.ref}/envvars`),
  register_worker_v1: (w) => w.post(`/api/v1/projects/${w.ref}/background-workers`, { metadata: { contentHash: "other", tasks: [{ id: "hello" }, { id: "tick", triggerSource: "schedule" }] } }, { key: w.prod }),
  worker_config_v1: (w) => w.get("/engine/v1/dev/config"),
  worker_presence_v1: (w) => w.begun("/engine/v1/dev/presence"),
  worker_dequeue_v1: async (w) => { await w.makeRun(); await w.post("/engine/v1/dev/dequeue", { currentWorker: w.worker.id, oldWorkers: [] }); },
  worker_disconnect_v1: (w) => w.post("/engine/v1/dev/disconnect", { runFriendlyIds: [] }),
  worker_start_v1: async (w) => { const attempt = await w.dequeue(); await w.post(`${snapshot(attempt)}/attempts/start`, { isWarmStart: true }); },
  worker_complete_v1: async (w) => { const attempt = await (await w.dequeue()).start(); await w.post(`${snapshot(attempt)}/attempts/complete`, { completion: { ok: true, id: attempt.id, output: "1", outputType: "application/json" } }); },
  worker_heartbeat_v1: async (w) => { const attempt = await (await w.dequeue()).start(); await w.post(`${snapshot(attempt)}/heartbeat`, { cpu: 0 }); },
  worker_latest_snapshot_v1: (w) => w.get(`/engine/v1/dev/runs/${w.run}/snapshots/latest`),
  worker_debug_log_v1: (w) => w.post(`/engine/v1/dev/runs/${w.run}/logs/debug`, {}),
  worker_wait_v1: async (w) => { const attempt = await (await w.dequeue()).start(); await w.post(`/engine/v1/runs/${attempt.id}/wait/duration`, { date: new Date(Date.now() + 3600e3).toISOString() }); },
  ...Object.fromEntries(["traces", "logs", "metrics"].map((signal) => [`otel_signed_${signal}_v1`, async (w) => {
    const { variables } = (await w.get(`/api/v1/projects/${w.ref}/envvars`)).json;
    await w.post(`${new URL(variables.TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT).pathname}/v1/${signal}`, {}, { key: null });
  }])),
  ...Object.fromEntries(["traces", "logs", "metrics"].map((signal) => [`otel_${signal}_v1`, (w) => w.post(`/otel/v1/${signal}`, {}, { key: null })])),

  // workers outside a session
  deployed_connect_v1: (w) => w.post(`${actions}/connect`, { metadata: {} }, as(w)),
  deployed_dequeue_v1: async (w) => { await w.makeRun({}, prod(w)); await w.post(`${actions}/dequeue`, {}, as(w)); },
  deployed_heartbeat_v1: (w) => w.post(`${actions}/heartbeat`, { cpu: { used: 0, available: 1 }, memory: { used: 0, available: 1 }, tasks: [] }, as(w)),
  deployed_latest_snapshot_v1: async (w) => w.get(`${actions}/runs/${(await taken(w)).run.id}/snapshots/latest`, as(w)),
  deployed_snapshots_since_v1: async (w) => w.get(`${actions}/runs/${(await taken(w)).run.id}/snapshots/since/snapshot_0`, as(w)),
  deployed_start_v1: async (w) => w.post(`${leased(await taken(w))}/attempts/start`, { isWarmStart: true }, as(w)),
  deployed_complete_v1: async (w) => {
    const message = await taken(w);
    const { snapshot: { id } } = (await w.post(`${leased(message)}/attempts/start`, {}, as(w))).json;
    await w.post(`${actions}/runs/${message.run.id}/snapshots/${id}/attempts/complete`, { completion: { ok: true, id: message.run.id } }, as(w));
  },
  deployed_heartbeat_run_v1: async (w) => w.post(`${leased(await taken(w))}/heartbeat`, { cpu: 0 }, as(w)),
  deployed_release_v1: async (w) => w.post(`${leased(await taken(w))}/release`, { reason: "no room" }, as(w)),
  deployed_suspend_v1: async (w) => { const at = `${leased(await taken(w))}/suspend`; await w.post(at, { success: false, error: "no disk" }, as(w)); await w.post(at, { success: true }, as(w)); },
  deployed_continue_v1: async (w) => w.get(`${leased(await taken(w))}/continue`, as(w)),
  deployed_restore_outcome_v1: async (w) => w.post(`${leased(await taken(w))}/restore-outcome`, { outcome: "fail", reason: "x" }, as(w)),
  deployed_debug_log_v1: (w) => w.post(`${actions}/runs/${w.run}/logs/debug`, { time: 1, message: "m" }, as(w)),

  // the gateway
  health: (w) => w.get("/healthz", { key: null }),
  readiness: (w) => w.get("/readyz", { key: null }),
  metrics: (w) => w.get("/metrics", { key: metricsToken }),
  gateways: (w) => w.get("/gateways", { key: metricsToken }),
  openapi: (w) => w.get("/openapi.json", { key: null }),
  page: (w) => w.get("/", { key: null }),
  page_of_tokens: (w) => w.get("/account/tokens", { key: null }),
  page_of_sign_in: (w) => w.get("/login", { key: null }),
  page_of_organization: (w) => w.get("/orgs/acme", { key: null }),
  page_of_login: (w) => w.get("/account/authorization-code/nobody", { key: null }),
  sign_out_v1: async (w) => { for (const options of [{ key: await signIn(w) }, pat(w)]) await w.delete("/api/v1/sign-in", options); },
  confirm_sign_in_v1: async (w) => {
    const key = await signIn(w);
    for (const code of [w.pat, "tr_link_nobody"]) await w.post("/api/v1/sign-in/confirm", { code }, { key });
  },
  sign_out_everywhere_v1: async (w) => { for (const options of [{ key: await signIn(w) }, pat(w)]) await w.delete("/api/v1/sign-ins", options); },
  stay_signed_in_v1: async (w) => { await stay(w); await w.post("/api/v1/sign-in/stay", {}, pat(w)); },
  use_session: async (w) => {
    const use = await stay(w), none = { key: null };
    for (const body of [{ project: w.ref, environment: "dev" }, { signOut: true }, {}]) await use(body);
    await w.post("/dashboard/session", {}, none);
  },
  sign_in_v1: async (w) => { for (const code of [await w.link(), "tr_link_nobody"]) await w.post("/api/v1/sign-in", { code }, { key: null }); },
  create_authorization_code_v1: async (w) => { await w.post("/api/v1/authorization-code", login, { key: null }); await w.post("/api/v1/authorization-code", { ...login, codeChallenge: "short" }, { key: null }); },
  retrieve_authorization_code_v1: async (w) => { const { authorizationCode } = (await w.post("/api/v1/authorization-code", login, { key: null })).json; await w.get(`/api/v1/authorization-code/${authorizationCode}`, pat(w)); await w.get("/api/v1/authorization-code/nobody", pat(w)); },
  approve_authorization_code_v1: async (w) => { const { authorizationCode } = (await w.post("/api/v1/authorization-code", login, { key: null })).json; for (let i = 0; i < 2; i++) await w.post(`/api/v1/authorization-code/${authorizationCode}/approve`, {}, pat(w)); },
  refuse_authorization_code_v1: async (w) => { const { authorizationCode } = (await w.post("/api/v1/authorization-code", login, { key: null })).json; for (let i = 0; i < 2; i++) await w.post(`/api/v1/authorization-code/${authorizationCode}/refuse`, {}, pat(w)); },
  create_personal_token_v1: async (w) => {
    const { authorizationCode } = (await w.post("/api/v1/authorization-code", login, { key: null })).json, { approvalCode } = (await w.post(`/api/v1/authorization-code/${authorizationCode}/approve`, {}, pat(w))).json;
    for (const code of ["BCDF-BCDF-BCDF", approvalCode, approvalCode]) await w.post("/api/v1/token", { authorizationCode, codeVerifier: verifier, approvalCode: code }, { key: null });
  },
  page_of_run: (w) => w.get("/runs/run_x", { key: null }),
  page_program: (w) => w.get("/dashboard/app.js", { key: null }),
  page_style: (w) => w.get("/dashboard/app.css", { key: null }),
  page_icon: (w) => w.get("/dashboard/icon.svg", { key: null }),
  page_of_project: (w) => w.get("/projects/proj_x", { key: null }),
  client: async (w) => { const { headers } = await w.get("/client.js", { key: null }); await w.get("/client.js", { key: null, headers: { "if-none-match": headers.etag } }); },
  client_react: (w) => w.get("/client/react.js", { key: null }),
};
