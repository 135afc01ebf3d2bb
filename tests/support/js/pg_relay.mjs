// A relay between a gateway and PostgreSQL that understands the messages of their protocol, and loses, holds back or
// doubles the ones that a test names.
//
//   const relay = await PgRelay.start(postgres, t);           relay.url for the gateway
//   const rule = relay.order("cut", { from: "server", at: 3, of: "commit_v100" });
//   await rule.struck;
//   relay.hold("server"); relay.pass(); relay.refuse(); relay.accept();
//   relay.delayMs = 50;    delays each message of the server, one after the other; 0: no delay
//
// An order counts the messages of one direction from the moment that it is given, on all connections or on those that
// have sent a text, and strikes once, at the n-th of them:
//
//   cut      the message is lost, and the connection with it
//   tear     half of the message arrives, then the connection ends
//   drop     the message is lost without a sign
//   stall    this message and those after it in its direction wait for pass()
//   double   the statement that the message belongs to is also sent on a connection of the relay's own
//   ghost    the connection ends, the statement is not sent; it reaches the server at pass()
import net from "node:net";

import { freePort, sleep } from "./gateway.mjs";

const SSL_REQUEST = 80877103, GSS_REQUEST = 80877104, PROTOCOL_3 = 196608;
const ENDS_STATEMENT = new Set(["S", "Q"]); // Sync, Query
const READY = "Z";

/** Bytes in, whole messages out. */
class Messages {
  constructor({ startup }) { Object.assign(this, { rest: Buffer.alloc(0), startup }); }

  *take(bytes) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, bytes]) : bytes;
    for (;;) {
      const head = this.startup ? 0 : 1;
      if (this.rest.length < head + 4) return;
      const length = head + this.rest.readUInt32BE(head);
      if (this.rest.length < length) return;
      const message = this.rest.subarray(0, length);
      this.rest = this.rest.subarray(length);
      const type = this.startup ? `${message.readUInt32BE(4)}` : String.fromCharCode(message[0]);
      if (type === `${PROTOCOL_3}`) this.startup = false;
      yield { type, bytes: message };
    }
  }
}

/** One direction of a connection. */
class Lane {
  constructor(target) { Object.assign(this, { target, held: false, waiting: [] }); }

  send(bytes, delayMs) {
    if (this.held) this.waiting.push(bytes);
    else if (!delayMs && !this.late) this.target.write(bytes);
    else this.#sendLate(bytes, delayMs);
  }

  /** Sends after what is late already, so that everything stays in order. */
  async #sendLate(bytes, delayMs) {
    const before = this.late, sent = (async () => { await before; if (delayMs) await sleep(delayMs); this.target.write(bytes); })();
    this.late = sent;
    await sent;
    if (this.late === sent) this.late = undefined;
  }

  pass() {
    this.held = false;
    for (const bytes of this.waiting.splice(0)) this.target.write(bytes);
  }
}

class Connection {
  constructor(relay, client) {
    const server = net.connect(relay.target);
    Object.assign(this, { relay, client, server, said: "", statement: [], statements: 0, lost: false });
    this.lanes = { client: new Lane(server), server: new Lane(client) };
    for (const from of ["client", "server"]) if (relay.held.has(from)) this.lanes[from].held = true;
    this.#listen("client", client, new Messages({ startup: true }));
    this.#listen("server", server, new Messages({ startup: false }));
  }

  #listen(from, socket, messages) {
    socket.setNoDelay(true);
    socket.on("data", (bytes) => {
      for (const message of messages.take(bytes)) if (!this.lost) this.#on(from, message);
      const { target } = this.lanes[from];
      if (target.writableNeedDrain) {
        socket.pause();
        target.once("drain", () => socket.resume());
      }
    });
    socket.on("error", () => {}).on("close", () => this.#ended(from));
  }

