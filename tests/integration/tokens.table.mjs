// The rights of each credential on each route, written down from the protocol, not from the program.
//
// takes: the kinds of credential that the route accepts: key, token (public access token), user (a public access token
// that was signed for a user), personal, worker, anyone.
// asks: what a public token's scopes must grant: [action, type, id?]; any entry of the list is enough.
// of: what a user's token must grant, read (GET) or write, on routes that accept no other public token.
// at: the rest of the request. ok: the statuses for an allowed caller (200 if omitted). foreign: the statuses for the
// key of another environment, where they differ because the thing does not exist there.
// held: the response never ends; its head decides.
//
// A route of the program without a row fails the test, and so does a row without a route.

/** Returns true if a scope, action[:type[:id]], grants what is required; only the first two colons separate. */
export function grants(scope, [action, type, id]) {
  if (scope === "admin") return true;
  const parts = /^([^:]*):([^:]*)(?::(.*))?$/s.exec(scope);
  if (!parts) return false;
  const [, itsAction, itsType, itsId] = parts;
  return (itsAction === action || itsAction === "*") && (itsType === type || itsType === "all") &&
    (itsId === undefined || (itsId !== "" && itsId === id));
}

/** The scope that a user's token must grant on a row that accepts no other public token. */
export const userAsks = ({ route, of }) => [[route.startsWith("GET ") ? "read" : "write", of]];

const run = (w) => [["runs", w.run], ["tasks", w.task], ["tags", w.tag], ["batch", w.batch]];
const reads = (things) => (w) => things(w).map(([type, id]) => ["read", type, id]);
const post = (body) => ({ body });
const lines = (w) => ({ body: JSON.stringify({ index: 0, task: w.task, payload: "1" }), headers: { "content-type": "application/x-ndjson" } });
const attempt = (w, what) => ({ path: `/engine/v1/dev/runs/${w.run}/snapshots/snapshot_1/${what}`, body: {} });
const action = (method, rest, body, ok) => ({ route: `${method} /engine/v1/worker-actions/runs/:/${rest}`, takes: "worker", ok: [ok], at: (w) => ({ path: `/engine/v1/worker-actions/runs/${w.prodRun}/${rest.replace("/:", "/snapshot_0")}`, body }) });
const live = "offset=-1";

