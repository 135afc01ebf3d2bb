// A gateway as its peers see it, played by the test: it opens the WebSocket at peer-listen, and answers the leader's
// opening with a proof. Each step can also be done wrong.
//
//   const peer = await Peer.open({ port });
//   await peer.prove();                       resolves when the leader has proved its key, too
//   peer.send(hello(peer.id)); await peer.next();
//
// src/server/peers/peer_wire.h and src/base/vault/peer_proof.h have the messages, src/core/replication the frames.
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";

import { decodeAll } from "./msgpack.mjs";
import { opcodes, WebSocket } from "./websocket.mjs";

export const PROTOCOL = "runcast.repl.1", TARGET = "/peer/replication";
const RANDOM = 32, PROOF = 32, MAC = 16, NUMBER = 8, SEAL = 24;

const hmac = (key, ...parts) => createHmac("sha256", key).update(Buffer.concat(parts)).digest();
const label = (text, length) => Buffer.from(text.padEnd(length, "\0"), "latin1");
const number = (value) => { const bytes = Buffer.alloc(8); bytes.writeBigUInt64BE(BigInt(value)); return bytes; };

export const kinds = { hello: 1, ask: 2, positions: 3, beat: 4, before: 5, change: 6, document: 7, passed: 8, floor: 9, sum: 10, end: 11 };
const pack = (value) => typeof value === "string" ? Buffer.concat([Buffer.from([0xd9, value.length]), Buffer.from(value)])
  : value < 128 ? Buffer.from([value]) : Buffer.concat([Buffer.from([0xcf]), number(value)]);
export const frame = (...values) => Buffer.concat([Buffer.from([0x90 | values.length]), ...values.map(pack)]);

/** The frames of a follower. */
export const hello = (id, { least = 1, newest = 1, epoch = "0123456789abcdef", more = [] } = {}) => frame(kinds.hello, 1, least, newest, id, epoch, 0, ...more);
export const ask = (which) => frame(kinds.ask, 1, which);

const within = (promise, ms, what) => {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

export class Peer {
  /** key: the encryption key in hex. id: of this gateway. */
  static async open({ port, host = "127.0.0.1", key = "5e".repeat(32), id = 4711, headers, target = TARGET }) {
    const ws = await WebSocket.open({ port, host, target, headers: { "sec-websocket-protocol": PROTOCOL, ...headers } });
    return new Peer(ws, { key, id });
  }

  constructor(ws, { key, id }) {
    Object.assign(this, { ws, id, got: [], waiting: [], sent: 0, received: 0 });
    this.key = hmac(Buffer.from(key, "hex"), label("runcast peer key", 17));
    this.closed = ws.closed;
    ws.listen((message) => { const next = this.waiting.shift(); next ? next(message) : this.got.push(message); });
  }

  /** The next message of the leader, as it is. */
  raw() {
    const message = this.got.length ? Promise.resolve(this.got.shift()) : new Promise((resolve) => this.waiting.push(resolve));
    const closed = this.closed.then(({ code, reason }) => { throw new Error(`closed: ${code} ${reason}`); });
    return within(Promise.race([message, closed]), 30_000, "a message of the leader");
  }

  async opening() {
    const message = await this.raw();
    this.leader = message.readBigUInt64BE(RANDOM);
    this.leaderRandom = message.subarray(0, RANDOM);
    this.random ??= randomBytes(RANDOM);
    return message;
  }

  #signed(purpose, key = this.key) {
    return hmac(key, label(`runcast peer ${purpose}`, 24), number(this.leader), number(this.id), this.leaderRandom, this.random);
  }

  proof(role = "follower") { return this.#signed(role); }
  answer(...proofs) { return Buffer.concat([this.random, number(this.id), ...proofs]); }
  sendText(bytes) { this.ws.send(opcodes.text, bytes.toString("base64url")); }

  /** The whole handshake. */
  async prove() {
    await this.opening();
    this.sendText(this.answer(this.proof()));
    const message = await this.raw(), wrapped = message.subarray(PROOF);
    if (!message.subarray(0, PROOF).equals(this.proof("leader"))) throw new Error("the leader's proof is wrong");
    this.session = this.#signed("session");
    const pad = hmac(this.session, label("runcast peer group key", 23));
    this.group = Buffer.from(wrapped.map((byte, i) => byte ^ pad[i]));
  }

  #mac(role, at, message) {
    return hmac(this.session, Buffer.from([role]), number(at), createHash("sha256").update(message).digest()).subarray(0, MAC);
  }

  sealed(message) { return Buffer.concat([this.#mac(1, this.sent++, message), message]); }
  send(message) { this.sendText(this.sealed(message)); }

  #tag(number, message) {
    const cipher = createCipheriv("aes-256-gcm", this.group, Buffer.concat([Buffer.alloc(4), number])).setAAD(message);
    cipher.final();
    return cipher.getAuthTag();
  }

  /** The next message, whose MAC and seal are right. */
  async next() {
    const all = await this.raw(), seal = all.subarray(MAC, MAC + SEAL), message = all.subarray(MAC + SEAL);
    if (!this.#mac(0, this.received++, seal).equals(all.subarray(0, MAC))) throw new Error("the MAC of a message is wrong");
    if (!this.#tag(seal.subarray(0, NUMBER), message).equals(seal.subarray(NUMBER))) throw new Error("the seal of a message is wrong");
    return message;
  }

  /** The frames of the next message, as arrays: [kind, needs, …]. */
  async frames() { return decodeAll(await this.next()); }

  /** Waits for a frame of that kind; returns its values. */
  async frame(kind) {
    for (;;) for (const [which, , ...values] of await this.frames()) if (which === kind) return values;
  }
}
