// A WebSocket client on a plain socket, so that tests can also do what a library forbids: send any frame, stall, cut the
// connection, leave a ping unanswered.
import crypto from "node:crypto";
import net from "node:net";

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

/** One frame as bytes, masked as a client must; every rule can be broken by an option. */
export function frame(opcode, payload = "", { fin = true, rsv = 0, mask = true, length } = {}) {
  const body = Buffer.from(payload);
  const size = length ?? body.length;
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const bit = mask ? 0x80 : 0;
  if (size < 126) head.push(bit | size);
  else if (size < 65536) head.push(bit | 126, size >> 8, size & 255);
  else {
    const wide = Buffer.alloc(8);
    wide.writeBigUInt64BE(BigInt(size));
    head.push(bit | 127, ...wide);
  }
  if (!mask) return Buffer.concat([Buffer.from(head), body]);
  const key = crypto.randomBytes(4);
  return Buffer.concat([Buffer.from(head), key, body.map((byte, i) => byte ^ key[i & 3])]);
}

/** Splits a buffer into whole frames and the rest: [[{ fin, rsv, opcode, masked, payload }], rest]. */
export function parseFrames(buffer) {
  const frames = [];
  let at = 0;
  while (buffer.length - at >= 2) {
    let size = buffer[at + 1] & 127, head = 2;
    if (size === 126) { head = 4; if (buffer.length - at < head) break; size = buffer.readUInt16BE(at + 2); }
    else if (size === 127) { head = 10; if (buffer.length - at < head) break; size = Number(buffer.readBigUInt64BE(at + 2)); }
    if (buffer.length - at < head + size) break;
    const first = buffer[at];
    frames.push({ fin: first >= 128, rsv: (first >> 4) & 7, opcode: first & 15, masked: buffer[at + 1] >= 128,
      payload: buffer.subarray(at + head, at + head + size) });
    at += head + size;
  }
  return [frames, buffer.subarray(at)];
}

export function upgradeRequest(target, headers = {}) {
  const all = { host: "127.0.0.1", connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13",
    "sec-websocket-key": crypto.randomBytes(16).toString("base64"), ...headers };
  const lines = Object.entries(all).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** The response to the upgrade had a status other than 101. */
export class UpgradeRefused extends Error {
  constructor(status, headers, body) {
    super(`upgrade refused: ${status} ${body}`);
    Object.assign(this, { status, headers, body });
  }
}

export class WebSocket {
  /** { port, host, target, headers, timeoutMs, answerPings } */
  static open({ port, host = "127.0.0.1", target, headers, timeoutMs = 30_000, answerPings = true }) {
    const socket = net.connect({ port, host, noDelay: true });
    const ws = new WebSocket(socket, answerPings);
    socket.on("connect", () => socket.write(upgradeRequest(target, headers)));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => { socket.destroy(); reject(new Error(`no upgrade within ${timeoutMs} ms`)); }, timeoutMs);
      ws.upgraded = (error) => { clearTimeout(timer); ws.upgraded = () => {}; error ? reject(error) : resolve(ws); };
    });
  }

  constructor(socket, answerPings) {
    this.socket = socket;
    this.answerPings = answerPings;
    this.rest = Buffer.alloc(0);
    this.response = null; // { status, headers } of the upgrade
    this.parts = []; // of a fragmented message
    this.closeCode = undefined;
    this.closeReason = "";
    this.early = []; // messages that arrived before listen() was called
    this.onMessage = (...message) => this.early.push(message);
    this.onPing = () => {};
    this.onPong = () => {};
    this.onClosed = () => {};
    socket.on("data", (bytes) => this.#receive(bytes));
    socket.on("error", (error) => { this.error = error; });
    this.closed = new Promise((resolve) => socket.on("close", () => {
      this.upgraded?.(this.#refusal() ?? this.error ?? new Error("closed before the upgrade"));
      this.isClosed = true;
      resolve({ code: this.closeCode ?? 1006, reason: this.closeReason });
      this.onClosed();
    }));
  }

  #receive(bytes) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, bytes]) : bytes;
    if (!this.response && !this.#receiveResponse()) return;
    const [frames, rest] = parseFrames(this.rest);
    this.rest = rest;
    for (const one of frames) this.#receiveFrame(one);
  }

  #receiveResponse() {
    const end = this.rest.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const [statusLine, ...lines] = this.rest.subarray(0, end).toString("latin1").split("\r\n");
    const status = Number(statusLine.split(" ")[1]);
    const headers = Object.fromEntries(lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }));
    if (status !== 101) {
      const size = Number(headers["content-length"] ?? 0);
      this.refused = { status, headers, from: end + 4 };
      if (this.rest.length >= end + 4 + size) this.upgraded(this.#refusal());
      return false;
    }
    this.response = { status, headers };
    this.rest = this.rest.subarray(end + 4);
    this.upgraded();
    return true;
  }

  #refusal() {
    if (!this.refused) return undefined;
    const { status, headers, from } = this.refused;
    this.socket.destroy();
    return new UpgradeRefused(status, headers, this.rest.subarray(from).toString());
  }

  #receiveFrame({ fin, opcode, payload }) {
    if (opcode === opcodes.ping) {
      this.onPing(payload);
      if (this.answerPings) this.send(opcodes.pong, payload);
    } else if (opcode === opcodes.pong) {
      this.onPong(payload);
    } else if (opcode === opcodes.close) {
      this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.closeReason = payload.subarray(2).toString();
      this.send(opcodes.close, payload.subarray(0, 2));
      this.socket.end();
    } else {
      if (opcode !== opcodes.continuation) this.kind = opcode;
      this.parts.push(payload);
      if (!fin) return;
      const message = this.parts.length === 1 ? payload : Buffer.concat(this.parts);
      this.parts = [];
      this.onMessage(message, this.kind);
    }
  }

  /** onMessage(payload, opcode) gets every message, also those that arrived with the upgrade. */
  listen(onMessage) {
    this.onMessage = onMessage;
    for (const message of this.early.splice(0)) onMessage(...message);
  }

  /** Sends one frame; options as of frame(). */
  send(opcode, payload, options) { return this.sendBytes(frame(opcode, payload, options)); }
  sendBytes(bytes) { if (!this.socket.destroyed) this.socket.write(bytes); }

  /** Sends a close frame; resolves when the connection is closed. */
  close(code = 1000, reason = "") {
    const head = Buffer.alloc(2);
    head.writeUInt16BE(code);
    this.send(opcodes.close, Buffer.concat([head, Buffer.from(reason)]));
    return this.closed;
  }

  /** Cuts the connection without a close frame. */
  cut() { this.socket.destroy(); return this.closed; }

  /** Acts like a slow reader: reads nothing from the kernel until resume(). */
  pause() { this.socket.pause(); }
  resume() { this.socket.resume(); }
}
