// runcast-bench counts what was sent, what arrived and what is missing, and reports what it cannot measure.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";

const folder = path.dirname(path.resolve(process.env.GATEWAY_BIN ?? "build-asan/runcast"));
const SUBSCRIBERS = 20, RATE = 20;

/** Output of the program, and the JSON of what it measured. */
function bench(...words) {
  return new Promise((resolve) => {
    execFile(path.join(folder, "runcast-bench"), words, { env: { PATH: process.env.PATH, RUNCAST_METRICS_TOKEN: keys.prod } }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stderr, figures: stdout.startsWith("{") ? JSON.parse(stdout) : null }));
  });
}

const fanout = (gateway, ...words) => bench("fanout", "--json", "--url", gateway.url, "--key", keys.prod, "--pid", String(gateway.pid),
  "--subscribers", String(SUBSCRIBERS), "--rate", String(RATE), "--seconds", "1", ...words);

/** Runs the floor (the bench's own server) until the test ends. */
async function startFloor(t, ...words) {
  const port = await freePort();
  const floor = spawn(path.join(folder, "runcast-floor"), ["--port", String(port), ...words], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => floor.kill());
  let said = "";
  floor.stdout.on("data", (chunk) => said += chunk);
  await until(() => said.includes("listens"), { what: "the floor that listens (with --ring where io_uring is allowed)" });
  return { url: `http://127.0.0.1:${port}`, pid: floor.pid };
}

/** Checks of the figures that show an option's effect. */
const marks = {
  msgpack: ({ encoding, frame_bytes }) => encoding === "msgpack" && frame_bytes < 140,
  "--burst": ({ frames_per_read }) => frames_per_read > 1,
  "--pad": ({ frame_bytes }) => frame_bytes > 1000,
  "--by": ({ frame_bytes }) => frame_bytes > 300, // frames carry whole runs
};
const ways = [["--transport", "ws"], ["--encoding", "msgpack"], ["--transport", "sse"], ["--transport", "longpoll"], ["--topic", "all"],
  ["--topic", "batch"], ["--topic", "run", "--runs", "4"], ["--by", "batch", "--topic", "all"], ["--burst", "4"], ["--ahead", "2"], ["--pad", "1000"]];

describe("every change reaches every subscriber", { concurrency: 4 }, () => {
  for (const words of ways)
    test(words.join(" "), async (t) => {
      const gateway = await startGateway({ t });
      const { code, stderr, figures } = await fanout(gateway, ...words);
      assert.equal(code, 0, stderr);
      assert.equal(figures.lost, 0);
      assert.equal(figures.closed, 0);
      assert.equal(figures.changes, RATE);
      const heardBy = words.includes("run") ? SUBSCRIBERS / 4 : SUBSCRIBERS;
      assert.equal(figures.rows + figures.conflated, RATE * heardBy);
      assert.ok(figures.cpu_us_per_frame > 0 && figures.latency_p50_us > 0 && figures.connect_us > 0);
      for (const name of ["topic", "transport"])
      if (words.includes(`--${name}`)) assert.equal(figures[name], words[words.indexOf(`--${name}`) + 1]);
    for (const [word, isSo] of Object.entries(marks)) if (words.includes(word)) assert.ok(isSo(figures), JSON.stringify(figures));
    });
});

test("bursts without subscribers are measured in turn with those that have some", async (t) => {
  const gateway = await startGateway({ t });
  const { code, stderr, figures } = await fanout(gateway, "--interleave", "--rate", "8", "--seconds", "3");
  assert.equal(code, 0, stderr);
  assert.equal(figures.lost, 0);
  assert.equal(figures.rows, 8 * 3 / 2 * SUBSCRIBERS);
  assert.ok(figures.bursts_apart > 12 && figures.change_us > 0, JSON.stringify(figures));
  const few = await fanout(gateway, "--interleave", "--rate", "1", "--seconds", "1");
  assert.match(few.stderr, /too few bursts/);
  assert.equal(few.figures.fanout_us_per_frame, undefined);
});

test("the time from a commit to its last frame agrees with the gateway's own metrics", async (t) => {
  const gateway = await startGateway({ t, env: { RUNCAST_METRICS_TOKEN: keys.prod } });
  const times = async () => {
    const all = [];
    for (const name of ["runcast_store_commit_seconds", "runcast_change_to_write_seconds"])
      all.push([await gateway.metric(`${name}_sum`), await gateway.metric(`${name}_count`)]);
    return all;
  };
  let said, own, turns, tries = 0;
  do { // the bench leaves out its first changes, which are slow on a busy machine
    const before = await times(), { figures } = await fanout(gateway, "--pid", "0"), after = await times();
    own = after.map(([sum, count], i) => 1e6 * (sum - before[i][0]) / (count - before[i][1])).reduce((sum, us) => sum + us, 0);
    [said, turns] = [figures.commit_to_write_us, figures.turns];
  } while (Math.abs(said / own - 1) >= 0.2 && ++tries < 5);
  assert.ok(Math.abs(said / own - 1) < 0.2, `${said} of ${own}`);
  assert.ok(turns > 0);
});

