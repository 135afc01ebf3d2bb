// dashboard.mjs - how fast the dashboard is in a real browser: first paint, and time per frame.
//
// Frames are measured while thousands of changes a second reach its table, and while all runs and the
// logs of a run are scrolled.
//
//   node bench/dashboard.mjs BUILD        BUILD: a Release build directory; needs npm ci in
//                                         tests/conformance/browser, and Chromium
//
// RATE     changes per second (5000), SECONDS how long (6)
// RUNS     to scroll through (100000)
// LINES    of logs to scroll through (10000)
// ROUNDS   of first paints (9)
//
//   frame   from the first callback of an animation frame to the first task after it: drawing of
//           the rows, style, layout and painting. Work between frames is included in "busy", the
//           share of time in which the page's thread works. Browser, gateway and load share the
//           cores, so it is measured three times, and the median p99 is shown
//   CPU     of a frame: the processor time of the page's thread, in which other programs that
//           have the core are not included
//   paint   from the navigation to the first contentful paint, in its own context; an empty
//           page of another server and the dashboard take turns
//
// Exits with status 1 if a target is missed.
import { spawn } from "node:child_process";
import http from "node:http";
import path from "node:path";

import { startBrowser } from "../tests/conformance/browser/tab.mjs";
import { keys, startGateway, until } from "../tests/support/js/gateway.mjs";

const [build = "build"] = process.argv.slice(2);
const [rate, seconds, runs, lines, rounds] = [["RATE", 5000], ["SECONDS", 6], ["RUNS", 100_000], ["LINES", 10_000], ["ROUNDS", 9]].map(([name, usual]) => Number(process.env[name] ?? usual));
process.env.GATEWAY_BIN = process.env.GATEWAY_RELEASE_BIN = path.resolve(build, "runcast");
const pageLimit = 150_000, frameLimit = 16, paintLimit = 3, stutter = 50;

const gateway = await startGateway({ release: true });
const browser = await startBrowser();
const table = `${gateway.url}/projects/v3/${keys.ref}/runs?env=dev`;
const after = [];
const tab = { after: (end) => after.push(end) };
let missed = 0;

function row(name, value, target, isMet) {
  if (!isMet) missed = 1;
  console.log(`${name.padEnd(52)} ${value.padStart(34)}   ${target.padEnd(14)} ${isMet ? "" : "MISSED"}`.trimEnd());
}

/** Runs runcast-bench and returns its results. */
function load(...words) {
  return new Promise((resolve, reject) => {
    const child = spawn(path.resolve(build, "runcast-bench"), [...words, "--url", gateway.url, "--key", keys.dev, "--json"], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text) => { out += text; });
    child.on("error", reject).on("close", (code) => code ? reject(new Error(`runcast-bench ${words[0]} ends with ${code}`)) : resolve(JSON.parse(out)));
  });
}

const at = (sorted, share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)];
const median = (values) => at([...values].sort((a, b) => a - b), 0.5);

// ---- weight of the page ----

function weigh(target) {
  return new Promise((resolve, reject) => {
    http.get(gateway.url + target, { headers: { "accept-encoding": "gzip" } }, (answer) => {
      let bytes = 0;
      answer.on("data", (chunk) => { bytes += chunk.length; }).on("end", () => resolve(bytes));
      if (answer.headers["content-encoding"] !== "gzip") reject(new Error(`${target} is not compressed`));
    }).on("error", reject);
  });
}

async function measureWeight() {
  const { text } = await gateway.get("/", { key: null });
  const parts = ["/", ...[...text.matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g)].map(([, target]) => target)];
  const bytes = (await Promise.all(parts.map(weigh))).reduce((sum, one) => sum + one, 0);
  row("the whole page, gzipped", `${(bytes / 1000).toFixed(1)} KB`, "<= 150 KB", bytes <= pageLimit);
}

// ---- first paint ----