export const rows = [
  // triggers, batches, runs, schedules
  { route: "POST /api/v1/tasks/:/trigger", takes: "key token", asks: (w) => [["trigger", "tasks", w.task]], at: (w) => ({ path: `/api/v1/tasks/${w.task}/trigger`, body: { payload: "1" } }) },
  { route: "POST /api/v1/tasks/batch", takes: "key token", asks: (w) => [["batchTrigger", "tasks", w.task]], at: (w) => post({ items: [{ task: w.task }] }), ok: [202] },
  { route: "POST /api/v2/tasks/batch", takes: "key token", asks: (w) => [["batchTrigger", "tasks", w.task]], at: (w) => post({ items: [{ task: w.task }] }), ok: [202] },
  { route: "POST /api/v3/batches", what: "of named tasks", takes: "key token", asks: (w) => [["batchTrigger", "tasks", w.task], ["batchTrigger", "batch"]], at: (w) => post({ runCount: 1, taskIdentifiers: [w.task] }), ok: [202] },
  { route: "POST /api/v3/batches", what: "of any tasks", takes: "key token", asks: () => [["batchTrigger", "tasks"], ["batchTrigger", "batch"]], at: () => post({ runCount: 1 }), ok: [202] },
  { route: "POST /api/v3/batches/:/items", takes: "key token", asks: (w) => [["write", "batch", w.batch], ["batchTrigger", "tasks", w.task]], at: (w) => ({ path: `/api/v3/batches/${w.batch}/items`, ...lines(w) }), foreign: [422] },
  { route: "GET /api/v1/batches", takes: "key user", of: "batches", at: () => ({}) },
  { route: "GET /api/v1/batches/:", takes: "key token", asks: (w) => [["read", "batch", w.batch], ["read", "runs"]], at: (w) => ({ path: `/api/v1/batches/${w.batch}` }), foreign: [404] },
  { route: "GET /api/v2/batches/:", takes: "key token", asks: (w) => [["read", "batch", w.batch], ["read", "runs"]], at: (w) => ({ path: `/api/v2/batches/${w.batch}` }), foreign: [404] },
  { route: "GET /api/v1/batches/:/results", takes: "key user", of: "batches", at: (w) => ({ path: `/api/v1/batches/${w.batch}/results` }), foreign: [404] },
  { route: "GET /api/v1/runs/counts", what: "all", takes: "key token", asks: () => [["read", "runs"], ["read", "tasks"]], at: () => ({ path: "/api/v1/runs/counts" }) },
  { route: "GET /api/v1/runs/counts", what: "of a task", takes: "key token", asks: (w) => [["read", "runs"], ["read", "tasks", w.task]], at: (w) => ({ path: "/api/v1/runs/counts", query: `filter[taskIdentifier]=${w.task}` }) },
  { route: "GET /api/v1/runs", what: "all", takes: "key token", asks: () => [["read", "runs"], ["read", "tasks"]], at: () => ({}) },
  { route: "GET /api/v1/runs", what: "of a task", takes: "key token", asks: (w) => [["read", "runs"], ["read", "tasks", w.task]], at: (w) => ({ query: `filter[taskIdentifier]=${w.task}` }) },
  { route: "GET /api/v1/runs", what: "of a tag", takes: "key token", asks: () => [["read", "runs"], ["read", "tasks"]], at: (w) => ({ query: `filter[tag]=${w.tag}` }) },
  { route: "GET /api/v1/projects/:/runs", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/runs` }) },
  { route: "GET /api/v3/runs/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/api/v3/runs/${w.run}` }), foreign: [404] },
  { route: "GET /api/v1/runs/:/result", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/result` }), ok: [404], foreign: [404] }, // the run has not ended
  { route: "GET /api/v1/runs/:/children", takes: "key token", asks: reads(run), at: (w) => ({ path: `/api/v1/runs/${w.run}/children` }), foreign: [404] },
  { route: "POST /api/v2/runs/:/cancel", takes: "key token", asks: (w) => [["write", "runs", w.doomed], ["write", "tasks", w.task]], at: (w) => ({ path: `/api/v2/runs/${w.doomed}/cancel`, body: {} }), foreign: [404] },
  { route: "POST /api/v1/runs/:/replay", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/replay`, body: {} }), foreign: [404] },
  { route: "POST /api/v1/runs/:/reschedule", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/reschedule`, body: { delay: "1h" } }), ok: [400], foreign: [404] }, // the run is not delayed
  { route: "POST /api/v1/runs/:/tags", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/tags`, body: { tags: w.tag } }), foreign: [404] },
  { route: "GET /api/v1/runs/:/metadata", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/metadata` }), foreign: [404] },
  { route: "PUT /api/v1/runs/:/metadata", takes: "key user", of: "runs", at: (w) => ({ path: `/api/v1/runs/${w.run}/metadata`, body: { metadata: { a: 1 } } }), foreign: [404] },
  { route: "POST /api/v1/idempotencyKeys/:/reset", takes: "key token", asks: () => [["write", "runs"]], at: (w) => ({ path: "/api/v1/idempotencyKeys/nobody/reset", body: { taskIdentifier: w.task } }), ok: [404] },
  { route: "POST /api/v1/auth/jwt/claims", takes: "key", at: () => ({}) },
  { route: "POST /api/v1/auth/public-tokens", takes: "key", at: () => post({ scopes: ["read:runs"] }) },
  { route: "POST /api/v1/auth/jwt", takes: "key", at: () => post({}) },
  { route: "PUT /api/v2/packets/*", takes: "key", at: () => ({ path: "/api/v2/packets/a%2Fb.json" }) },
  { route: "PUT /api/v1/packets/*", takes: "key", at: () => ({ path: "/api/v1/packets/a/b.json" }) },
  // A token that reads every run, or the run that the packet belongs to: this packet belongs to none.
  { route: "GET /api/v1/packets/*", takes: "key token", asks: () => [["read", "runs"]], at: () => ({ path: "/api/v1/packets/a/b.json" }) },
  { route: "GET /api/v1/runs/:/packets/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/api/v1/runs/${w.run}/packets/payload` }), ok: [404], foreign: [404] }, // the payload is not a packet
  { route: "PUT /packets/v1/:/*", takes: "anyone", at: (w) => ({ path: `/packets/v1/${w.sub}/a/b.json?expires=9999999999&signature=${"A".repeat(43)}`, body: "1" }), ok: [403] },
  { route: "GET /packets/v1/:/*", takes: "anyone", at: (w) => ({ path: `/packets/v1/${w.sub}/a/b.json?expires=9999999999&signature=${"A".repeat(43)}` }), ok: [403] },
  { route: "POST /api/v1/bulk-actions", takes: "key user", of: "runs", at: () => post({ action: "cancel", filter: { tag: "nobody's" } }), ok: [202, 429] },
  { route: "GET /api/v1/bulk-actions", takes: "key user", of: "runs", at: () => ({}) },
  { route: "GET /api/v1/bulk-actions/:", takes: "key user", of: "runs", at: () => ({ path: "/api/v1/bulk-actions/nobody" }), ok: [404] },
  { route: "POST /api/v1/bulk-actions/:/abort", takes: "key user", of: "runs", at: () => ({ path: "/api/v1/bulk-actions/nobody/abort", body: {} }), ok: [404] },
  { route: "GET /api/v1/queues", takes: "key user", of: "queues", at: () => ({}) },
  { route: "GET /api/v1/gateways", takes: "personal user", of: "gateways", at: () => ({}) },
  { route: "GET /api/v1/environments/stats", takes: "key token", asks: () => [["read", "runs"], ["read", "tasks"]], at: () => ({}) },
  { route: "GET /api/v1/queues/:", takes: "key user", of: "queues", at: () => ({ path: "/api/v1/queues/nobody", query: "type=custom" }), ok: [404] },
  { route: "GET /api/v1/queues/:/usage", takes: "key user", of: "queues", at: () => ({ path: "/api/v1/queues/nobody/usage", query: "type=custom" }), ok: [404] },
  ...["pause", "singleton", "concurrency/override", "concurrency/reset", "rate"].map((what) => ({ route: `POST /api/v1/queues/:/${what}`, takes: "key user", of: "queues", at: () => ({ path: `/api/v1/queues/nobody/${what}`, body: [] }), ok: [400] })),
  { route: "GET /api/v1/concurrency-limits", takes: "key user", of: "concurrencyLimits", at: () => ({}) },
  { route: "GET /api/v1/concurrency-limits/:", takes: "key user", of: "concurrencyLimits", at: () => ({ path: "/api/v1/concurrency-limits/nobody" }), ok: [404] },
  { route: "GET /api/v1/concurrency-limits/:/usage", takes: "key user", of: "concurrencyLimits", at: () => ({ path: "/api/v1/concurrency-limits/nobody/usage" }), ok: [404] },
  ...["override", "reset", "pause", "rate"].map((what) => ({ route: `POST /api/v1/concurrency-limits/:/${what}`, takes: "key user", of: "concurrencyLimits", at: () => ({ path: `/api/v1/concurrency-limits/nobody/${what}`, body: [] }), ok: [400] })),
  // A key is valid for its own environment, a personal token for each environment of the project.
  ...[["GET", ""], ["POST", "", 400], ["POST", "/import", 400], ["GET", "/NOBODY", 404], ["PUT", "/NOBODY", 400], ["POST", "/NOBODY", 400], ["DELETE", "/NOBODY", 404]].map(([method, rest, status = 200]) =>
    ({ route: `${method} /api/v1/projects/:/envvars/:${rest.replace("NOBODY", ":")}`, takes: "key personal user", of: "envvars", at: (w) => ({ path: `/api/v1/projects/${w.ref}/envvars/dev${rest}`, body: method === "GET" || method === "DELETE" ? undefined : {} }), ok: [status], foreign: [400] })),
  { route: "GET /api/v1/orgs", takes: "personal", at: () => ({}) },
  { route: "POST /api/v1/orgs", takes: "personal", at: () => post({ title: "Ours" }), ok: [422] },
  { route: "POST /api/v1/orgs/:/projects", takes: "personal", at: () => ({ path: "/api/v1/orgs/org_nobody/projects", body: { name: "Made" } }), ok: [404] },
  { route: "GET /api/v1/projects/runtimes", takes: "personal", at: () => ({}) },
  { route: "PATCH /api/v1/projects/:", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}`, body: { name: "My project" } }) },
  { route: "GET /api/v1/projects/:/dev-status", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/dev-status` }) },
  { route: "GET /api/v1/orgs/:/projects", takes: "personal", at: () => ({ path: "/api/v1/orgs/org_nobody/projects" }), ok: [404] },
  { route: "GET /api/v1/projects", takes: "personal", at: () => ({}) },
  { route: "GET /api/v1/projects/:", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}` }) },
  { route: "GET /api/v1/projects/:/branches", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/branches` }) },
  { route: "POST /api/v1/projects/:/branches", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/branches`, body: {} }), ok: [400] },
  { route: "POST /api/v1/projects/:/branches/archive", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/branches/archive`, body: {} }), ok: [400] },
  { route: "POST /api/v1/schedules/preview", takes: "key user", of: "schedules", at: () => post({ cron: "0 9 * * *" }) },
  { route: "GET /api/v1/environments/workers", takes: "key user", of: "workers", at: () => ({}) },
  { route: "GET /api/v1/schedules", takes: "key user", of: "schedules", at: () => ({}) },
  { route: "POST /api/v1/schedules", takes: "key user", of: "schedules", at: () => post({}), ok: [400] },
  ...[["GET", "", 404], ["PUT", "", 400], ["DELETE", "", 404], ["POST", "/activate", 404], ["POST", "/deactivate", 404]].map(([method, rest, status]) =>
    ({ route: `${method} /api/v1/schedules/:${rest}`, takes: "key user", of: "schedules", at: () => ({ path: `/api/v1/schedules/sched_nobody${rest}`, body: method === "PUT" ? {} : undefined }), ok: [status] })),
  { route: "GET /api/v1/timezones", takes: "anyone", at: () => ({}) },
  // calls of the CLI and its sessions
  { route: "GET /api/v2/whoami", takes: "personal", at: () => ({}) },
  { route: "GET /api/v1/platform-notifications", takes: "personal", at: () => ({}) },
  { route: "GET /api/v1/projects/:/dev", takes: "key personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/dev` }), foreign: [400] },
  ...["staging", "prod", "preview"].map((slug) => ({ route: `GET /api/v1/projects/:/${slug}`, takes: "key personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/${slug}` }), ok: [200, 400], foreign: [slug === "prod" ? 200 : 400] })), // 400: a key of another environment; the foreign one is of prod
  { route: "GET /api/v1/projects/:/envvars", takes: "key", at: (w) => ({ path: `/api/v1/projects/${w.ref}/envvars` }) },
  { route: "POST /api/v1/projects/:/background-workers", takes: "key", at: (w) => ({ path: `/api/v1/projects/${w.ref}/background-workers`, body: {} }), ok: [400] },
  { route: "GET /engine/v1/dev/config", takes: "key", at: () => ({}) },
  { route: "GET /engine/v1/dev/presence", takes: "key", at: () => ({}), held: true },
  { route: "POST /engine/v1/dev/dequeue", takes: "key", at: () => post({}) },
  { route: "POST /engine/v1/dev/disconnect", takes: "key", at: () => post("["), ok: [400] },
  { route: "POST /engine/v1/dev/runs/:/snapshots/:/attempts/start", takes: "key", at: (w) => attempt(w, "attempts/start"), ok: [409], foreign: [404] },
  { route: "POST /engine/v1/dev/runs/:/snapshots/:/attempts/complete", takes: "key", at: (w) => attempt(w, "attempts/complete"), ok: [400], foreign: [404] },
  { route: "POST /engine/v1/dev/runs/:/snapshots/:/heartbeat", takes: "key", at: (w) => attempt(w, "heartbeat") }, // accepted for any run
  { route: "GET /engine/v1/dev/runs/:/snapshots/latest", takes: "key", at: (w) => ({ path: `/engine/v1/dev/runs/${w.run}/snapshots/latest` }), foreign: [404] },
  { route: "POST /engine/v1/dev/runs/:/logs/debug", takes: "key", at: (w) => ({ path: `/engine/v1/dev/runs/${w.run}/logs/debug`, body: {} }) },
  // workers outside of sessions; the run is one of prod
  { route: "POST /engine/v1/worker-actions/connect", takes: "worker", at: () => post({ metadata: {} }) },
  { route: "POST /engine/v1/worker-actions/dequeue", takes: "worker", at: () => post("["), ok: [400] }, // invalid JSON, since a valid call would be held
  { route: "POST /engine/v1/worker-actions/heartbeat", takes: "worker", at: () => post({}) },
  action("GET", "snapshots/latest", undefined, 200),
  action("GET", "snapshots/since/:", undefined, 200),
  action("POST", "snapshots/:/attempts/start", {}, 409),
  action("POST", "snapshots/:/attempts/complete", { completion: { ok: true } }, 400),
  action("POST", "snapshots/:/heartbeat", {}, 200),
  action("POST", "snapshots/:/release", { reason: "r" }, 409),
  action("POST", "snapshots/:/suspend", { success: true }, 400),
  action("GET", "snapshots/:/continue", undefined, 400),
  action("POST", "snapshots/:/restore-outcome", {}, 400),
  action("POST", "logs/debug", {}, 204),
  // deployments, with unknown ids so that no call is held
  { route: "POST /api/v1/artifacts", takes: "key", at: () => post({}), ok: [400] },
  { route: "POST /artifacts/v1/:/*", takes: "anyone", at: (w) => ({ path: `/artifacts/v1/${w.sub}/bundles/a.tar.gz?length=1&expires=9999999999&signature=${"A".repeat(43)}`, body: "1" }), ok: [403] },
  { route: "GET /api/v1/projects/:/:/deploy-settings", takes: "key", at: (w) => ({ path: `/api/v1/projects/${w.ref}/prod/deploy-settings` }), ok: [404] },
  { route: "POST /api/v1/deployments", takes: "key", at: () => post({}), ok: [400] },
  { route: "GET /api/v1/deployments", takes: "key token", asks: () => [["read", "deployments"]], at: () => ({}) },
  { route: "GET /api/v1/deployments/current", takes: "key token", asks: () => [["read", "deployments"]], at: () => ({}), ok: [404] },
  { route: "GET /api/v1/deployments/latest", takes: "key user", of: "deployments", at: () => ({}), ok: [404] },
  ...[["GET", "", true], ["GET", "/logs", true], ["POST", "/background-workers"], ["POST", "/fail"], ["POST", "/cancel", true], ["POST", "/progress"], ["POST", "/promote", true], ["POST", "/finalize"], ["POST", "/generate-registry-credentials"]].map(([method, rest, forUser]) =>
    ({ route: `${method} /api/v1/deployments/:${rest}`, ...(forUser ? { takes: "key user", of: "deployments" } : { takes: "key" }), at: () => ({ path: `/api/v1/deployments/deployment_nobody${rest}`, body: method === "POST" ? {} : undefined }), ok: [404] })),
  ...["v2", "v3"].map((v) => ({ route: `POST /api/${v}/deployments/:/finalize`, takes: "key", at: () => ({ path: `/api/${v}/deployments/deployment_nobody/finalize`, body: {} }), ok: [404] })),
  { route: "GET /api/v1/remote-build-provider-status", takes: "key personal", at: () => ({}) },
  { route: "GET /api/v1/projects/:/:/workers/current", takes: "personal user", of: "workers", at: (w) => ({ path: `/api/v1/projects/${w.ref}/dev/workers/current` }), ok: [200, 404] },
  { route: "POST /api/v1/sign-in", takes: "anyone", at: () => post({ code: "tr_link_nobody" }), ok: [400] },
  { route: "POST /api/v1/authorization-code", takes: "anyone", at: () => post({}), ok: [400] },
  { route: "POST /api/v1/token", takes: "anyone", at: () => post({ authorizationCode: "nobody", codeVerifier: "a", approvalCode: "b" }), ok: [404] },
  { route: "GET /api/v1/authorization-code/:", takes: "personal", at: () => ({ path: "/api/v1/authorization-code/nobody" }), ok: [404] },
  ...["approve", "refuse"].map((verb) => ({ route: `POST /api/v1/authorization-code/:/${verb}`, takes: "personal", at: () => ({ path: `/api/v1/authorization-code/nobody/${verb}`, body: {} }), ok: [404] })),
  { route: "DELETE /api/v1/sign-in", takes: "personal", at: () => ({}), ok: [400] }, // the token is not a sign-in
  { route: "DELETE /api/v1/sign-ins", takes: "personal", at: () => ({}), ok: [403] }, // nor is it fresh
  { route: "POST /api/v1/sign-in/stay", takes: "personal", at: () => post({}), ok: [403] }, // not from a page of the gateway
  { route: "POST /dashboard/session", takes: "anyone", at: () => post({}), ok: [403] }, // it asks for a cookie, or a signature: session.test.mjs
  { route: "POST /api/v1/sign-in/confirm", takes: "personal", at: () => post({ code: "tr_link_nobody" }), ok: [400] },
  { route: "GET /api/v1/tokens", takes: "personal", at: () => ({}) },
  { route: "POST /api/v1/tokens", takes: "personal", at: () => post({}), ok: [400] },
  { route: "DELETE /api/v1/tokens/:", takes: "personal", at: () => ({ path: "/api/v1/tokens/nobody" }), ok: [404] },
  { route: "POST /api/v1/projects/:/:/keys", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/dev/keys`, body: {} }), ok: [400] },
  ...[["POST", "/reveal"], ["POST", "/rotate"], ["DELETE", ""]].map(([method, rest]) =>
    ({ route: `${method} /api/v1/projects/:/:/keys/:${rest}`, takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/dev/keys/nobody${rest}`, body: method === "POST" ? {} : undefined }), ok: [404] })),
  { route: "GET /api/v1/projects/:/:/keys", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/prod/keys` }) },
  { route: "POST /api/v1/projects/:/:/jwt", takes: "personal", at: (w) => ({ path: `/api/v1/projects/${w.ref}/prod/jwt`, body: {} }) },
  { route: "POST /engine/v1/worker-actions/builds/dequeue", takes: "worker", at: () => post("["), ok: [400] }, // invalid JSON, since a valid call would be held
  ...["heartbeat", "complete"].map((rest) => ({ route: `POST /engine/v1/worker-actions/builds/:/${rest}`, takes: "worker", at: () => ({ path: `/engine/v1/worker-actions/builds/deployment_nobody/${rest}`, body: {} }), ok: [404] })),
  ...["archive", "index"].map((rest) => ({ route: `GET /engine/v1/worker-actions/deployments/:/${rest}`, takes: "worker", at: () => ({ path: `/engine/v1/worker-actions/deployments/deployment_nobody/${rest}` }), ok: [404] })),
  // waitpoints and waits, traces
  { route: "POST /api/v1/waitpoints/tokens", takes: "key user", of: "waitpoints", at: () => post({}) },
  { route: "GET /api/v1/waitpoints/tokens", takes: "key user", of: "waitpoints", at: () => ({}) },
  { route: "GET /api/v1/waitpoints/tokens/:", takes: "key token", asks: (w) => [["read", "waitpoints", w.waitpoint]], at: (w) => ({ path: `/api/v1/waitpoints/tokens/${w.waitpoint}` }), foreign: [404] },
  { route: "POST /api/v1/waitpoints/tokens/:/complete", takes: "key token", asks: (w) => [["write", "waitpoints", w.waitpoint]], at: (w) => ({ path: `/api/v1/waitpoints/tokens/${w.waitpoint}/complete`, body: { data: 1 } }), foreign: [404] },
  { route: "POST /api/v1/waitpoints/tokens/:/callback/:/:", takes: "anyone", at: (w) => ({ path: `/api/v1/waitpoints/tokens/${w.waitpoint}/callback/${w.sub}/${"A".repeat(43)}`, body: {} }), ok: [403] },
  { route: "POST /engine/v1/runs/:/waitpoints/tokens/:/wait", takes: "key", at: (w) => ({ path: `/engine/v1/runs/${w.run}/waitpoints/tokens/${w.waitpoint}/wait`, body: {} }), ok: [400], foreign: [404] }, // the run does not execute
  { route: "POST /api/v1/runs/:/input-streams/wait", takes: "key", at: (w) => ({ path: `/api/v1/runs/${w.run}/input-streams/wait`, body: { streamId: "k" } }), foreign: [404] },
  { route: "POST /engine/v1/runs/:/wait/duration", takes: "key", at: (w) => ({ path: `/engine/v1/runs/${w.run}/wait/duration`, body: { date: "2030-01-01T00:00:00Z" } }), ok: [400], foreign: [404] },
  ...["events", "trace"].map((what) => ({ route: `GET /api/v1/runs/:/${what}`, takes: "key token", asks: reads(run), at: (w) => ({ path: `/api/v1/runs/${w.run}/${what}` }), foreign: [404] })),
  { route: "GET /api/v1/runs/:/spans/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/api/v1/runs/${w.run}/spans/0123456789abcdef` }), ok: [404], foreign: [404] }, // an unknown span
  ...["traces", "logs"].map((kind) => ({ route: `POST /otel/:/:/v1/${kind}`, takes: "anyone", at: (w) => ({ path: `/otel/${w.sub}/${"A".repeat(43)}/v1/${kind}`, body: {} }), ok: [403] })),
  { route: "POST /otel/:/:/v1/metrics", takes: "anyone", at: (w) => ({ path: `/otel/${w.sub}/${"A".repeat(43)}/v1/metrics`, body: {} }) },
  ...["traces", "logs", "metrics"].map((kind) => ({ route: `POST /otel/v1/${kind}`, takes: "anyone", at: () => post({}) })),
  // long polls
  { route: "GET /realtime/v1/runs/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/realtime/v1/runs/${w.run}?${live}` }), foreign: [404] },
  { route: "GET /realtime/v1/runs", what: "of a tag", takes: "key token", asks: (w) => [["read", "runs"], ["read", "tags", w.tag]], at: (w) => ({ query: `${live}&tags=${w.tag}` }) },
  { route: "GET /realtime/v1/runs", what: "of two tags", takes: "key token", asks: (w) => [["read", "runs"], ["read", "tags", w.tag], ["read", "tags", "second"]], at: (w) => ({ query: `${live}&tags=second,${w.tag}` }) },
  { route: "GET /realtime/v1/runs", what: "all", takes: "key token", asks: () => [["read", "runs"]], at: () => ({ query: live }) },
  { route: "GET /realtime/v1/batches/:", takes: "key token", asks: (w) => [["read", "runs"], ["read", "batch", w.batch]], at: (w) => ({ path: `/realtime/v1/batches/${w.batch}?${live}` }), foreign: [404] },
  // streams of runs, subscriptions by event stream and WebSocket
  { route: "GET /realtime/v1/streams/:/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/realtime/v1/streams/${w.run}/k` }), held: true, foreign: [404] },
  { route: "GET /realtime/v1/streams/:/input/:", takes: "key token", asks: reads(run), at: (w) => ({ path: `/realtime/v1/streams/${w.run}/input/k` }), held: true, foreign: [404] },
  { route: "POST /realtime/v1/streams/:/input/:", takes: "key token", asks: (w) => [["write", "inputStreams", w.run]], at: (w) => ({ path: `/realtime/v1/streams/${w.run}/input/k`, body: { data: 1 } }), foreign: [404] },
  { route: "GET /realtime/v1/streams/:/:/:", takes: "key", at: (w) => ({ path: `/realtime/v1/streams/${w.run}/self/k` }), ok: [405] }, // HEAD only
  { route: "PUT /realtime/v1/streams/:/:/:", takes: "key", at: (w) => ({ path: `/realtime/v1/streams/${w.run}/self/k` }), ok: [202], foreign: [404] },
  { route: "POST /realtime/v1/streams/:/:/:", takes: "key", at: (w) => ({ path: `/realtime/v1/streams/${w.run}/self/k`, body: "1" }), foreign: [404] },
  { route: "POST /realtime/v1/streams/:/:/:/append", takes: "key", at: (w) => ({ path: `/realtime/v1/streams/${w.run}/self/k/append`, body: "1" }), foreign: [404] },
  { route: "GET /realtime/v1/events", what: "of a run", takes: "key token", asks: reads(run), at: (w) => ({ query: `run=${w.run}` }), held: true, foreign: [404] },
  { route: "GET /realtime/v1/events", what: "of a tag", takes: "key token", asks: (w) => [["read", "runs"], ["read", "tags", w.tag]], at: (w) => ({ query: `tags=${w.tag}` }), held: true },
  { route: "GET /realtime/v1/events", what: "of a batch", takes: "key token", asks: (w) => [["read", "runs"], ["read", "batch", w.batch]], at: (w) => ({ query: `batch=${w.batch}` }), held: true },
  { route: "GET /realtime/v1/events", what: "all", takes: "key token", asks: () => [["read", "runs"]], at: () => ({ query: "all=1" }), held: true },
  // A socket authenticates at its upgrade or with hello: see the subscriptions below.
  { route: "GET /realtime/v1/ws", takes: "key token socket" },
  // An invalid credential is refused in the namespace: see notices.test.mjs. Here the request is not an upgrade.
  { route: "GET /socket.io/", takes: "anyone", at: () => ({ query: "EIO=4&transport=websocket" }), ok: [426] },
  { route: "GET /healthz", takes: "anyone", at: () => ({}) },
  { route: "GET /readyz", takes: "anyone", at: () => ({}) },
  { route: "GET /metrics", takes: "nobody", at: () => ({}) },
  { route: "GET /gateways", takes: "nobody", at: () => ({}) },
  { route: "GET /openapi.json", takes: "anyone", at: () => ({}) },
  { route: "GET /", takes: "anyone", at: () => ({}) },
  { route: "GET /client.js", takes: "anyone", at: () => ({}) },
  { route: "GET /client/react.js", takes: "anyone", at: () => ({}) },
  ...["/runs/:", "/account/tokens", "/login", "/account/authorization-code/:", "/dashboard/app.js", "/dashboard/app.css", "/dashboard/icon.svg"].map((path) => ({ route: `GET ${path}`, takes: "anyone", at: () => ({ path: path.replace(":", "run_1") }) })),
  { route: "GET /projects/*", takes: "anyone", at: () => ({ path: "/projects/v3/proj_a/runs/run_1" }) },
  { route: "GET /orgs/*", takes: "anyone", at: () => ({ path: "/orgs/acme/projects/new" }) },
];

/** The subscriptions of a WebSocket (runcast/protocol.h), which have the same rules as the polls. */
export const subscriptions = [
  { what: "a run", asks: reads(run), filter: (w) => ({ run: w.run }) },
  { what: "a tag", asks: (w) => [["read", "runs"], ["read", "tags", w.tag]], filter: (w) => ({ tags: [w.tag] }) },
  { what: "a tag of a task", asks: (w) => [["read", "runs"], ["read", "tags", w.tag]], filter: (w) => ({ tags: [w.tag], task: [w.task] }) },
  { what: "two tags", asks: (w) => [["read", "runs"], ["read", "tags", w.tag], ["read", "tags", "second"]], filter: (w) => ({ tags: ["second", w.tag] }) },
  { what: "a tag, with a limit", asks: (w) => [["read", "runs"], ["read", "tags", w.tag]], filter: (w) => ({ tags: [w.tag], limit: 1 }) },
  { what: "a batch", asks: (w) => [["read", "runs"], ["read", "batch", w.batch]], filter: (w) => ({ batch: w.batch }) },
  { what: "all", asks: () => [["read", "runs"]], filter: () => ({ all: true }) },
];

/** Every scope that these parts can form, and some invalid ones. */
export function scopes(w) {
  const actions = ["read", "write", "trigger", "batchTrigger", "*"];
  const types = { runs: w.run, tasks: w.task, tags: w.tag, batch: w.batch, queues: w.task, concurrencyLimits: w.task, inputStreams: w.run, deployments: w.run, all: w.run };
  const made = [];
  for (const action of actions)
    for (const [type, id] of Object.entries(types))
      for (const end of ["", `:${id}`, `:${id}x`, `:${id.slice(0, -1)}`, `:${id.toUpperCase()}`, ":", `:x:${id}`]) made.push(`${action}:${type}${end}`);
  return [...made, `write:runs:${w.doomed}`, "admin", "admin:", "admin:runs", "Admin", "ADMIN", "read", "write", "trigger", "*", "*:*", "*:*:*", ":runs", "::", ":", "",
    "read:", "read::", `read::${w.run}`, " read:runs", "read:runs ", "READ:RUNS", "read:run", `read:run:${w.run}`, `read:runs:${w.run}:x`, `read:${w.run}`, `runs:${w.run}`,
    "read,write:runs", "read:runs,tags", "trigger:runs", `trigger:${w.task}`, "batchTrigger:batch:all", "read:*", "*:runs:*"];
}
