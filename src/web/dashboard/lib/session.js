// session.js - the signed-in user, and short-lived tokens for requests to the gateway.
//
// Signing in, with a one-time link or a personal access token, creates a sign-in: a token that is valid for
// twelve hours. Only the tab keeps it, in its session storage. The sign-in signs tokens of one environment, valid
// for 15 minutes, which all other requests and WebSockets use. Before one expires, the next one is signed. When
// the sign-in has expired, the user must sign in again.
//
// A new tab asks signed-in tabs of the same origin for the token (a link of the CLI opens a tab without
// storage), and signing out applies to all of them.
import { base } from "./base.js";
import { Emitter } from "./emitter.js";

const storageKey = "runcast.token", tabsWaitMs = 300;

/** The gateway refused a request, or did not respond (status 0). */
export class ApiError extends Error {
  constructor(status, message, details) {
    super(message);
    Object.assign(this, { status, details });
  }
}

/** The header with the branch of a place, whose bytes are UTF-8. */
export const branchHeader = ({ branch }) => branch ? { "x-trigger-branch": String.fromCharCode(...new TextEncoder().encode(branch)) } : undefined;

const readFailed = "The gateway does not respond. It may be restarting; the page retries.";
const writeFailed = "The gateway does not respond. Nothing was changed; try again when it is back.";

/** When the gateway responds again after it was unreachable, the client reconnects at once, as if the browser
 * had reported that it is online. */
let wasReachable = true;
function noteReachable(isReachable) {
  if (isReachable && !wasReachable) dispatchEvent(new Event("online"));
  wasReachable = isReachable;
}

const longDigits = /\d{16}/; // such an integer may exceed a JavaScript number

/** Parses JSON; integers that exceed a JavaScript number stay exact (if the browser supports it). */
export function parseExactly(text) {
  if (!longDigits.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => typeof value === "number" && !Number.isSafeInteger(value) && JSON.rawJSON && /^-?\d+$/.test(context?.source ?? "") ? JSON.rawJSON(context.source) : value);
}

/** Returns the message of an error response, including its list of problems with their paths, if it has one. */
function messageOf(status, answer) {
  const details = [
    ...(answer?.details ?? []).map(({ path, message }) => [path?.join("."), message].filter(Boolean).join(": ")),
    ...(answer?.variableErrors ?? []).map(({ key, error }) => `${key}: ${error}`),
  ];
  const { error } = answer ?? {};
  return [typeof error === "string" ? error : error?.message ?? `The gateway returned status ${status}`, ...details].join(". ");
}

async function send(token, method, path, { body, headers, text, signal } = {}) {
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
    noteReachable(false);
    throw new ApiError(0, method === "GET" ? readFailed : writeFailed);
  }
  noteReachable(response.status !== 502 && response.status !== 503);
  if (response.ok && text) return answer;
  let json;
  try { json = answer ? parseExactly(answer) : undefined; } catch { /* not JSON: a proxy's page */ }
  if (!response.ok) {
    if (response.status === 502 || response.status === 503) throw new ApiError(0, json ? messageOf(response.status, json) : readFailed);
    throw new ApiError(response.status, messageOf(response.status, json), json?.details);
  }
  return json;
}

class Session extends Emitter {
  #userToken = sessionStorage.getItem(storageKey) ?? undefined;
  #tokens = new Map(); // environment -> { token, until } or a promise of that
  wasRejected = false; // the gateway rejected the user's token while it was in use

  #tabs = globalThis.BroadcastChannel && new BroadcastChannel("runcast.session");

  constructor() {
    super();
    if (!this.#tabs) return;
    this.#tabs.onmessage = ({ data: { op, token } }) => {
      if (op === "ask" && this.#userToken) this.#tabs.postMessage({ op: "have", token: this.#userToken });
      if (op === "have" && !this.#userToken && this.isRequesting && typeof token === "string") this.#setToken(token);
      if (op === "out" && this.#userToken) this.#setToken(undefined);
    };
  }

  /** Requests the user's token from other tabs; returns true if one of them sent it. */
  async requestTokenFromTabs() {
    if (!this.#tabs || this.wasRejected) return false;
    this.isRequesting = true;
    this.#tabs.postMessage({ op: "ask" });
    for (let waited = 0; waited < tabsWaitMs && !this.#userToken; waited += 25) await new Promise((resolve) => setTimeout(resolve, 25));
    this.isRequesting = false;
    return Boolean(this.#userToken);
  }

  get isSignedIn() { return Boolean(this.#userToken); }

  #setToken(token) {
    this.#userToken = token;
    this.#tokens.clear();
    if (token) sessionStorage.setItem(storageKey, token);
    else sessionStorage.removeItem(storageKey);
    this.emit("change");
  }

  /** Signs in with the code of a one-time link, or with a personal access token. */
  async signIn(code) {
    const { token, user } = await send(undefined, "POST", "/api/v1/sign-in", { body: { code } });
    this.wasRejected = false;
    this.#setToken(token);
    return user;
  }

  /** Confirms the user's identity again. isSignIn false: the tab has a token that is not a sign-in, so it signs in. */
  async confirm(code, isSignIn = true) {
    if (isSignIn) await this.requestAsUser("POST", "/api/v1/sign-in/confirm", { body: { code } });
    else await this.signIn(code);
  }

  /** Signs out of all tabs. wasRejected: the gateway has rejected the token, so only this tab signs out. */
  signOut(wasRejected = false) {
    const token = this.#userToken;
    this.wasRejected = wasRejected;
    if (!wasRejected) {
      this.#tabs?.postMessage({ op: "out" });
      send(token, "DELETE", "/api/v1/sign-in").catch(() => { /* it expires by itself */ });
    }
    this.#setToken(undefined);
  }

  /** Sends a request with the user's token: for projects, and for data outside of environments. */
  async requestAsUser(method, path, options) {
    try {
      return await send(this.#userToken, method, path, options);
    } catch (error) {
      if (error.status === 401) this.signOut(true);
      throw error;
    }
  }

  /** Signs out if the user's token has expired. */
  check() { this.requestAsUser("GET", "/api/v2/whoami").catch(() => { /* reported elsewhere */ }); }

  /** Returns a token for an environment, { ref, env, branch }; a new one if mustRenew. */
  async token(place, mustRenew = false) {
    const key = `${place.ref}/${place.env}/${place.branch ?? ""}`, known = this.#tokens.get(key);
    if (!mustRenew && known && !(known.until < Date.now())) return (await known).token;
    const headers = branchHeader(place);
    const signed = this.requestAsUser("POST", `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/jwt`,
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

  /** Sends a request in an environment. If its token has expired, repeats the request with a new one. */
  async request(place, method, path, options) {
    const token = await this.token(place);
    try {
      return await send(token, method, path, options);
    } catch (error) {
      if (error.status !== 401) throw error;
      return send(await this.token(place, true), method, path, options);
    }
  }
}

export const session = new Session();
