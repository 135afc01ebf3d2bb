// lasting.js - keeps the user of this browser signed in, across tabs and after it was closed.
//
// Over https, the gateway gives the browser a cookie that no page can read, and that is sent to one address only. On
// the same machine without TLS, other servers on the machine would get such a cookie too, since cookies ignore ports.
// There the browser keeps a key in IndexedDB, which belongs to the origin with its port: no page can export it, and
// the gateway has its public half. Elsewhere, without TLS, a user cannot stay signed in.
//
// Each use replaces the cookie, or signs a later time. So tabs take turns, and a lost response is followed by a repeat.
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

  /** Is true from signing out until the gateway has confirmed that: no page can remove the cookie by itself. */
  get isLeaving() { try { return Boolean(way && localStorage.getItem(leavingKey)); } catch { return false; } },
  set isLeaving(is) { try { if (is) localStorage.setItem(leavingKey, "yes"); else localStorage.removeItem(leavingKey); } catch { /* the same */ } },
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
  return { publicKey: base64url(await crypto.subtle.exportKey("raw", publicKey)), keep: (id) => write({ id, privateKey, time: 0 }) };
}

/** Removes the key. */
export const forgetKey = () => way === "key" ? inStore("readwrite", (store) => store.delete("this")) : Promise.resolve();

/** Returns what a use must send: nothing with a cookie; otherwise a signature. */
export async function prove() {
  if (way !== "key") return {};
  const { id, privateKey, time: last } = await read() ?? {};
  if (!id) return {};
  const time = Math.max(Date.now(), last + 1), text = `runcast session\n${location.origin}\n${id}\n${time}`;
  await write({ id, privateKey, time });
  return { id, time, signature: base64url(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, new TextEncoder().encode(text))) };
}

/** Calls use() while no other tab of this gateway does. */
export const takeTurn = (use) => navigator.locks ? navigator.locks.request(turnKey, use) : use();