test("without the gateway's metrics token its metrics are left out, and the bench says so", async (t) => {
  const gateway = await startGateway({ t, env: { RUNCAST_METRICS_TOKEN: `${keys.prod}_another` } });
  const { code, stderr, figures } = await fanout(gateway);
  assert.equal(code, 0);
  assert.match(stderr, /RUNCAST_METRICS_TOKEN is not the token of this gateway/);
  assert.equal(figures.turns, undefined);
});

/** A relay that cuts one subscriber at its first frame after the responses to its upgrade and its subscription. */
async function startRelay(t, gateway) {
  const { hostname, port } = new URL(gateway.url);
  let upgrades = 0;
  const relay = net.createServer((client) => {
    const server = net.connect(port, hostname);
    let isVictim = false, said = 0;
    client.on("data", (chunk) => {
      if (chunk.includes("upgrade: websocket") || chunk.includes("Upgrade: websocket")) isVictim = ++upgrades === 3;
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (isVictim && chunk.includes("run_") && ++said > 1) client.destroy();
      else client.write(chunk);
    });
    for (const [one, other] of [[client, server], [server, client]]) one.on("error", () => {}).on("close", () => other.destroy());
  }).listen(0, "127.0.0.1");
  t.after(() => relay.close());
  await until(() => relay.address(), { what: "a relay" });
  return { url: `http://127.0.0.1:${relay.address().port}`, pid: gateway.pid };
}

test("a subscriber that is cut off is counted, and what it missed counts as lost", async (t) => {
  const gateway = await startGateway({ t });
  const { code, figures } = await fanout(await startRelay(t, gateway));
  assert.equal(figures.closed, 1);
  assert.ok(figures.lost > 0, JSON.stringify(figures));
  assert.equal(code, 1);
});

test("the floor is measured in the same way, also through io_uring", async (t) => {
  for (const words of [[], ["--ring"]]) {
    const floor = await startFloor(t, ...words);
    const { code, stderr, figures } = await bench("fanout", "--json", "--floor", "--url", floor.url, "--pid", String(floor.pid),
      "--subscribers", String(SUBSCRIBERS), "--rate", String(RATE), "--seconds", "1", "--frame-bytes", "512");
    assert.equal(code, 0, stderr);
    assert.equal(figures.lost, 0);
    assert.equal(figures.frames, RATE * SUBSCRIBERS);
    assert.equal(figures.frame_bytes, 512);
    assert.ok(figures.cpu_us_per_frame > 0 && figures.floor_us_per_frame > 0);
  }
});

test("requests are measured, and then SQLite alone", async (t) => {
  const data = path.join(temporaryFolder(), "data");
  const gateway = await startGateway({ t, data });
  const common = ["--json", "--url", gateway.url, "--key", keys.prod, "--pid", String(gateway.pid)];
  const triggers = await bench("trigger", ...common, "--count", "100", "--concurrency", "4");
  assert.equal(triggers.code, 0, triggers.stderr);
  assert.equal(triggers.figures.runs, 100);
  const retrieves = await bench("retrieve", ...common, "--seconds", "0.5", "--concurrency", "4");
  assert.equal(retrieves.code, 0, retrieves.stderr);
  assert.ok(retrieves.figures.requests > 0);
  const { figures } = await fanout(gateway);
  assert.ok(figures.changes > 0);
  await gateway.stop();
  for (const words of [["--rate", "40"], ["--group", "8"]]) {
    const bare = await bench("bare", "--json", "--database", path.join(data, "runcast.db"), "--seconds", "0.5", ...words);
    assert.equal(bare.code, 0, bare.stderr);
    assert.ok(bare.figures.latency_p50_us > 0 && bare.figures.latency_mean_us > 0);
  }
});

test("options that cannot be measured are refused before anything is created", async (t) => {
  const gateway = await startGateway({ t });
  const wrong = [
    [["--subscribers", "0"], /--subscribers is from 1 to 19000/],
    [["--transport", "pigeon"], /'pigeon' is none of ws, longpoll, sse/],
    [["--topic", "none"], /'none' is none of tag, run, batch, all/],
    [["--encoding", "xml"], /'xml' is none of json, msgpack/],
    [["--pad", "300000"], /--pad is at most \d+/],
    [["--runs", "100000000"], /more pairs than the bench keeps/],
    [["--rate", "-1"], /'-1' is no number from 0/],
    [["--pid", "-1"], /--pid: -1 is no process/],
    [["--floor", "--frame-bytes", "70000"], /--frame-bytes is from 0 to 65536/],
    [["--floor", "--runs", "5"], /--runs are the gateway's/],
    [["--key", "tr_prod_nobody"], /is no secret key of this gateway/],
    [["--speed", "1"], /unknown option '--speed'/],
    [["--key", ""], /a secret key is needed/],
  ];
  for (const [words, message] of wrong) {
    const { code, stderr } = await fanout(gateway, ...words);
    assert.equal(code, 1, words.join(" "));
    assert.match(stderr, message);
  }
  for (const [words, message] of [[["--runs", "200000000"], /more pairs than the bench keeps/], [["--transport", "pigeon"], /'pigeon' is none of/]]) {
    const { code, stderr } = await bench("snapshot", "--url", gateway.url, "--key", keys.prod, ...words);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  assert.equal(await gateway.metric("runcast_runs"), 0);
});
