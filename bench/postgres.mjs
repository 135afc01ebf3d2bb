// What a database that is PostgreSQL costs: triggers, an idle gateway, and a start.
//
//   node bench/postgres.mjs BUILD        BUILD: a Release build directory
//
// ROUNDS   how often; the medians are printed (3)
// SECONDS  of each load of triggers (5)
// RUNS     unfinished, that a start loads (100000)
// TMPDIR   on the disk that both databases shall be measured on
//
// Each round takes in turn, in one PostgreSQL with fsync on and on one machine:
//
//   sqlite  triggers of 64 connections at a gateway on SQLite
//   pg      the same on PostgreSQL; how many commits a group had on average
//   bare    the same runs by commit_v1 alone, in groups of that size, from a session of the server: no
//           network, no HTTP, nobody who waits. What is written was prepared before the clock runs.
//           Then by commit_v2, which the gateway calls: what the function itself has become
//
// Both gateways begin with an empty database in each round, for writing gets dearer as indexes grow.
// Nobody vacuums meanwhile: what does so on its own would take from one of them and not from another.
// A start is from taking the lead to ready, by the gateway's log; the median of five.
// Ends with status 1 if a target is missed.
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

/** Runs a second; the runs of a group. */
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

/** New runs like the newest one, in so many groups: what a function takes of each, in a table. */
function prepareGroups(schema, size, groups) {
  postgres.ask(`SET search_path = ${schema};
    CREATE TABLE bench_place AS SELECT m.me, e.env, e.task FROM join_v1('bare', '', '', 1, '{}', 2) AS m(me),
      (SELECT env, task FROM run ORDER BY id DESC LIMIT 1) e;
    CREATE UNLOGGED TABLE bench_group (n int, requests commit_request_v1[], runs commit_run_v1[]);
    ALTER TABLE bench_group ALTER requests SET STORAGE EXTERNAL, ALTER runs SET STORAGE EXTERNAL;
    WITH model AS (SELECT r.id, to_jsonb(r) || jsonb_build_object('payload', p.body, 'payload_type', p.type, 'head', 1, 'expected', 0,
        'again', false, 'marks', 0, 'puts', 1, 'bytes', 2048, 'task_at', 1) AS shape
      FROM run r JOIN run_payload p USING (env, id) ORDER BY r.id DESC LIMIT 1)
    INSERT INTO bench_group SELECT n,
      array_agg(ROW((shape->>'created_at')::bigint, 0, '\\x00')::commit_request_v1),
      array_agg(jsonb_populate_record(NULL::commit_run_v1, shape || jsonb_build_object('queue_position', (shape->>'queue_position')::bigint + n * ${size} + i,
        'id', substring(id FOR octet_length(id) - 8) || convert_to(lpad(to_hex(n * ${size} + i), 8, '0'), 'UTF8'))) ORDER BY i)
    FROM model, generate_series(1, ${groups}) n, generate_series(1, ${size}) i GROUP BY n;
    ANALYZE bench_group`);
}

/** Writes and commits the groups from one on by a function, as a writer of its own. The seconds that it takes. */
function writeGroups(schema, name, { writer, first, groups, size }) {
  postgres.ask(`CREATE PROCEDURE ${schema}.bench_${name}() LANGUAGE plpgsql AS $$
    DECLARE
      place ${schema}.bench_place; my_term bigint; answer bytea; group_ ${schema}.bench_group;
    BEGIN
      SELECT * INTO place FROM ${schema}.bench_place;
      SELECT led_term INTO my_term FROM ${schema}.lead_v1(place.me, '{0}', '{}', '{}', '{}', '{}') LIMIT 1;
      COMMIT;
      FOR at IN 1 .. ${groups} LOOP
        SELECT * INTO group_ FROM ${schema}.bench_group WHERE n = at + ${first - 1};
        answer := ${schema}.${name}(place.me * 16 + ${writer}, at, 'on', 0, ARRAY[place.env], ARRAY[my_term], ARRAY[place.env], ARRAY[place.task],
          group_.requests, '{}', group_.runs, '{}');
        IF right(encode(answer, 'escape'), ${size}) <> repeat('o', ${size}) THEN
          RAISE '${name} answers %', answer;
        END IF;
        COMMIT;
      END LOOP;
    END $$`);
  const began = process.hrtime.bigint();
  postgres.ask(`CALL ${schema}.bench_${name}()`);
  return Number(process.hrtime.bigint() - began) / 1e9;
}

/** Runs a second that each function writes, in groups of a size. */
function bare(schema, groupSize, count) {
  const size = Math.max(1, Math.round(groupSize)), groups = Math.ceil(count / size);
  prepareGroups(schema, size, 2 * groups);
  const [v1, v2] = ["commit_v1", "commit_v2"].map((name, i) => size * groups / writeGroups(schema, name, { writer: i, first: 1 + i * groups, groups, size }));
  return { v1, v2 };
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

/** Statements a second of a gateway that has nothing to do, by what connects it to the database. */
async function idle(relay) {
  const count = () => [...relay.connections].reduce((sum, { statements }) => sum + statements, 0);
  await sleep(10_000); // what a start does by itself has been done
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
  rounds.push({ sqlite: sqlite.perSecond, pg: pg.perSecond, size: pg.groupSize, ...bare(schema, pg.groupSize, RUNS / ROUNDS) });
}
const all = (of) => median(rounds.map(of));
row("triggers on SQLite", all(({ sqlite }) => sqlite), "/s");
row("triggers on PostgreSQL", all(({ pg }) => pg), "/s");
row("commits of a group", all(({ size }) => size), "");
row("runs by commit_v1 alone, groups of that size", all(({ v1 }) => v1), "/s");
row("runs by commit_v2 alone", all(({ v2 }) => v2), "/s");
row("PostgreSQL by commit_v1 alone, of one round", all(({ pg, v1 }) => pg / v1), "", ">=", 0.8);
row("PostgreSQL by commit_v2 alone", all(({ pg, v2 }) => pg / v2), "");
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
