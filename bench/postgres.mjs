// postgres.mjs - the cost of PostgreSQL as the database: triggers, an idle gateway, a start.
//
//   node bench/postgres.mjs BUILD        BUILD: a Release build directory
//
// ROUNDS   how often; medians are printed (3)
// SECONDS  of each load of triggers (5)
// RUNS     unfinished ones that a start loads (100000)
// TMPDIR   on the disk on which to measure both databases
//
// Each round takes these in turn, in one PostgreSQL with fsync on, on one machine:
//
//   sqlite  triggers on 64 connections to a gateway on SQLite
//   pg      the same on PostgreSQL, and the mean number of commits per group
//   bare    the same runs by commit_v101 alone, which the gateway calls, in groups of that size, from a
//           session of the server: no network, no HTTP, no waiting client. The groups are prepared
//           before the clock starts
//
// Both gateways begin with an empty database in each round, as writing gets slower when indexes grow.
// Vacuum is off: an automatic one would slow down one of them and not another. A start lasts from
// taking the lead to ready, by the gateway's log; the median of five counts.
//
// Exits with status 1 if a target is missed.
import { execFileSync } from "node:child_process";
import path from "node:path";

import { keys, sleep, startGateway, temporaryFolder } from "../tests/support/js/gateway.mjs";
import { PgRelay } from "../tests/support/js/pg_relay.mjs";
import { onDatabase, startPostgres } from "../tests/support/js/postgres.mjs";
import { triggerWaiting } from "./waiting_runs.mjs";

const [build = "build"] = process.argv.slice(2);
const { ROUNDS = 3, SECONDS = 5, RUNS = 100_000 } = process.env;
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const connections = 64, payloadBytes = 512, idleS = 20;

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const postgres = await startPostgres({ settings: { shared_buffers: "256MB", max_wal_size: "4GB", autovacuum: "off" } });

/** Runs per second, and runs per group. */
async function trigger(settings) {
  const gateway = await startGateway({ release: true, data: path.join(temporaryFolder(), "data"), ...settings });
  const samples = async () => Promise.all(["runcast_store_commits_total{result=\"ok\"}", "runcast_store_commit_groups_total"].map((name) => gateway.metric(name)));
  const before = await samples();
  const said = execFileSync(path.resolve(build, "runcast-bench"), ["trigger", "--url", gateway.url, "--concurrency", `${connections}`, "--seconds", `${SECONDS}`,
    "--payload", `${payloadBytes}`, "--json"], { encoding: "utf8", env: { ...process.env, TRIGGER_SECRET_KEY: keys.prod } });
  const [commits, groups] = (await samples()).map((value, i) => value - before[i]);
  const { per_second: perSecond, failed } = JSON.parse(said);
  if (failed) throw new Error(`${failed} triggers were refused`);
  await gateway.stop();
  return { perSecond, groupSize: commits / groups };
}

/** Prepares that many groups of new runs like the newest one: the function's arguments, in a table. */
function prepareGroups(schema, size, groups) {
  postgres.query(`SET search_path = ${schema};
    CREATE TABLE bench_place AS SELECT m.me, e.env, e.task FROM join_v101('bare', '', '', 1, '{}', 2) AS m(me),
      (SELECT env, task FROM run ORDER BY id DESC LIMIT 1) e;
    CREATE UNLOGGED TABLE bench_group (n int, requests commit_request_v101[], runs commit_run_v101[]);
    ALTER TABLE bench_group ALTER requests SET STORAGE EXTERNAL, ALTER runs SET STORAGE EXTERNAL;
    WITH model AS (SELECT r.id, to_jsonb(r) || jsonb_build_object('payload', p.body, 'payload_type', p.type, 'head', 1, 'expected', 0,
        'again', false, 'marks', 0, 'puts', 1, 'bytes', 2048, 'task_at', 1) AS shape
      FROM run r JOIN run_payload p USING (env, id) ORDER BY r.id DESC LIMIT 1)
    INSERT INTO bench_group SELECT n,
      array_agg(ROW((shape->>'created_at')::bigint, 0, '\\x00')::commit_request_v101),
      array_agg(jsonb_populate_record(NULL::commit_run_v101, shape || jsonb_build_object('queue_position', (shape->>'queue_position')::bigint + n * ${size} + i,
        'id', substring(id FOR octet_length(id) - 8) || convert_to(lpad(to_hex(n * ${size} + i), 8, '0'), 'UTF8'))) ORDER BY i)
    FROM model, generate_series(1, ${groups}) n, generate_series(1, ${size}) i GROUP BY n;
    ANALYZE bench_group`);
}