async function paint(address) {
  const { page, close } = await open(address);
  const ms = await page.evaluate(() => new Promise((resolve) => {
    new PerformanceObserver((list) => { for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime); }).observe({ type: "paint", buffered: true });
  }));
  await close();
  return ms;
}

async function measurePaint() {
  const server = http.createServer((request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>empty</title><p>empty"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const empty = [], dashboard = [];
  for (let round = 0; round <= rounds; round++) { // the first warms the browser up
    const pair = [await paint(`http://127.0.0.1:${server.address().port}/`), await paint(table)];
    if (!round) continue;
    empty.push(pair[0]);
    dashboard.push(pair[1]);
  }
  server.close();
  const ratio = median(dashboard) / median(empty);
  row("first paint of the table, and of an empty page", `${median(dashboard).toFixed(0)} ms, ${median(empty).toFixed(0)} ms: ${ratio.toFixed(2)} x`, "<= 3 x", ratio <= paintLimit);
}

// ---- time per frame ----

async function open(address) {
  const ends = [], { page } = await browser.open({ after: (end) => ends.push(end) }, "about:blank");
  await page.addInitScript((token) => sessionStorage.setItem("runcast.token", token), keys.pat);
  await page.goto(address);
  return { page, close: async () => { for (const end of ends) await end(); } };
}

/** Begins to trace frames; the returned function stops that and returns the sorted ms of processor time of all frames. */
async function traceFrames(devtools) {
  const found = [];
  devtools.on("Tracing.dataCollected", ({ value }) => {
    for (const { name, tdur } of value) if (name === "ProxyMain::BeginMainFrame" && tdur !== undefined) found.push(tdur / 1000);
  });
  await devtools.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["cc"] } });
  return async () => {
    const complete = new Promise((resolve) => devtools.once("Tracing.tracingComplete", resolve));
    await devtools.send("Tracing.end");
    await complete;
    return found.sort((a, b) => a - b);
  };
}

