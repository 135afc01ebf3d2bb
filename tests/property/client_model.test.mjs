// The client for pages (src/web/client) in random histories with a model of the gateway. Connections are cut with frames in
// flight, gateways restart or drain, and filters open and close. Whenever a mirror is in sync, it must equal the state of
// the gateway at that position. HISTORIES=5000 tests more histories.
import assert from "node:assert/strict";
import { test } from "node:test";

import { connect } from "../../src/web/client/client.js";
import { ModelGateway } from "../support/js/model_gateway.mjs";
import { chooseSeed, Random } from "../support/js/random.mjs";
import { Script } from "../support/js/scripted_gateway.mjs";

const histories = Number(process.env.HISTORIES ?? 300), steps = 600;
const tags = ["a", "b", "c"];

class History {
  constructor(script, seed) {
    this.random = new Random(seed);
    this.script = script;
    this.gateway = new ModelGateway(this.random);
    this.mirrors = new Map(); // mirror -> filter
    this.counts = { synced: 0, listed: 0, gaps: 0, drains: 0, takenOver: 0 };
    const { gateway } = this;
    const WebSocket = class extends script.WebSocket {
      constructor(...address) {
        super(...address);
        gateway.accept(this);
      }
    };
    for (let i = 0; i < 6; i++) gateway.create([tags[i % 3]]);
    this.client = connect("http://runs.test", { token: "secret", WebSocket });
    this.client.on("state", () => { if (this.client.error?.code === 1011) this.wrong ??= this.client.error; }); // the client did not understand a message
  }

  watch() {
    const { random, gateway } = this, request = { filter: { odd: random.below(2) }, limit: 1 + random.below(5) };
    const mirror = this.client.watch(request.filter, { limit: request.limit });
    this.mirrors.set(mirror, request);
    mirror.on("synced", (seq) => {
      this.counts.listed++;
      try { assert.deepEqual([...mirror.runs.values()], gateway.lists.get(`${seq} ${JSON.stringify(request)}`)); } catch (error) { this.wrong ??= error; }
    });
  }

  subscribe() {
    const { random, gateway } = this;
    const filter = random.chance(0.3) ? { run: random.pick([...gateway.runs.keys()]) } : random.chance(0.2) ? { all: true }
      : { tags: random.some(tags, 2) };
    const mirror = this.client.subscribe(filter);
    this.mirrors.set(mirror, filter);
    mirror.on("synced", (seq) => {
      this.counts.synced++;
      try { gateway.check(filter, mirror.runs, seq); } catch (error) { this.wrong ??= error; }
    });
    mirror.on("gap", ({ skipped }) => { this.counts.gaps += skipped; });
  }

  step() {
    if (this.wrong) throw this.wrong;
    const { random, gateway, script } = this, links = [...gateway.links];
    const link = links.length ? random.pick(links) : undefined;
    switch (random.weighted({ change: 30, create: 3, tag: 4, ask: 2, leave: 0.7, cut: 1.5, restart: 0.3, drain: 0.7, close: 0.7, visit: 27, deliver: 30, time: 3 })) {
      case "change": gateway.change(random.pick([...gateway.runs.values()]), { [random.pick(["status", "durationMs", "metadata", "output"])]: gateway.seq }); break;
      case "create": gateway.create(random.some(tags, 2)); break;
      case "tag": gateway.change(random.pick([...gateway.runs.values()]), { metadata: gateway.seq }, random.pick(tags)); break;
      case "ask": if (this.mirrors.size < 5) random.chance(0.3) ? this.watch() : this.subscribe(); break;
      case "leave": {
        const [mirror] = this.mirrors.size ? random.pick([...this.mirrors]) : [];
        this.mirrors.delete(mirror);
        mirror?.close();
        break;
      }
      case "cut": link?.end(1006); break;
      case "restart": gateway.restart(random.chance(0.2) ? `e${gateway.seq}` : undefined); break;
      case "drain":
        link?.drain();
        this.counts.drains++;
        break;
      case "close": if (links.length > 1) links[0].end(4200); break;
      case "visit": link?.visit(1 + random.below(4)); break;
      case "deliver": link?.deliver(); break;
      default: script.advance(random.below(600));
    }
    if (links.length === 2 && gateway.links.size === 1 && links[0].socket.isClosed && !links[0].frames.length) this.counts.takenOver++;
  }

  /** Delivers all frames, and asserts that each mirror equals the state of the gateway. */
  settle() {
    const { gateway, script } = this;
    for (let i = 0; i < 400; i++) {
      if (!gateway.links.size || i % 50 === 0) script.advance(31_000 * !gateway.links.size);
      for (const link of gateway.links) {
        link.visit(3);
        link.deliver();
      }
    }
    for (const [mirror, filter] of this.mirrors) {
      assert.equal(mirror.state, "live");
      if (filter.limit) {
        assert.deepEqual([...mirror.runs.keys()], gateway.listed(filter).map(({ id }) => id));
        continue;
      }
      gateway.check(filter, mirror.runs, gateway.seq);
      const has = [...gateway.runs.values()].filter(({ id, tags: own }) => (filter.run ? filter.run === id : filter.all || filter.tags.every((tag) => own[tag])));
      assert.deepEqual([...mirror.runs.keys()].sort(), has.map(({ id }) => id).sort());
    }
    this.client.close();
  }
}

test(`${histories} histories end in sync, and each mirror equals the gateway's state whenever it is in sync`, (t) => {
  const first = chooseSeed(t), script = new Script(t), total = { synced: 0, listed: 0, gaps: 0, drains: 0, takenOver: 0 };
  for (let i = 0; i < histories; i++) {
    const history = new History(script, first + i);
    try {
      for (let step = 0; step < steps; step++) history.step();
      history.settle();
    } catch (error) {
      error.message = `seed ${first + i}: ${error.message}`;
      throw error;
    }
    script.sockets.length = 0;
    for (const [name, count] of Object.entries(history.counts)) total[name] += count;
  }
  t.diagnostic(JSON.stringify(total));
  assert.ok(total.synced > histories * 20 && total.listed > histories * 5 && total.gaps > histories && total.takenOver > 10, JSON.stringify(total));
});
