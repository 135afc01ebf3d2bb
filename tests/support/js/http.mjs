// Two ways to use HTTP in tests: a small keep-alive client, and plain bytes on a connection.
import http from "node:http";
import net from "node:net";

export class HttpClient {
  constructor(url, key) {
    this.url = new URL(url);
    this.key = key;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  }

  /** Returns { status, headers, text, json }. key: null sends none; a string body is sent unchanged. */
  request(method, target, { body, key = this.key, headers = {}, timeoutMs = 60_000 } = {}) {
    const all = { ...headers };
    if (key) all.authorization ??= `Bearer ${key}`;
    const text = body === undefined || typeof body === "string" || Buffer.isBuffer(body)
      ? body : JSON.stringify(body);
    if (text !== undefined) {
      all["content-type"] ??= "application/json";
      all["content-length"] ??= Buffer.byteLength(text);
    }
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.url;
      const request = http.request({ hostname, port, method, path: target, headers: all, agent: this.agent });
      request.setTimeout(timeoutMs, () => request.destroy(new Error(`${method} ${target}: no answer within ${timeoutMs} ms`)));
      request.on("error", reject);
      request.on("response", (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("error", reject);
        response.on("end", () => resolve(reply(response, Buffer.concat(parts).toString())));
      });
      request.end(text);
    });
  }

  /** Closes idle connections. A gateway closes them when its clock is set ahead, and a call could be sent on one of
   *  them at that moment. */
  closeIdle() {
    for (const idle of Object.values(this.agent.freeSockets).flat()) idle.destroy();
  }

  /** Closes all connections; the client stays usable. */
  close() {
    this.agent.destroy();
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  }
}

function reply({ statusCode, headers }, text) {
  let json;
  try { json = JSON.parse(text); } catch { /* text alone is returned */ }
  return { status: statusCode, headers, text, json };
}

export class RawConnection {
  static open(port, host = "127.0.0.1") {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ port, host, noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new RawConnection(socket)));
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.received = Buffer.alloc(0);
    this.ended = false; // the peer will send no more
    this.wake = () => {};
    socket.on("data", (bytes) => { this.received = Buffer.concat([this.received, bytes]); this.wake(); });
    for (const event of ["end", "close", "error"])
      socket.on(event, () => { this.ended = true; this.wake(); });
  }

  /** Resolves when the kernel has the bytes, or the connection has failed. */
  send(bytes) {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Sends pieces that end at the given offsets, each in its own packet. */
  async sendPieces(bytes, offsets) {
    const buffer = Buffer.from(bytes);
    for (let i = 0; i <= offsets.length; i++) {
      await this.send(buffer.subarray(offsets[i - 1] ?? 0, offsets[i]));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until done(received as latin1, ended) and returns what has been received. */
  async read(done, { timeoutMs = 30_000, what = "bytes" } = {}) {
    let late = false;
    const timer = setTimeout(() => { late = true; this.wake(); }, timeoutMs);
    try {
      while (!done(this.received.toString("latin1"), this.ended)) {
        if (late || this.ended) {
          const received = JSON.stringify(this.received.toString("latin1").slice(0, 500));
          throw new Error(`${what}: ${late ? `not within ${timeoutMs} ms` : "the peer closed"}, received ${received}`);
        }
        await new Promise((resolve) => { this.wake = resolve; });
      }
      return this.received.toString("latin1");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Everything until the peer closes. */
  readToEnd(more) { return this.read((_text, ended) => ended, { what: "the end", ...more }); }

  /** Clears what was received and returns it. */
  take() {
    const bytes = this.received;
    this.received = Buffer.alloc(0);
    return bytes;
  }

  pause() { this.socket.pause(); }
  resume() { this.socket.resume(); }
  end() { this.socket.end(); }
  destroy() { this.socket.destroy(); }
  reset() { this.socket.resetAndDestroy(); }
}
