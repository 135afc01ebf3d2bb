// lasting.js - keeps the user of this browser signed in, across tabs and after it was closed.
//
// Over https, the gateway gives the browser a cookie that no page can read, and that is sent to one address only. On
// the same machine without TLS, other servers on the machine would get such a cookie too, since cookies ignore ports.
// There the browser keeps a key in IndexedDB, which belongs to the origin with its port: no page can export it, and
// the gateway has its public half. Elsewhere, without TLS, a user cannot stay signed in.
//
// Each use replaces the cookie, or signs a challenge of the gateway, so that nothing can be signed in advance. Tabs take
// turns, and a lost response is followed by a repeat.
import { base } from "./base.js";

const userKey = `runcast.stays${base}`, leavingKey = `runcast.leaves${base}`, turnKey = `runcast.session${base}`, databaseName = `runcast${base}`;
const curve = { name: "ECDSA", namedCurve: "P-256" };
const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

/** How this browser can stay signed in: "cookie", "key", or undefined. */
export const way = location.protocol === "https:" ? "cookie" : isLocal && globalThis.crypto?.subtle && globalThis.indexedDB ? "key" : undefined;

/** The id of the user whom this browser keeps signed in; only the gateway knows whether that has ended. Another
 * server on the host may have replaced the cookie with another user's, which must not be used. */
export const keptUser = {
  get id() { try { return way && localStorage.getItem(userKey) || undefined; } catch { return undefined; } },
  set id(id) { try { if (id) localStorage.setItem(userKey, id); else localStorage.removeItem(userKey); } catch { /* storage is forbidden */ } },

  /** The id from signing out until the gateway has confirmed that: no page can remove the cookie by itself. */
  get leaving() { try { return way && localStorage.getItem(leavingKey) || undefined; } catch { return undefined; } },
  set leaving(id) { try { if (id) localStorage.setItem(leavingKey, id); else localStorage.removeItem(leavingKey); } catch { /* the same */ } },
};

const resultOf = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** Calls use(store) with the store of the key, and returns the result of its request. */
async function inStore(mode, use) {
  const opening = indexedDB.open(databaseName, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("sign-in");
  const database = await resultOf(opening);
  try { return await resultOf(use(database.transaction("sign-in", mode).objectStore("sign-in"))); } finally { database.close(); }
}
const read = () => inStore("readonly", (store) => store.get("this"));
const write = (value) => inStore("readwrite", (store) => store.put(value, "this"));

const base64url = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** Makes a key that cannot be exported: { publicKey, keep(id) }. */
export async function makeKey() {
  const { privateKey, publicKey } = await crypto.subtle.generateKey(curve, false, ["sign"]);
  return { publicKey: base64url(await crypto.subtle.exportKey("raw", publicKey)), keep: (id) => write({ id, privateKey }) };
}

/** Removes the key. */
export const forgetKey = () => way === "key" ? inStore("readwrite", (store) => store.delete("this")) : Promise.resolve();

const triesMax = 3; // without turns, another tab may have got a challenge meanwhile

/** Uses the lasting sign-in by post(proof), whose answer it returns. The proof is empty with a cookie; otherwise it is a
 * signature of the challenge that the gateway answers without one. */
export async function prove(post) {
  if (way !== "key") return post({});
  const { id, privateKey } = await read() ?? {};
  let answer = await post({ id });
  for (let i = 0; answer.challenge && i < triesMax; i++) {
    const text = new TextEncoder().encode(`runcast session\n${location.origin}\n${id}\n${answer.challenge}`);
    answer = await post({ id, signature: base64url(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, text)) });
  }
  if (answer.challenge) throw Object.assign(new Error("The gateway does not accept the key of this browser"), { status: 401 });
  return answer;
}

/** Calls use() while no other tab of this gateway does. */
export const takeTurn = (use) => navigator.locks ? navigator.locks.request(turnKey, use) : use();
