// runcast-bench counts what was sent, what came and what did not, and says what it cannot measure.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { keys, startGateway, temporaryFolder, until } from "../support/js/gateway.mjs";

const folder = path.dirname(path.resolve(process.env.GATEWAY_BIN ?? "build-asan/runcast"));
const SUBSCRIBERS = 20, RATE = 20;

/** What the program says, and the JSON of what it has measured. */
function bench(...words) {
  return new Promise((resolve) => {
    execFile(path.join(folder, "runcast-bench"), words, { env: { PATH: process.env.PATH, RUNCAST_METRICS_TOKEN: keys.prod } }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stderr, figures: stdout.startsWith("{") ? JSON.parse(stdout) : null }));
  });
}

const fanout = (gateway, ...words) => bench("fanout", "--json", "--url", gateway.url, "--key", keys.prod, "--pid", String(gateway.pid),
  "--subscribers", String(SUBSCRIBERS), "--rate", String(RATE), "--seconds", "1", ...words);

/** The floor, until the test is over. */
async function startFloor(t, ...words) {
  const port = await new Promise((resolve) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
  const floor = spawn(path.join(folder, "runcast-floor"), ["--port", String(port), ...words], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => floor.kill());
  let said = "";
  floor.stdout.on("data", (chunk) => said += chunk);
  await until(() => said.includes("listens"), { what: "the floor that listens" });
  return { url: `http://127.0.0.1:${port}`, pid: floor.pid };
}

const ways = [["--transport", "ws"], ["--encoding", "msgpack"], ["--transport", "sse"], ["--transport", "longpoll"], ["--topic", "all"],
  ["--topic", "batch"], ["--topic", "run", "--runs", "4"], ["--by", "batch", "--topic", "all"], ["--burst", "4"], ["--ahead", "2"], ["--pad", "1000"]];

describe("every change reaches all who listen", { concurrency: 4 }, () => {
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
      if (words.includes("--pad")) assert.ok(figures.frame_bytes > 1000);
    });
});

test("bursts that nobody hears of are measured in turn with those that are heard", async (t) => {
  const gateway = await startGateway({ t });
  const { code, stderr, figures } = await fanout(gateway, "--interleave", "--seconds", "2");
  assert.equal(code, 0, stderr);
  assert.equal(figures.lost, 0);
  assert.equal(figures.rows, RATE * SUBSCRIBERS, "of two seconds, half");
  assert.ok(figures.bursts_apart > RATE && figures.change_us > 0, JSON.stringify(figures));
});

test("from a commit to its last frame takes longer than the commit", async (t) => {
  const gateway = await startGateway({ t, env: { RUNCAST_METRICS_TOKEN: keys.prod } });
  const { figures } = await fanout(gateway);
  assert.ok(figures.commit_to_write_us > 0 && figures.turns > 0, JSON.stringify(figures));
  assert.ok(figures.commit_to_write_us < figures.ack_max_us * 2);
});

/** Passes on what both say, and cuts one of those who come at its first frame behind the answer to
 *  the upgrade and to its subscription. */
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

test("a subscriber that is cut off is counted, and what it has missed is lost", async (t) => {
  const gateway = await startGateway({ t });
  const { code, figures } = await fanout(await startRelay(t, gateway));
  assert.equal(figures.closed, 1);
  assert.ok(figures.lost > 0, JSON.stringify(figures));
  assert.equal(code, 1);
});

test("the floor is measured in the same way, also through its ring", async (t) => {
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

test("requests are measured beside SQLite alone", async (t) => {
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

test("what cannot be measured is refused before anything is made", async (t) => {
  const gateway = await startGateway({ t });
  const wrong = [
    [["--subscribers", "0"], /--subscribers is from 1 to 19000/],
    [["--transport", "pigeon"], /'pigeon' is none of ws, longpoll, sse/],
    [["--topic", "none"], /'none' is none of tag, run, batch, all/],
    [["--encoding", "xml"], /'xml' is none of json, msgpack/],
    [["--pad", "300000"], /--pad is at most \d+/],
    [["--runs", "100000000"], /more pairs than the bench keeps/],
    [["--rate", "-1"], /'-1' is no number from 0/],
    [["--speed", "1"], /unknown option '--speed'/],
    [["--key", ""], /a secret key is needed/],
  ];
  for (const [words, message] of wrong) {
    const { code, stderr } = await fanout(gateway, ...words);
    assert.equal(code, 1, words.join(" "));
    assert.match(stderr, message);
  }
  assert.equal(await gateway.metric("runcast_runs"), 0);
});
