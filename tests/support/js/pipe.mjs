// HTTP/1.1 pipelining: many requests at once on one connection, whose responses arrive in their order.
import net from "node:net";

export class Pipe {
  static open(port) {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject).once("connect", () => resolve(new Pipe(socket)));
    });
  }

  constructor(socket) {
    Object.assign(this, { socket, waiting: [], rest: "" });
    socket.setEncoding("latin1").on("data", (text) => this.receive(text)).on("error", (error) => this.fail(error))
      .on("close", () => this.fail(new Error(`the connection was closed, ${this.waiting.length} responses are missing`)));
  }

  fail(error) {
    for (const { reject } of this.waiting.splice(0)) reject(error);
    this.error ??= error;
  }

  receive(text) {
    this.rest = this.rest ? this.rest + text : text;
    for (;;) {
      const end = this.rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = this.rest.slice(0, end), size = /\r\ncontent-length: (\d+)/i.exec(head);
      const length = this.waiting[0].method === "HEAD" ? 0 : Number(size?.[1] ?? 0);
      if (this.rest.length < end + 4 + length) return;
      const body = this.rest.slice(end + 4, end + 4 + length);
      this.rest = this.rest.slice(end + 4 + length);
      this.waiting.shift().resolve({ status: Number(head.slice(9, 12)), head, body });
    }
  }

  /** { method, path, key, body, headers }: { status, head, body }, both latin1. */
  send({ method, path, key, body, headers = {} }) {
    if (this.error) return Promise.reject(this.error);
    const lines = Object.entries({ host: "gateway", ...(key && { authorization: `Bearer ${key}` }), ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
    const answer = new Promise((resolve, reject) => this.waiting.push({ resolve, reject, method }));
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}${body === undefined && /GET|HEAD/.test(method) ? "" : `content-length: ${Buffer.byteLength(text)}\r\n`}\r\n${text}`);
    return answer;
  }

  close() {
    this.waiting = [];
    this.socket.destroy();
  }
}
