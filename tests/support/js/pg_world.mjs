// A PostgreSQL, and a relay to it, for a test in C (tests/support/world/pg_world.h). Each line of standard input is an
// order; each line of output is its result, `ok …` or `error …`. Exits when its standard input closes.
import readline from "node:readline";

import { PgRelay } from "./pg_relay.mjs";
import { startPostgres } from "./postgres.mjs";

const postgres = await startPostgres();
const relay = await PgRelay.start(postgres);
let struck = 0;

const orders = {
  start: () => postgres.start(),
  stop: (mode) => postgres.stop(mode),
  kill: () => postgres.kill(),
  promote: () => postgres.restartPromoted(),
  readonly: (on) => postgres.readOnly(on === "on"),
  freeze: () => postgres.freeze(),
  continue: () => postgres.resume(),
  endbackends: (how, ...holding) => `${postgres.endBackends({ kill: how === "kill", holding: holding.join(" ") })}`,
  ask: (...sql) => postgres.query(sql.join(" ")).replaceAll("\n", ";"),
  order: (what, from, at, of) => {
    struck = 0;
    relay.forget();
    relay.order(what, { from, at: Number(at), of }).struck.then(() => { struck = 1; });
  },
  struck: () => `${struck}`,
  repeated: () => `${relay.repeated}`,
  forget: () => relay.forget(),
  hold: (from) => relay.hold(from),
  pass: () => relay.pass().then(() => ""),
  refuse: () => relay.refuse(),
  accept: () => relay.accept(),
};

console.log(`ok ${postgres.port} ${relay.port}`);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, ...words] = line.split(" ");
  try {
    const answer = await orders[name](...words);
    console.log(`ok ${typeof answer === "string" ? answer : ""}`);
  } catch (error) {
    console.log(`error ${`${error.stderr ?? ""}${error}`.replaceAll("\n", " ")}`);
  }
}
await postgres.stop("immediate");
process.exit(0);
