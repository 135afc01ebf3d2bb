// Runs a command whose gateways each have their own database in one PostgreSQL:
//
//   node tests/support/js/with_postgres.mjs node --test tests/integration/queues.test.mjs
//
// Its fsync is off, since other tests are about syncs (database_faults, durability).
import { spawn } from "node:child_process";

import { startPostgres } from "./postgres.mjs";

const [program, ...args] = process.argv.slice(2);
const postgres = await startPostgres({ settings: { fsync: "off", max_connections: 400, max_wal_size: "1GB" } });
const GATEWAY_DATABASE = postgres.url.replace("runcast@", "postgres@").replace(/\/runcast$/, "");
const child = spawn(program, args, { stdio: "inherit", env: { ...process.env, GATEWAY_DATABASE } });
const status = await new Promise((resolve) => child.on("exit", (code) => resolve(code ?? 1)));
await postgres.stop("immediate");
process.exit(status);