/** Writes and commits the groups. Returns how many seconds it took. */
function writeGroups(schema, { groups, size }) {
  postgres.query(`CREATE PROCEDURE ${schema}.bench_commit() LANGUAGE plpgsql AS $$
    DECLARE
      place ${schema}.bench_place; my_term bigint; answer bytea; group_ ${schema}.bench_group;
    BEGIN
      SELECT * INTO place FROM ${schema}.bench_place;
      SELECT led_term INTO my_term FROM ${schema}.lead_v101(place.me, '{0}', '{}', '{}', '{}', '{}') LIMIT 1;
      COMMIT;
      FOR at IN 1 .. ${groups} LOOP
        SELECT * INTO group_ FROM ${schema}.bench_group WHERE n = at;
        answer := ${schema}.commit_v101(place.me * 16, at, 'on', 0, ARRAY[place.env], ARRAY[my_term], ARRAY[place.env], ARRAY[place.task],
          group_.requests, '{}', group_.runs, '{}');
        IF right(encode(answer, 'escape'), ${size}) <> repeat('o', ${size}) THEN
          RAISE 'commit_v101 answers %', answer;
        END IF;
        COMMIT;
      END LOOP;
    END $$`);
  const began = process.hrtime.bigint();
  postgres.query(`CALL ${schema}.bench_commit()`);
  return Number(process.hrtime.bigint() - began) / 1e9;
}

/** Runs per second that the function writes, in groups of a size. */
function bare(schema, groupSize, count) {
  const size = Math.max(1, Math.round(groupSize)), groups = Math.ceil(count / size);
  prepareGroups(schema, size, groups);
  return size * groups / writeGroups(schema, { groups, size });
}

async function fill(settings) {
  const gateway = await startGateway({ release: true, ...settings });
  await triggerWaiting(gateway, RUNS, payloadBytes);
  await gateway.stop();
}

/** Seconds from the lead to ready. */
async function start(settings) {
  const gateway = await startGateway({ release: true, ...settings });
  const [leads, ready] = ["leads", "ready"].map((event) => Date.parse(JSON.parse(gateway.stderr.split("\n").find((line) => line.includes(`"event":"${event}"`))).time));
  await gateway.stop();
  return (ready - leads) / 1000;
}

async function inTurn(times, run) {
  const values = [];
  for (let i = 0; i < times; i++) values.push(await run());
  return values;
}

/** Statements per second of an idle gateway, counted by the relay between it and the database. */
async function idle(relay) {
  const count = () => [...relay.connections].reduce((sum, { statements }) => sum + statements, 0);
  await sleep(10_000); // a start's own work has finished by then
  const before = count();
  await sleep(idleS * 1000);
  return (count() - before) / idleS;
}

let missed = 0;
function row(label, value, unit, better, target) {
  const met = better === "<=" ? value <= target : value >= target, verdict = target === undefined ? "" : met ? "met" : "MISSED";
  missed += verdict === "MISSED";
  console.log(`${label.padEnd(52)} ${value.toFixed(unit === "/s" ? 0 : 2).padStart(10)} ${unit.padEnd(4)} ${target === undefined ? "" : `${better} ${target}`}  ${verdict}`.trimEnd());
}

const rounds = [];
for (let round = 0; round < ROUNDS; round++) {
  const schema = `round_${round}`;
  const sqlite = await trigger({}), pg = await trigger(onDatabase(postgres, "bench", { options: ["--database-schema", schema] }));
  rounds.push({ sqlite: sqlite.perSecond, pg: pg.perSecond, size: pg.groupSize, bare: bare(schema, pg.groupSize, RUNS / ROUNDS) });
}
const all = (of) => median(rounds.map(of));
row("triggers on SQLite", all(({ sqlite }) => sqlite), "/s");
row("triggers on PostgreSQL", all(({ pg }) => pg), "/s");
row("commits of a group", all(({ size }) => size), "");
row("runs by commit_v101 alone, groups of that size", all(({ bare }) => bare), "/s");
row("PostgreSQL by commit_v101 alone, of one round", all(({ pg, bare }) => pg / bare), "");
row("PostgreSQL by SQLite, of one round", all(({ pg, sqlite }) => pg / sqlite), "", ">=", 0.5);

const starts = onDatabase(postgres, "bench", { options: ["--database-schema", "starts"] });
await fill(starts);
row(`from the lead to ready, ${RUNS} unfinished runs`, median(await inTurn(5, () => start(starts))), "s", "<=", 1);

const relay = await PgRelay.start(postgres);
const gateway = await startGateway({ release: true, ...onDatabase(postgres, "bench", { url: relay.url }) });
row("statements a second of an idle gateway", await idle(relay), "", "<=", 1.2);
await gateway.stop();
await postgres.stop("immediate");
process.exit(missed ? 1 : 0);
