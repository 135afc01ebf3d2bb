// A relay between a gateway and PostgreSQL that understands the messages of their protocol. It loses, holds back or
// repeats the messages that a test names.
//
//   const relay = await PgRelay.start(postgres, t);           relay.url for the gateway
//   const rule = relay.order("cut", { from: "server", at: 3, of: "commit_v101" });
//   await rule.struck;
//   relay.hold("server"); relay.pass(); relay.refuse(); relay.accept();
//   relay.delayMs = 50;    delays each message of the server, after the delay of the one before; 0: no delay
//
// An order counts the messages of one direction from then on, on all connections or on those that have sent a text. It
// strikes once, at the n-th of them:
//
//   cut      the message is lost, and the connection with it
//   tear     half of the message arrives, then the connection ends
//   drop     the message is lost without a sign
//   stall    this message and those after it in its direction wait for pass()
//   double   the message's statement is sent, and sent again on the relay's own connection
//   ghost    the connection ends, and its statement is not sent; pass() sends it to the server
import net from "node:net";

import { freePort, sleep } from "./gateway.mjs";

const SSL_REQUEST = 80877103, GSS_REQUEST = 80877104, PROTOCOL_3 = 196608;
const ENDS_STATEMENT = new Set(["S", "Q"]); // Sync, Query
const READY = "Z";

/** Splits bytes into whole messages. */
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
class Direction {
  constructor(target) { Object.assign(this, { target, held: false, waiting: [] }); }

  send(bytes, delayMs) {
    if (this.held) this.waiting.push(bytes);
    else if (!delayMs && !this.late) this.target.write(bytes);
    else this.#sendLate(bytes, delayMs);
  }

  /** Sends after the messages that are already delayed, so that their order stays. */
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
    Object.assign(this, { relay, client, server, sentText: "", statement: [], statements: 0, lost: false });
    this.directions = { client: new Direction(server), server: new Direction(client) };
    for (const from of ["client", "server"]) if (relay.held.has(from)) this.directions[from].held = true;
    this.#listen("client", client, new Messages({ startup: true }));
    this.#listen("server", server, new Messages({ startup: false }));
  }

  #listen(from, socket, messages) {
    socket.setNoDelay(true);
    socket.on("data", (bytes) => {
      for (const message of messages.take(bytes)) if (!this.lost) this.#on(from, message);
      const { target } = this.directions[from];
      if (target.writableNeedDrain) {
        socket.pause();
        target.once("drain", () => socket.resume());
      }
    });
    socket.on("error", () => {}).on("close", () => this.#ended(from));
  }

  /** One side has closed its connection: closes the other side after the messages that were sent. Does nothing while this
   *  direction is held. */
  #ended(from) {
    if (!this.directions[from].held) this.end();
  }

  #on(from, message) {
    const { type, bytes } = message;
    if (from === "client") {
      if (type === `${SSL_REQUEST}` || type === `${GSS_REQUEST}`) return void this.client.write("N");
      if (type === `${PROTOCOL_3}`) this.startup = bytes;
      else this.#remember(type, bytes);
    }
    const rule = this.relay.rule(this, from);
    if (rule === "cut" || rule === "tear") return this.#lose(from, rule === "tear" ? bytes : undefined);
    if (rule === "drop") return;
    if (rule === "stall") this.directions[from].held = true;
    if (rule === "double" || rule === "ghost") this.fault = rule;
    if (this.fault !== "ghost" || from === "server") this.directions[from].send(bytes, from === "server" ? this.relay.delayMs : 0);
    if (from === "client" && ENDS_STATEMENT.has(type)) this.#endStatement();
  }

  #remember(type, bytes) {
    if (!this.sentText.includes(bytes.toString("latin1"))) this.sentText = (this.sentText + bytes.toString("latin1")).slice(-65536);
    this.statement.push(bytes);
  }

  /** Handles a complete statement: a "double" repeats it, a "ghost" keeps it for pass(). */
  #endStatement() {
    this.statements++;
    const statement = Buffer.concat(this.statement.splice(0)), { fault } = this;
    this.fault = undefined;
    if (fault === "double") this.relay.execute(this.startup, statement);
    if (fault !== "ghost") return;
    this.relay.ghosts.push(() => this.relay.execute(this.startup, statement));
    this.end();
  }

  #lose(from, bytes) {
    if (bytes) this.directions[from].target.write(bytes.subarray(0, bytes.length / 2));
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
      connections: new Set(), rules: [], ghosts: [], held: new Set(), repeated: 0, messages: { client: 0, server: 0 } });
  }

  /** { from: "client" or "server"; at: n; of: a text that the connection has sent } */
  order(what, { from = "client", at = 1, of = "" } = {}) {
    const rule = { what, from, left: at, of, seen: 0 };
    rule.struck = new Promise((resolve) => { rule.strike = resolve; });
    this.rules.push(rule);
    return rule;
  }

  /** Removes all orders. */
  forget() { this.rules = []; }

  /** Called by connections for each message: returns the order that strikes it, or undefined. */
  rule(connection, from) {
    this.messages[from]++;
    for (const rule of this.rules) {
      if (rule.from !== from || !connection.sentText.includes(rule.of) || --rule.left > 0) continue;
      this.rules.splice(this.rules.indexOf(rule), 1);
      rule.strike(connection);
      return rule.what;
    }
    return undefined;
  }

  /** Executes a statement on the relay's own connection, and waits for its end. */
  async execute(startup, statement) {
    const socket = net.connect(this.target).on("error", () => {}), messages = new Messages({ startup: false });
    let ready = 0;
    socket.write(startup);
    for await (const bytes of socket) {
      for (const { type } of messages.take(bytes)) {
        if (type !== READY) continue;
        if (++ready === 2) return void this.repeated++;
        socket.write(statement);
      }
    }
  }

  /** Holds a direction, or both, on every connection. */
  hold(from) {
    for (const one of from ? [from] : ["client", "server"]) {
      this.held.add(one);
      for (const { directions } of this.connections) directions[one].held = true;
    }
  }

  /** Sends held messages and kept statements, and ends connections of which one side has closed. */
  pass() {
    this.held.clear();
    for (const { directions } of this.connections) for (const direction of Object.values(directions)) direction.pass();
    for (const connection of [...this.connections])
      if (connection.client.destroyed || connection.server.destroyed) connection.end();
    return Promise.all(this.ghosts.splice(0).map((ghost) => ghost()));
  }

  /** Ends all connections, and accepts no new ones. */
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
