// session.js - the signed-in user, and short-lived tokens for requests to the gateway.
//
// Signing in, with a one-time link or a personal access token, creates a sign-in: a token that is valid for
// twelve hours. Only the tab keeps it, in its session storage. The sign-in signs tokens of one environment, valid
// for 15 minutes, which all other requests and WebSockets use. Before one expires, the next one is signed. When
// the sign-in has expired, the user must sign in again.
//
// A user who stays signed in (lasting.js) needs no sign-in for that: the gateway gives the names of projects and the
// tokens of environments. For everything else the user signs in to the tab, with another link or token.
//
// A new tab asks signed-in tabs of the same origin for the token (a link of the CLI opens a tab without
// storage), and signing out applies to all of them.
import { base } from "./base.js";
import { Emitter } from "./emitter.js";
import { forgetKey, keptUser, makeKey, prove, takeTurn, way } from "./lasting.js";

const storageKey = "runcast.token", tabsWaitMs = 300, turnMs = 20_000;

/** The gateway refused a request, or did not respond (status 0). */
export class ApiError extends Error {
  constructor(status, message, details) {
    super(message);
    Object.assign(this, { status, details });
  }
}

/** The header with the branch of a place, whose bytes are UTF-8. */
const branchHeader = ({ branch }) => branch ? { "x-trigger-branch": String.fromCharCode(...new TextEncoder().encode(branch)) } : undefined;

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
  #lasting; // the user and projects, once the gateway has confirmed that the user has stayed signed in
  #tokens = new Map(); // environment -> { token, until } or a promise of that
  wasRejected = false; // the gateway rejected the user's token while it was in use

  #tabs = globalThis.BroadcastChannel && new BroadcastChannel("runcast.session");

  constructor() {
    super();
    if (!this.#tabs) return;
    this.#tabs.onmessage = ({ data: { op, token } }) => {
      if (op === "ask" && this.#userToken) this.#tabs.postMessage({ op: "have", token: this.#userToken });
      if (op === "have" && !this.#userToken && this.isRequesting && typeof token === "string") this.#setToken(token);
      if (op === "out" && this.isSignedIn) this.#forget();
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

  get isSignedIn() { return Boolean(this.#userToken || this.#lasting); }

  /** Returns false if the user has stayed signed in, and must sign in to this tab for what is beyond environments. */
  get isTabSignedIn() { return Boolean(this.#userToken); }

  #setToken(token) {
    this.#userToken = token;
    this.#tokens.clear();
    if (token) sessionStorage.setItem(storageKey, token);
    else sessionStorage.removeItem(storageKey);
    this.emit("change");
  }

  #forget() {
    this.#lasting = undefined;
    this.#setToken(undefined);
  }

  /** Signs in with the code of a one-time link, or with a personal access token. Returns the user and, if the browser
   * cannot stay signed in as it should, the problem. */
  async signIn(code, { stays = false } = {}) {
    const { token, user } = await send(undefined, "POST", "/api/v1/sign-in", { body: { code } });
    if (this.#lasting && this.#lasting.user.id !== user.id) {
      send(token, "DELETE", "/api/v1/sign-in").catch(() => { /* it expires by itself */ });
      throw new Error("This is a link or token of another user; sign out first to use it");
    }
    const problem = stays ? await this.#stay(token).then(() => undefined, (error) => error) : undefined;
    this.wasRejected = false;
    this.#setToken(token);
    return { user, problem };
  }

  async #stay(token) {
    const key = way === "key" ? await makeKey() : undefined;
    const { id, userId } = await send(token, "POST", "/api/v1/sign-in/stay", { body: { publicKey: key?.publicKey } });
    await key?.keep(id);
    keptUser.id = userId;
    keptUser.leaving = undefined;
  }

  /** Lets the user stay signed in. The gateway refuses that unless the tab was signed in within the last ten minutes. */
  async stay() {
    await this.#stay(this.#userToken);
    this.emit("change");
  }

  get stays() { return Boolean(keptUser.id); }

  /** Returns true if the user has stayed signed in. */
  async resume() {
    if (keptUser.leaving) await this.#leave();
    if (!keptUser.id) return false;
    try {
      this.#lasting = await this.#use({});
    } catch (error) {
      if (error.status !== 401) throw error;
      return false;
    }
    this.#tokens.clear();
    this.emit("change");
    return true;
  }

  /** The body names the user: another server of the site may have set a second cookie, with another user's. */
  #useOnce(body) {
    return takeTurn(() => prove((proof) => send(undefined, "POST", "/dashboard/session", { body: { ...body, ...proof }, signal: AbortSignal.timeout(turnMs) })));
  }

  /** Uses the lasting sign-in: returns the user, the projects and, if the body names an environment, its token. */
  async #use(body) {
    const { id } = keptUser;
    try {
      const answer = await this.#useOnce({ ...body, user: id });
      if (answer.user.id !== id) throw new ApiError(401, "This browser was signed in as another user");
      return answer;
    } catch (error) {
      if (error.status === 401) await this.#endLasting();
      throw error;
    }
  }

  async #endLasting() {
    keptUser.id = undefined;
    this.wasRejected = true;
    const wasUsed = this.#lasting && !this.#userToken;
    this.#lasting = undefined;
    await forgetKey().catch(() => { /* storage is forbidden */ });
    if (wasUsed) this.#setToken(undefined);
  }

  /** Confirms the user's identity again. isSignIn false: the tab has a token that is not a sign-in, so it signs in. */
  async confirm(code, isSignIn = true) {
    if (isSignIn && this.#userToken) await this.requestAsUser("POST", "/api/v1/sign-in/confirm", { body: { code } });
    else await this.signIn(code);
  }

  /** Signs out of all tabs. wasRejected: the gateway has rejected the token, so only this tab signs out. */
  signOut(wasRejected = false) {
    const token = this.#userToken, { stays } = this;
    this.wasRejected = wasRejected;
    if (!wasRejected) {
      this.#tabs?.postMessage({ op: "out" });
      if (token) send(token, "DELETE", "/api/v1/sign-in").catch(() => { /* it expires by itself */ });
      if (stays) {
        keptUser.leaving = keptUser.id;
        this.#leave();
      }
      keptUser.id = undefined;
    }
    this.#forget();
  }

  /** Ends the lasting sign-in. If the gateway does not respond, the next page that is not signed in tries again. */
  async #leave() {
    const isOut = await this.#useOnce({ signOut: true, user: keptUser.leaving }).then(() => true, (error) => error.status === 401);
    if (isOut) keptUser.leaving = undefined;
    await forgetKey().catch(() => { /* storage is forbidden */ });
  }

  /** Ends all sign-ins of the user, in all browsers. The gateway refuses that like stay(). */
  async signOutEverywhere() {
    await this.requestAsUser("DELETE", "/api/v1/sign-ins");
    this.#tabs?.postMessage({ op: "out" });
    keptUser.id = undefined;
    await forgetKey().catch(() => { /* storage is forbidden */ });
    this.#forget();
  }

  /** Sends a request with the user's token: for projects, and for data outside of environments. */
  async requestAsUser(method, path, options) {
    const token = this.#userToken;
    if (!token) throw new ApiError(403, "Sign in to this tab first");
    try {
      return await send(token, method, path, options);
    } catch (error) {
      if (error.status === 401 && token === this.#userToken) this.signOut(true);
      throw error;
    }
  }

  /** Return the user, the user's projects, and the names of the branches of a project. */
  who() { return this.#userToken ? this.requestAsUser("GET", "/api/v2/whoami") : this.#lasting.user; }
  async projects() { return this.#userToken ? this.requestAsUser("GET", "/api/v1/projects") : (await this.#use({})).projects; }
  async branches(ref) {
    if (!this.#userToken) return (await this.#use({ project: ref })).branches;
    return (await this.requestAsUser("GET", `/api/v1/projects/${encodeURIComponent(ref)}/branches`)).branches.map(({ name }) => name);
  }

  /** Signs out if the user's token, or lasting sign-in, has expired. */
  check() { (this.#userToken ? this.who() : this.projects()).catch(() => { /* reported elsewhere */ }); }

  #sign(place) {
    if (!this.#userToken) return this.#use({ project: place.ref, environment: place.env, branch: place.branch });
    return this.requestAsUser("POST", `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/jwt`,
      { body: { claims: { scopes: ["admin"] }, expirationTime: "15m" }, headers: branchHeader(place) });
  }

  /** Returns a token for an environment, { ref, env, branch }; a new one if mustRenew. */
  async token(place, mustRenew = false) {
    const key = `${place.ref}/${place.env}/${place.branch ?? ""}`, known = this.#tokens.get(key);
    if (!mustRenew && known && !(known.until < Date.now())) return (await known).token;
    const signed = this.#sign(place)
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
