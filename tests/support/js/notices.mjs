// A worker's notice socket, packet by packet.
//
//   const socket = await NoticeSocket.connect(gateway, { t, runs: [id] });
//   await socket.notice(id);
import assert from "node:assert/strict";

import { keys } from "./gateway.mjs";
import { opcodes, WebSocket } from "./websocket.mjs";

export const target = "/socket.io/?EIO=4&transport=websocket";

export class NoticeSocket {
  /** Opens a socket, and reads its open packet: { t, key, headers }; key null: no credential. */
  static async open(gateway, { t, key = keys.dev, headers = {} } = {}) {
    const authorization = key ? { authorization: `Bearer ${key}` } : {};
    const ws = await WebSocket.open({ port: gateway.port, target, headers: { ...authorization, ...headers } });
    t?.after(() => ws.cut());
    const socket = new NoticeSocket(ws);
    const first = await socket.next();
    assert.equal(first[0], "0");
    socket.opened = JSON.parse(first.slice(1));
    return socket;
  }

  /** Opens a socket, joins a namespace, and subscribes to runs. */
  static async connect(gateway, { runs = [], space = "/dev-worker", ...more } = {}) {
    const socket = await NoticeSocket.open(gateway, more);
    socket.space = space;
    socket.send(`40${space},`);
    assert.match(await socket.next(), new RegExp(`^40${space},{"sid":"[\\w-]{20}"}$`));
    if (runs.length) socket.subscribe(...runs);
    await socket.caughtUp();
    return socket;
  }

  constructor(ws) {
    Object.assign(this, { ws, packets: [], waiting: [] });
    ws.listen((payload) => {
      this.packets.push(payload.toString());
      for (const look of this.waiting.slice()) look();
    });
    ws.closed.then(() => { for (const look of this.waiting.slice()) look(); });
  }

  send(text) { this.ws.send(opcodes.text, text); }
  emit(...event) { this.send(`42${this.space},${JSON.stringify(event)}`); }
  subscribe(...runs) { this.emit("run:subscribe", { version: "1", runFriendlyIds: runs }); }
  unsubscribe(...runs) { this.emit("run:unsubscribe", { version: "1", runFriendlyIds: runs }); }

  /** Returns the next packet that wanted() accepts, and removes it from the list. */
  next(wanted = () => true, { timeoutMs = 30_000 } = {}) {
    return new Promise((resolve, reject) => {
      const end = (settle, value) => {
        clearTimeout(timer);
        this.waiting = this.waiting.filter((one) => one !== look);
        settle(value);
      };
      const look = () => {
        const at = this.packets.findIndex(wanted);
        if (at >= 0) end(resolve, this.packets.splice(at, 1)[0]);
        else if (this.ws.isClosed) end(reject, new Error("the socket was closed"));
      };
      const timer = setTimeout(() => end(reject, new Error(`no such packet within ${timeoutMs} ms; received: ${this.packets}`)), timeoutMs);
      this.waiting.push(look);
      look();
    });
  }

  noticeOf(id) { return `42${this.space},${JSON.stringify(["run:notify", { version: "1", run: { friendlyId: id } }])}`; }
  notice(id) { return this.next((packet) => packet === this.noticeOf(id)); }
  notices() { return this.packets.filter((packet) => packet.includes("run:notify")); }

  /** Waits until the gateway has handled earlier messages, and their responses have arrived. */
  async caughtUp() {
    const mark = `${Math.random()}`;
    this.send(`2${mark}`);
    await this.next((packet) => packet === `3${mark}`);
  }
}