  /** One side has closed; the other gets its end after what was sent, or not at all while that is held. */
  #ended(from) {
    if (!this.lanes[from].held) this.end();
  }

  #on(from, message) {
    const { type, bytes } = message;
    if (from === "client") {
      if (type === `${SSL_REQUEST}` || type === `${GSS_REQUEST}`) return void this.client.write("N");
      if (type === `${PROTOCOL_3}`) this.startup = bytes;
      else this.#note(type, bytes);
    }
    const rule = this.relay.rule(this, from);
    if (rule === "cut" || rule === "tear") return this.#lose(from, rule === "tear" ? bytes : undefined);
    if (rule === "drop") return;
    if (rule === "stall") this.lanes[from].held = true;
    if (rule === "double" || rule === "ghost") this.twice = rule;
    if (this.twice !== "ghost" || from === "server") this.lanes[from].send(bytes, from === "server" ? this.relay.delayMs : 0);
    if (from === "client" && ENDS_STATEMENT.has(type)) this.#ownStatement();
  }

  #note(type, bytes) {
    if (!this.said.includes(bytes.toString("latin1"))) this.said = (this.said + bytes.toString("latin1")).slice(-65536);
    this.statement.push(bytes);
  }

  /** The statement is complete: does with it what a "double" or a "ghost" requires. */
  #ownStatement() {
    this.statements++;
    const statement = Buffer.concat(this.statement.splice(0)), { twice } = this;
    this.twice = undefined;
    if (twice === "double") this.relay.say(this.startup, statement);
    if (twice !== "ghost") return;
    this.relay.ghosts.push(() => this.relay.say(this.startup, statement));
    this.end();
  }

  #lose(from, bytes) {
    if (bytes) this.lanes[from].target.write(bytes.subarray(0, bytes.length / 2));
    this.end();
  }

  end() {
    this.lost = true;
    for (const socket of [this.client, this.server]) socket.destroySoon();
    this.relay.connections.delete(this);
  }
}

export class PgRelay {
  static async start(postgres, t) {
    const relay = new PgRelay({ host: postgres.host, port: postgres.port }, await freePort());
    t?.after(() => relay.stop());
    await relay.accept();
    return relay;
  }

  constructor(target, port) {
    Object.assign(this, { target, port, url: `postgresql://runcast@127.0.0.1:${port}/runcast`,
      connections: new Set(), rules: [], ghosts: [], held: new Set(), twins: 0, messages: { client: 0, server: 0 } });
  }

  /** { from: "client" or "server", at: n, of: a text that the connection has sent } */
  order(what, { from = "client", at = 1, of = "" } = {}) {
    const rule = { what, from, left: at, of, seen: 0 };
    rule.struck = new Promise((resolve) => { rule.strike = resolve; });
    this.rules.push(rule);
    return rule;
  }

  /** Removes all orders. */
  forget() { this.rules = []; }

  /** For connections: returns what to do with the next message of a direction. */
  rule(connection, from) {
    this.messages[from]++;
    for (const rule of this.rules) {
      if (rule.from !== from || !connection.said.includes(rule.of) || --rule.left > 0) continue;
      this.rules.splice(this.rules.indexOf(rule), 1);
      rule.strike(connection);
      return rule.what;
    }
    return undefined;
  }

  /** Executes a statement on a connection of our own, and waits for its end. */
  async say(startup, statement) {
    const socket = net.connect(this.target).on("error", () => {}), messages = new Messages({ startup: false });
    let ready = 0;
    socket.write(startup);
    for await (const bytes of socket) {
      for (const { type } of messages.take(bytes)) {
        if (type !== READY) continue;
        if (++ready === 2) return void this.twins++;
        socket.write(statement);
      }
    }
  }

  /** Holds a direction, or both, on every connection. */
  hold(from) {
    for (const one of from ? [from] : ["client", "server"]) {
      this.held.add(one);
      for (const { lanes } of this.connections) lanes[one].held = true;
    }
  }

  /** Releases what was held or kept back. */
  pass() {
    this.held.clear();
    for (const { lanes } of this.connections) for (const lane of Object.values(lanes)) lane.pass();
    for (const connection of [...this.connections])
      if (connection.client.destroyed || connection.server.destroyed) connection.end();
    return Promise.all(this.ghosts.splice(0).map((ghost) => ghost()));
  }

  /** Ends connections, and accepts no others. */
  async refuse() {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const connection of [...this.connections]) connection.end();
    await closed;
  }

  /** Accepts connections again. */
  async accept() {
    this.server = net.createServer((client) => this.connections.add(new Connection(this, client)));
    await new Promise((resolve, reject) => this.server.on("error", reject).listen(this.port, "127.0.0.1", resolve));
  }

  stop() { return this.refuse().catch(() => {}); }
}
