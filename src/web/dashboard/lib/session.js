// session.js - who is signed in, and the short tokens with which the page asks the gateway.
//
// A person's token (typed in, or had for a one-time link) is kept by the tab alone, in its session
// storage. It signs a token of one environment for a quarter of an hour; all other requests carry that
// one, and so do WebSockets. When it ends the next one is signed; when the person's token has ended the
// person has to sign in again.
//
// A new tab asks those of the same origin that are signed in (a link of the CLI opens a tab that has no
// storage yet), and signing out reaches all of them.
import { base } from "./base.js";
import { Emitter } from "./emitter.js";

const storageKey = "runcast.token", tabsMs = 300;

/** What the gateway refused, or that it was not reached (status 0). */
export class ApiError extends Error {
  constructor(status, message, details) {
    super(message);
    Object.assign(this, { status, details });
  }
}

/** Names the branch of a place: a header has bytes, those of UTF-8. */
export const branchHeader = ({ branch }) => branch ? { "x-trigger-branch": String.fromCharCode(...new TextEncoder().encode(branch)) } : undefined;

const unreachable = "The gateway does not answer. It may be restarting: the page tries again.";
const unreached = "The gateway does not answer: nothing was changed. Try again when it does.";

/** After a while without the gateway, an answer is the sign to connect again at once: the client for pages
 * does that when the browser says that it is online. */
let isAway = false;
function note(isHere) {
  if (isHere && isAway) dispatchEvent(new Event("online"));
  isAway = !isHere;
}

const long = /\d{16}/; // what may be more than a number of JavaScript holds

/** JSON whose integers stay what they are, also those that no number of JavaScript is (where the browser can). */
export function parseExactly(text) {
  if (!long.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => typeof value === "number" && !Number.isSafeInteger(value) && JSON.rawJSON && /^-?\d+$/.test(context?.source ?? "") ? JSON.rawJSON(context.source) : value);
}

/** Some refusals come with a list of what is wrong, each with its path. */
function sentenceOf(status, answer) {
  const details = [
    ...(answer?.details ?? []).map(({ path, message }) => [path?.join("."), message].filter(Boolean).join(": ")),
    ...(answer?.variableErrors ?? []).map(({ key, error }) => `${key}: ${error}`),
  ];
  const { error } = answer ?? {};
  return [typeof error === "string" ? error : error?.message ?? `The gateway answered with ${status}`, ...details].join(". ");
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
  #tokens = new Map(); // of an environment -> { token, until } or a promise of that
  ended = false; // the person's token was refused while it was in use

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

  /** Asks other tabs for the person's token; gives whether one had it. */
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

  /** Takes a personal access token that a person has typed. */
  async signIn(token) {
    await request(token, "GET", "/api/v2/whoami");
    this.ended = false;
    this.#keep(token);
  }

  /** Takes the code of a one-time link, which is good once. */
  async signInByCode(code) {
    const { token, user } = await request(undefined, "POST", "/api/v1/sign-in", { body: { code } });
    this.ended = false;
    this.#keep(token);
    return user;
  }

  signOut(ended = false) {
    this.ended = ended;
    if (!ended) this.#tabs?.postMessage({ op: "out" });
    this.#keep(undefined);
  }

  /** A request with the person's token: projects, and what belongs to no environment. */
  async personal(method, path, options) {
    try {
      return await request(this.#personal, method, path, options);
    } catch (error) {
      if (error.status === 401) this.signOut(true);
      throw error;
    }
  }

  /** Signs out who has a token that has ended. */
  check() { this.personal("GET", "/api/v2/whoami").catch(() => { /* said elsewhere */ }); }

  /** A token of an environment: { ref, env, branch }. */
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

  /** A request in an environment. A token that has ended meanwhile is replaced once. */
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
