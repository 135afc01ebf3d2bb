// A proxy between a client and the gateway that loses responses: the gateway handles the request, but the client does not
// get the response.
//
//   const proxy = await LossyProxy.start(gateway.port);
//   await proxy.lose(/\/attempts\/start$/, { holding: run, meanwhile: () => gateway.kill() });
import http from "node:http";

import { freePort } from "./gateway.mjs";

export class LossyProxy {
  static async start(target, t) {
    const proxy = new LossyProxy(target, await freePort());
    await new Promise((resolve) => proxy.server.listen(proxy.port, "127.0.0.1", resolve));
    t?.after(() => proxy.stop());
    return proxy;
  }

  constructor(target, port) {
    Object.assign(this, { target, port, url: `http://127.0.0.1:${port}`, losing: [], answers: [] });
    this.server = http.createServer((request, reply) => this.#pass(request, reply));
    this.server.on("upgrade", (request, socket) => socket.destroy());
    this.server.keepAliveTimeout = 0;
  }

  /** Loses the next response of this path whose body contains the text `holding`, then calls meanwhile(). Resolves
   * when meanwhile() has finished. */
  lose(path, { holding = "", meanwhile = async () => {} } = {}) {
    return new Promise((resolve, reject) => this.losing.push({ path, holding, meanwhile, resolve, reject }));
  }

  #pass(request, reply) {
    const { method, url: path, headers } = request;
    const upstream = http.request({ port: this.target, host: "127.0.0.1", method, path, headers, agent: false });
    upstream.on("error", () => request.socket.destroy());
    upstream.on("response", (answer) => this.#answer(request, reply, answer).catch(() => request.socket.destroy()));
    reply.on("close", () => upstream.destroy());
    request.pipe(upstream);
  }

  async #answer(request, reply, answer) {
    const path = request.url;
    if (answer.headers["content-type"]?.includes("event-stream")) return this.#stream(reply, answer);
    const pieces = [];
    for await (const piece of answer) pieces.push(piece);
    const bytes = Buffer.concat(pieces), body = bytes.toString();
    const at = this.losing.findIndex((one) => one.path.test(path) && body.includes(one.holding));
    const [losing] = at >= 0 ? this.losing.splice(at, 1) : [];
    this.answers.push({ path, key: request.headers["x-trigger-request-idempotency-key"], lost: !!losing, status: answer.statusCode, body });
    if (!losing) return reply.writeHead(answer.statusCode, answer.headers).end(bytes);
    request.socket.destroy();
    return losing.meanwhile().then(losing.resolve, losing.reject);
  }

  async #stream(reply, answer) {
    reply.writeHead(answer.statusCode, answer.headers);
    for await (const piece of answer) reply.write(piece);
    reply.end();
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}
