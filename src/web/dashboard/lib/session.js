// session.js - the signed-in user, and short-lived tokens for requests to the gateway.
//
// Signing in, with a one-time link or a personal access token, makes a sign-in: a token that lasts for
// twelve hours. The tab alone keeps it, in its session storage. It signs tokens of one environment for a quarter of an hour. All other requests and WebSockets use
// those; when one expires the next is signed. When the sign-in has expired, the user must sign in again.
//
// A new tab asks signed-in tabs of the same origin for the token (a link of the CLI opens a tab without
// storage), and signing out applies to all of them.
import { base } from "./base.js";
import { Emitter } from "./emitter.js";

const storageKey = "runcast.token", tabsMs = 300;

/** The gateway refused a request, or was not reached (status 0). */
export class ApiError extends Error {
  constructor(status, message, details) {
    super(message);
    Object.assign(this, { status, details });
  }
}

/** Header with the branch of a place: its bytes are UTF-8. */
export const branchHeader = ({ branch }) => branch ? { "x-trigger-branch": String.fromCharCode(...new TextEncoder().encode(branch)) } : undefined;

const unreachable = "The gateway does not respond. It may be restarting; the page retries.";
const unreached = "The gateway does not respond. Nothing was changed; try again when it is back.";

/** After a while without the gateway, the first response makes the client reconnect at once, as if the
 * browser had reported that it is online. */
let isAway = false;
function note(isHere) {
  if (isHere && isAway) dispatchEvent(new Event("online"));
  isAway = !isHere;
}

const long = /\d{16}/; // may exceed a JavaScript number

/** Parses JSON; integers that exceed a JavaScript number stay exact (if the browser supports it). */
export function parseExactly(text) {
  if (!long.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => typeof value === "number" && !Number.isSafeInteger(value) && JSON.rawJSON && /^-?\d+$/.test(context?.source ?? "") ? JSON.rawJSON(context.source) : value);
}

/** Makes the message of an error; some errors have a list of problems, each with its path. */
function sentenceOf(status, answer) {
  const details = [
    ...(answer?.details ?? []).map(({ path, message }) => [path?.join("."), message].filter(Boolean).join(": ")),
    ...(answer?.variableErrors ?? []).map(({ key, error }) => `${key}: ${error}`),
  ];
  const { error } = answer ?? {};
  return [typeof error === "string" ? error : error?.message ?? `The gateway returned status ${status}`, ...details].join(". ");
}

async function request(token, method, path, { body, headers, text, signal } = {}) {
  let response, answer;
  try {
    response = await fetch(base + path, {
      method, signal, cache: "no-store",
      headers: { "x-trigger-api-version": "2025-07-16", ...token && { authorization: `Bearer ${token}` }, ...body !== undefined && { "content-type": "application/json" }, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    answer = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    note(false);
    throw new ApiError(0, method === "GET" ? unreachable : unreached);
  }
  note(response.status !== 502 && response.status !== 503);
  if (response.ok && text) return answer;
  let json;
  try { json = answer ? parseExactly(answer) : undefined; } catch { /* a proxy's page */ }
  if (!response.ok) {
    if (response.status === 502 || response.status === 503) throw new ApiError(0, json ? sentenceOf(response.status, json) : unreachable);
    throw new ApiError(response.status, sentenceOf(response.status, json), json?.details);
  }
  return json;
}

class Session extends Emitter {
  #personal = sessionStorage.getItem(storageKey) ?? undefined;
  #tokens = new Map(); // environment -> { token, until } or a promise of that
  ended = false; // the user's token was rejected while it was in use

  #tabs = globalThis.BroadcastChannel && new BroadcastChannel("runcast.session");

  constructor() {
    super();
    if (!this.#tabs) return;
    this.#tabs.onmessage = ({ data: { op, token } }) => {
      if (op === "ask" && this.#personal) this.#tabs.postMessage({ op: "have", token: this.#personal });
      if (op === "have" && !this.#personal && this.isAsking && typeof token === "string") this.#keep(token);
      if (op === "out" && this.#personal) this.#keep(undefined);
    };
  }

  /** Asks other tabs for the user's token; returns whether one had it. */
  async askTabs() {
    if (!this.#tabs || this.ended) return false;
    this.isAsking = true;
    this.#tabs.postMessage({ op: "ask" });
    for (let waited = 0; waited < tabsMs && !this.#personal; waited += 25) await new Promise((resolve) => setTimeout(resolve, 25));
    this.isAsking = false;
    return Boolean(this.#personal);
  }

  get isSignedIn() { return Boolean(this.#personal); }

  #keep(token) {
    this.#personal = token;
    this.#tokens.clear();
    if (token) sessionStorage.setItem(storageKey, token);
    else sessionStorage.removeItem(storageKey);
    this.emit("change");
  }

  /** Signs in with the code of a one-time link, or with a personal access token. */
  async signIn(code) {
    const { token, user } = await request(undefined, "POST", "/api/v1/sign-in", { body: { code } });
    this.ended = false;
    this.#keep(token);
    return user;
  }

  /** Proves again who has signed in. A tab that has a plain token gets a sign-in instead. */
  async confirm(code, isSignIn = true) {
    if (isSignIn) await this.personal("POST", "/api/v1/sign-in/confirm", { body: { code } });
    else await this.signIn(code);
  }

  /** Signs out of all tabs. ended: the gateway has ended the sign-in already. */
  signOut(ended = false) {
    const token = this.#personal;
    this.ended = ended;
    if (!ended) {
      this.#tabs?.postMessage({ op: "out" });
      request(token, "DELETE", "/api/v1/sign-in").catch(() => { /* it expires by itself */ });
    }
    this.#keep(undefined);
  }

  /** Sends a request with the user's token: for projects, and for data outside of environments. */
  async personal(method, path, options) {
    try {
      return await request(this.#personal, method, path, options);
    } catch (error) {
      if (error.status === 401) this.signOut(true);
      throw error;
    }
  }

  /** Signs out if the user's token has expired. */
  check() { this.personal("GET", "/api/v2/whoami").catch(() => { /* reported elsewhere */ }); }

  /** Returns a token of an environment: { ref, env, branch }. */
  async token(place, fresh = false) {
    const key = `${place.ref}/${place.env}/${place.branch ?? ""}`, known = this.#tokens.get(key);
    if (!fresh && known && !(known.until < Date.now())) return (await known).token;
    const headers = branchHeader(place);
    const signed = this.personal("POST", `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/jwt`,
      { body: { claims: { scopes: ["admin"] }, expirationTime: "15m" }, headers })
      .then(({ token }) => {
        const entry = { token, until: Date.now() + 12 * 60_000 };
        this.#tokens.set(key, entry);
        return entry;
      });
    this.#tokens.set(key, signed);
    try {
      return (await signed).token;
    } catch (error) {
      if (this.#tokens.get(key) === signed) this.#tokens.delete(key);
      throw error;
    }
  }

  /** Sends a request in an environment. Replaces an expired token once. */
  async ask(place, method, path, options) {
    const token = await this.token(place);
    try {
      return await request(token, method, path, options);
    } catch (error) {
      if (error.status !== 401) throw error;
      return request(await this.token(place, true), method, path, options);
    }
  }
}

export const session = new Session();