/** Begins to record frames; the returned function stops that and returns the figures. */
async function watchFrames(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const busy = async () => Object.fromEntries((await devtools.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  await page.evaluate(() => {
    const frames = window.frames_ = { work: [], gaps: [] };
    const channel = new MessageChannel();
    let begin, last;
    channel.port1.onmessage = () => frames.work.push(performance.now() - begin);
    const tick = (now) => {
      if (last !== undefined) frames.gaps.push(now - last);
      last = now;
      begin = performance.now();
      channel.port2.postMessage(0);
      if (!frames.isOver) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const cpuOfFrames = await traceFrames(devtools), before = await busy();
  return async () => {
    const now = await busy(), { work, gaps } = await page.evaluate(() => { window.frames_.isOver = true; return window.frames_; });
    const sorted = [...work].sort((a, b) => a - b), cpu = await cpuOfFrames();
    return { cpu: at(cpu, 0.99), count: work.length, half: at(sorted, 0.5), most: at(sorted, 0.99), longest: sorted.at(-1), stutters: gaps.filter((gap) => gap > stutter).length,
      busy: (now.TaskDuration - before.TaskDuration) / (now.Timestamp - before.Timestamp) };
  };
}

function rowOfFrames(name, { half, most, longest, busy, count, stutters, cpu }) {
  row(`${name}: a frame, p50, p99, longest`, `${half.toFixed(1)}, ${most.toFixed(1)}, ${longest.toFixed(1)} ms`, "p99 < 16 ms", most < frameLimit);
  console.log(`${" ".repeat(52)} ${`${count} frames, ${stutters} over ${stutter} ms apart, busy ${(100 * busy).toFixed(0)} %, CPU p99 ${cpu.toFixed(1)} ms`.padStart(34)}`);
}

async function measureChanges(by, name) {
  const { page, close } = await open(table);
  await page.locator(".run-row").first().waitFor();
  const all = [];
  for (let i = 0; i < 3; i++) {
    const end = await watchFrames(page);
    const { changes } = await load("fanout", "--subscribers", "1", "--by", by, "--rate", `${rate}`, "--runs", "200", "--burst", by === "batch" ? "50" : "1", "--seconds", `${seconds}`);
    all.push({ ...await end(), rate: changes / seconds });
  }
  const [, shown] = [...all].sort((a, b) => a.most - b.most);
  rowOfFrames(`${Math.round(shown.rate).toLocaleString("en")} ${name} a second`, shown);
  await close();
}

/** Scrolls by `step` pixels per frame, for `frames` frames or until `rows` rows; returns the number of rows. */
const scroll = (page, step, frames, rows) => page.evaluate(([step, frames, rows]) => new Promise((resolve) => {
  const box = document.querySelector(".run-scroll"), height = document.querySelector(".run-row").offsetHeight;
  let top = box.scrollTop, left = frames;
  const next = () => {
    top = Math.max(0, Math.min(top + step, box.scrollHeight - box.clientHeight));
    box.scrollTop = top;
    if (!left-- || (rows && top + box.clientHeight >= rows * height)) resolve(Math.round(box.scrollHeight / height));
    else requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}), [step, frames, rows]);

/** Scrolls through all runs, more than a screen per frame, then through some as fast as a hand can. */
async function measureScroll() {
  const { page, close } = await open(table);
  await page.locator(".run-row").first().waitFor();
  let end = await watchFrames(page);
  const rows = await scroll(page, 1000, Infinity, runs), swept = await end();
  row(`${rows.toLocaleString("en")} runs scrolled through at 60,000 px/s`, `${swept.stutters} of ${swept.count} frames stutter`, "< 1 %", swept.stutters < 0.01 * swept.count);
  end = await watchFrames(page);
  await scroll(page, -200, 600);
  rowOfFrames("scrolled at 12,000 px/s", await end());
  await close();
}

/** Scrolls through the logs of a run. The browser gets them in place of the response with the run's trace. */
async function measureLogs() {
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1", options: { delay: "1h" } })).json;
  const { page, close } = await open("about:blank"), scroller = ".log-scroll";
  await page.route(`**/api/v1/runs/${id}/trace`, async (route) => {
    const answer = await (await route.fetch()).json(), root = answer.trace.rootSpan, began = Date.parse(root.data.startTime);
    root.children = Array.from({ length: lines }, (_, n) => ({ id: `log${n}`, parentId: root.id, runId: id, children: [], data: { message: `line ${n} ${"x".repeat(n % 7 ? 20 : 400)}`, startTime: new Date(began + n).toISOString(), duration: 0, level: n % 100 ? "INFO" : "WARN", properties: { n }, events: [] } }));
    await route.fulfill({ json: answer });
  });
  await page.goto(`${gateway.url}/projects/v3/${keys.ref}/runs/${id}?env=dev&logs=1`);
  await page.getByText(`line ${lines - 1} `).waitFor(); // it follows the end
  const end = await watchFrames(page);
  await page.evaluate(([scroller, step, frames]) => new Promise((resolve) => {
    const box = document.querySelector(scroller);
    let left = frames;
    const next = () => {
      box.scrollTop += step;
      if (left--) requestAnimationFrame(next); else resolve();
    };
    requestAnimationFrame(next);
  }), [scroller, -200, 600]);
  rowOfFrames(`${lines.toLocaleString("en")} logs at 12,000 px/s`, await end());
  await close();
}

try {
  await measureWeight();
  await load("trigger", "--batch", "500", "--count", `${runs}`, "--payload", "16", "--delay", "1h");
  await measurePaint();
  for (const [by, name] of [["metadata", "changes of metadata"], ["batch", "new runs"]]) await measureChanges(by, name);
  await measureScroll();
  await measureLogs();
} finally {
  for (const end of after) await end();
  await browser.stop();
  await gateway.stop();
}
process.exitCode = missed;
