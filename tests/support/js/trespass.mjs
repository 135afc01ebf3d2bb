// The sides of tests/integration/isolation.test.mjs, each a client with its own ids and secret words; the search for these
// in responses to other sides; and the routes that must be tried with guessed ids.

// ---- the sides ----

export class Side {
  constructor(letter, key, ref, slug) {
    Object.assign(this, { letter, key, ref, slug, words: 0, runs: [], batches: [], snapshots: [], workers: [], schedules: [], queues: [], bulks: [], waitpoints: [], telemetry: [], positions: [], canaries: [], canceled: new Set() });
  }

  /** Returns a new secret word of this side. */
  canary(kind) {
    const word = `canary-${this.letter}-${kind}${++this.words}`;
    remember(this.canaries, word);
    return word;
  }
}

export function remember(list, one) {
  if (list.length < 3000) list.push(one);
  else list[Math.floor(Math.random() * list.length)] = one;
}

/** Every side. */
export const sides = [];
/** Owners of ids: id -> letters of the sides. */
export const owners = new Map();
const idPattern = /\b(?:run|batch|env|snapshot|worker|queue|attempt|user|org|project|sched|bulk|waitpoint|deployment)_[0-9a-z]{20,24}\b/g;
const canaryPattern = /canary-([A-Z])-\w+/g;

/** Returns true if the side may see the id. An id that appears for the first time belongs to the side that received it.
 *  Ids of a project and its users belong to all sides of the project. */
function ownedBy(side, id, sees) {
  const shared = /^(org|project|user)_/.test(id), owner = owners.get(id);
  if (!owner || (owner.length > 1 && sees.length === 1 && owner.includes(sees))) owners.set(id, shared ? side.pat : sees);
  return !owner || (shared ? owner === side.pat : [...owner].some((letter) => sees.includes(letter)));
}

/** Returns the parts of a response that belong to other sides and were not in the request. */
export function leaks(side, sent, text, sees = side.letter) {
  const found = [];
  for (const [word, letter] of text.matchAll(canaryPattern))
    if (!sees.includes(letter) && !sent.includes(word)) found.push(word);
  for (const [id] of text.matchAll(idPattern))
    if (!sent.includes(id) && !ownedBy(side, id, sees)) found.push(id);
  for (const other of sides)
    if (!sees.includes(other.letter) && text.includes(other.key)) found.push(`the key of ${other.letter}`);
  for (const [token] of text.matchAll(/eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+/g)) {
    const claims = Buffer.from(token.split(".")[1], "base64url").toString();
    if (claims !== text) found.push(...leaks(side, sent, claims, sees));
  }
  return found;
}

/** A response without the parts that change with time, and without the requested id. */
export function plain(text, asked) {
  return text.replaceAll(asked, "<asked>").replace(/\r\ndate: [^\r]*/gi, "").replace(/\r\nx-runs-seq: [^\r]*/gi, "")
    .replace(/\r\nelectric-(offset|cursor|chunk-last-offset): [^\r]*/gi, "").replace(/(electric-(?:handle|shape-id): \w+-\w-)\d+/gi, "$1<floor>").replace(/"seq":\d+/g, "");
}

// ---- the routes that take an id ----

/** Returns true for CLI logins: they have no owner before any client that has the code approves them (sign_in.test.mjs). */
const hasNoOwner = (path) => path.includes("/authorization-code/");

/** Operations of the document whose path contains an id: { name, method, pattern, guesses }. */
export const routesWithIds = ({ paths }) => Object.entries(paths).flatMap(([path, methods]) => path.includes("{") && !hasNoOwner(path) ? Object.keys(methods).map((method) => ({
  name: `${method.toUpperCase()} ${path}`, guesses: 0, method: method.toUpperCase(),
  pattern: new RegExp(`^${path.replace(/^\/(api\/v[12]\/packets|packets\/v1\/\{\w+\})\/\{\w+\}$/, "/$1/.+").replace("{path}", ".+").replace(/\{\w+\}/g, "[^/]+")}$`),
})) : []);

export function noteGuess(routes, { method, path }) {
  const [name] = path.split("?");
  for (const route of routes) if (route.method === method && route.pattern.test(name)) route.guesses++;
}

/** Requests of one side for the deployment of another, or for an unknown one: [name, function that makes the request]. */
export function deploymentsOf(other, side, unknown) {
  const deployments = "/api/v1/deployments", actions = "/engine/v1/worker-actions";
  const id = other.deployment?.id ?? unknown.id, version = other.deployment?.version ?? "20260101.7";
  const error = { name: "Trespass", message: unknown.mark }, finalize = (api) => [id, (one) => ({ method: "POST", path: `/api/v${api}/deployments/${one}/finalize`, body: {} })];
  return [
    ...["", "/logs"].map((rest) => [id, (one) => ({ path: `${deployments}/${one}${rest}` })]),
    ...[["background-workers", { localOnly: true, metadata: {} }], ["fail", { error }], ["cancel", { reason: error.message }], ["progress", {}], ["generate-registry-credentials", {}]].map(([rest, body]) => [id, (one) => ({ method: "POST", path: `${deployments}/${one}/${rest}`, body })]),
    ...[1, 2, 3].map(finalize), [version, (one) => ({ method: "POST", path: `${deployments}/${one}/promote`, body: {} })],
    [other.sub, (one) => ({ method: "POST", path: `/artifacts/v1/${one}/bundles%2Fx?expires=9999999999&signature=${"A".repeat(43)}`, body: {} })],
    ...["heartbeat", "complete"].map((rest) => [id, (one) => ({ method: "POST", path: `${actions}/builds/${one}/${rest}`, body: { ok: false, error }, key: side.workerToken ?? side.key })]),
    ...["archive", "index"].map((rest) => [id, (one) => ({ path: `${actions}/deployments/${one}/${rest}`, key: side.workerToken ?? side.key })]),
    ...(other.ref === side.ref ? [] : [["GET", "deploy-settings"], ["GET", "workers/current"], ["POST", "jwt", {}]].map(([method, rest, body]) =>
      [other.ref, (one) => ({ method, path: `/api/v1/projects/${one}/prod/${rest}`, body, key: rest === "deploy-settings" ? side.key : side.pat })])),
  ];
}
