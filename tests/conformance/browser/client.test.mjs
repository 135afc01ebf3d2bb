// The client for pages (src/web/client) in a real browser, from the gateway's own address, on pages of a different
// origin: the README's pages, and the property test of tests/property/client.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { ClientWorld, Path, watchOrder } from "../../support/js/client_world.mjs";
import { keys, startGateway, until } from "../../support/js/gateway.mjs";
import { chooseSeed, Random } from "../../support/js/random.mjs";
import { publicToken } from "../../support/js/tokens.mjs";
import { startBrowser } from "./tab.mjs";

const here = path.dirname(fileURLToPath(import.meta.url)), top = path.resolve(here, "../../..");
const readme = ["src/web/client/README.md", "src/api/realtime/README.md"].map((chapter) => readFileSync(path.join(top, chapter), "utf8")).join("\n");
const lives = 2;
let browser;
before(async () => { browser = await startBrowser(); });
after(() => browser?.stop());

/** Returns the indented block of a README after the first one of these words, with this gateway's address. */
function block(words, gateway) {
  assert.ok(readme.includes(words), `the README says: ${words}`);
  const lines = readme.slice(readme.indexOf(words)).split("\n"), first = lines.findIndex((line) => line.startsWith("    "));
  const end = lines.findIndex((line, at) => at > first && line && !line.startsWith("    "));
  return lines.slice(first, end).map((line) => line.slice(4)).join("\n").replaceAll("http://127.0.0.1:3030", gateway.url);
}

const start = (t, options = []) => startGateway({ t, options: ["--allow-origin", browser.origin, "--drain-timeout", "3s", ...options] });
async function shows(tab, text, where = "body") {
  let shown;
  const find = async () => { shown = await tab.page.locator(where).textContent(); return shown.includes(text); };
  await until(find, { timeoutMs: 60_000, what: text }).catch((error) => assert.fail(`${error.message}; it shows ${shown}`));
}

/** Shows a React page, bundled as a user's bundler would. */
async function showReact(tab, contents) {
  const { outputFiles } = await build({ stdin: { contents, resolveDir: here, loader: "jsx" }, bundle: true, write: false, jsx: "automatic", logLevel: "error",
    nodePaths: [path.join(here, "node_modules")], define: { "process.env.NODE_ENV": '"development"' },
    alias: { "runcast/react": path.join(top, "src/web/client/react.js"), runcast: path.join(top, "src/web/client/client.js") } });
  browser.files["/react.js"] = ["text/javascript", outputFiles[0].text];
  browser.files["/react"] = ["text/html", '<!doctype html><meta charset="utf-8"><div id="root"></div><script src="/react.js"></script>'];
  await tab.page.goto(`${browser.origin}/react`);
}

describe("the README's", () => {
  /** Asserts that the page shows a run, its cancellation after a kill of the gateway, and a later run. */
  async function live(gateway, tab) {
    const trigger = async () => (await gateway.post("/api/v1/tasks/hello/trigger", { options: { tags: ["demo"] } })).json.id;
    const first = await trigger();
    await shows(tab, `${first} QUEUED`);
    await gateway.kill();
    await gateway.restart();
    await gateway.post(`/api/v2/runs/${first}/cancel`, {});
    await shows(tab, `${first} CANCELED`);
    const second = await trigger();
    await shows(tab, `${second} QUEUED`);
  }

  const token = (gateway, more) => publicToken(gateway, { scopes: ["read:tags:demo"], ...more });

  test("page with the module", async (t) => {
    const gateway = await start(t), tab = await browser.open(t);
    browser.files["/token"] = ["text/plain", await token(gateway)];
    browser.files["/module"] = ["text/html", block("## In a page", gateway)];
    await tab.page.goto(`${browser.origin}/module`);
    await live(gateway, tab);
    await until(async () => (await tab.page.title()).startsWith("live"));
    browser.files["/token"] = ["text/plain", await token(gateway, { expiresInS: -5 })];
    await gateway.kill();
    await gateway.restart();
    await until(async () => (await tab.page.title()).startsWith("closed "), { timeoutMs: 60_000, what: "an error in the title" });
    await gateway.stop();
  });

  test("component of React, also when it is mounted twice, when its tag changes, and when it is unmounted", async (t) => {
    const gateway = await start(t), tab = await browser.open(t);
    const contents = `${block("The same in React", gateway)}
      import { StrictMode } from "react";
      import { createRoot } from "react-dom/client";
      const root = createRoot(document.getElementById("root"));
      window.mount = (tag) => root.render(<StrictMode>{tag && <Demo tag={tag} />}</StrictMode>);`;
    browser.files["/token"] = ["text/plain", await publicToken(gateway, { scopes: ["read:tags"] })];
    await showReact(tab, contents);
    const subscriptions = (count) => until(async () => (await gateway.metric("runcast_subscriptions")) === count, { what: `${count} subscriptions` });
    await tab.run(() => window.mount("demo"));
    await shows(tab, "live", "h1");
    await subscriptions(1); // two of them are counted, since StrictMode mounts twice
    await live(gateway, tab);
    const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { options: { tags: ["other"] } })).json;
    await tab.run(() => window.mount("other"));
    await shows(tab, `${id} QUEUED`);
    assert.equal(await tab.page.locator("li").count(), 1);
    await subscriptions(1);
    await tab.run(() => window.mount());
    await subscriptions(0);
    assert.equal(tab.pageError, undefined);
    await gateway.stop();
  });

  test("live list of React shows unfinished runs and their number, also through a kill", async (t) => {
    const gateway = await start(t), tab = await browser.open(t);
    const trigger = async () => (await gateway.post("/api/v1/tasks/hello/trigger", { options: { tags: ["demo"] } })).json.id;
    browser.files["/token"] = ["text/plain", await token(gateway, { scopes: ["read:runs"] })];
    await showReact(tab, `${block("A live list, whose runs leave", gateway)}
      import { createRoot } from "react-dom/client";
      createRoot(document.getElementById("root")).render(<Unfinished tag="demo" />);`);
    await shows(tab, "live 0", "h1");
    const ids = [];
    for (let i = 0; i < 22; i++) ids.unshift(await trigger());
    const listed = (all) => until(async () => (await tab.page.locator("li").allTextContents()).join() === all.map((id) => `${id} QUEUED`).join(), { what: "the list" });
    await shows(tab, "live 22", "h1");
    await listed(ids.slice(0, 20));
    await gateway.kill();
    await gateway.restart();
    for (const id of ids.splice(0, 3)) await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    await shows(tab, "live 19", "h1");
    await listed(ids);
    assert.equal(tab.pageError, undefined);
    await gateway.stop();
  });

  test("page with EventSource", async (t) => {
    const gateway = await start(t), tab = await browser.open(t);
    await tab.run(([lines, key]) => { new Function("token", lines)(key); }, [block("Without the client's module", gateway), await token(gateway)]);
    await live(gateway, tab);
    await gateway.stop();
  });
});

test("useWatch shows the list and the counts, watches again for another filter, and ends", async (t) => {
  const tab = await browser.open(t);
  await showReact(tab, `
    import { createRoot } from "react-dom/client";
    import { connect } from "runcast";
    import { useWatch } from "runcast/react";

    window.requests = [];
    class Scripted {
      readyState = 0;
      constructor() {
        window.says = (message) => this.onmessage({ data: JSON.stringify(message) });
        setTimeout(() => { this.readyState = 1; this.onopen({}); });
      }
      send(text) {
        const message = JSON.parse(text);
        if (message.op !== "hello") return window.requests.push(message);
        window.says({ op: "welcome", epoch: "e1", seq: 1, limits: { burst: 200, messagesPerSecond: 50 } });
      }
      close() {}
    }
    const client = connect("http://runs.test", { token: "t", WebSocket: Scripted });

    function List({ filter }) {
      const { runs, counts, state, error } = useWatch(client, filter, { limit: 2, counts: true });
      return <p>{state} {error?.message} {runs.map(({ id }) => id).join()} {counts?.total}</p>;
    }
    const root = createRoot(document.getElementById("root"));
    window.mount = (filter) => root.render(filter !== undefined && <List filter={filter} />);`);
  const says = (message) => tab.run((one) => window.says(one), message);
  const requests = (count) => until(() => tab.run((least) => window.requests.length >= least && window.requests.splice(0), count), { what: `${count} messages` });
  const row = (id, version) => [id, version, { id, status: "QUEUED", createdAt: "2026-01-01T00:00:00.000Z" }, 1];
  await tab.run(() => window.mount(null));
  await shows(tab, "connecting");
  await tab.run(() => window.mount({ status: "QUEUED" }));
  const [watch] = await requests(1);
  assert.deepEqual(watch, { op: "watch", id: 1, filter: { status: "QUEUED" }, limit: 2, counts: true });
  await says({ op: "list", id: 1, seq: 1, begin: true, rows: [row("run_1", 1), row("run_2", 1)] });
  await says({ op: "counts", id: 1, seq: 1, byStatus: { QUEUED: 7 }, total: 7 });
  await shows(tab, "live  run_2,run_1 7");
  await says({ op: "list", id: 1, seq: 2, rows: [["run_1", 2, null, 2], row("run_3", 1)] });
  await shows(tab, "live  run_3,run_2 7");
  await tab.run(() => window.mount({ status: "EXECUTING" }));
  assert.deepEqual((await requests(2)).map(({ op, id }) => [op, id]), [["unsub", 1], ["watch", 2]]);
  await says({ op: "error", id: 2, code: "forbidden", message: "not with this token" });
  await shows(tab, "closed not with this token");
  assert.equal(tab.pageError, undefined);
});

/** A client for a ClientWorld, with its own page and its own network path. */
async function pageClient(t, gateway, name, options) {
  const way = await Path.start(t, gateway.port), tab = await browser.open(t);
  await tab.run(async ([module, url, given, order]) => {
    const { connect } = await import(module);
    window.watchOrder = new Function(`return ${order}`)();
    window.wrong = [];
    window.mirrors = {};
    window.client = connect(url, given);
    window.client.on("error", (error) => window.wrong.push(`${error.code} ${error.message}`));
  }, [`${gateway.url}/client.js`, way.url, { token: keys.dev, silence: 500, hiddenAfter: 100, ...options }, watchOrder.toString()]);
  const subscribe = (key, filter) => tab.run(([as, what]) => {
    window.mirrors[as] = what.watch ? window.client.watch(what.watch, { limit: what.limit, counts: true }) : window.client.subscribe(what);
    window.watchOrder(window.mirrors[as], window.wrong);
  }, [key, filter]);
  const close = (key) => tab.run((as) => {
    window.mirrors[as].close();
    delete window.mirrors[as];
  }, key);
  const read = () => tab.run(() => Object.fromEntries(Object.entries(window.mirrors).map(([key, { runs, counts, state, error }]) =>
    [key, { runs: [...runs.values()], counts, state, error: error?.message }])));
  const online = () => tab.run(() => { window.dispatchEvent(new Event("online")); });
  return { name, path: way, tab, subscribe, close, read, online, hide: (hidden) => tab.setVisibility(hidden ? "hidden" : "visible") };
}

test("a page that was offline, or in the background, shows what it missed as soon as it is online or visible", { timeout: 180_000 }, async (t) => {
  const gateway = await start(t), page = await pageClient(t, gateway, "away", { silence: 1000 });
  const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { options: { delay: "1h" } })).json;
  await page.subscribe("one", { run: id });
  const waitForN = (n) => until(async () => (await page.read()).one.runs[0]?.metadata?.n === n, { timeoutMs: 60_000, what: `n is ${n}` });
  const write = (n) => gateway.put(`/api/v1/runs/${id}/metadata`, { metadata: { n } });
  await write(1);
  await waitForN(1);
  await page.tab.page.context().setOffline(true);
  page.path.stall(); // the network carries nothing, and no side closes the connection
  await write(2);
  await until(async () => (await page.read()).one.state === "connecting", { what: "the client detects the broken path" });
  page.path.cut();
  page.path.stall(false);
  await page.tab.page.context().setOffline(false);
  await waitForN(2);
  await page.hide(true);
  await until(async () => (await page.read()).one.state === "paused");
  await until(async () => (await gateway.metric('runcast_connections{kind="ws"}')) === 0, { what: "no connection" });
  await write(3);
  await write(4);
  await page.hide(false);
  await waitForN(4);
  assert.equal((await page.read()).one.runs.length, 1);
  await gateway.stop();
});

test("each mirror equals what REST returns, through cuts, stalls, kills, restarts and hidden tabs", { timeout: 240_000 }, async (t) => {
  const random = new Random(chooseSeed(t)), gateway = await start(t);
  const world = new ClientWorld(gateway, random);
  for (const [name, options] of [["plain", {}], ["paced", { every: 30 }]]) {
    world.add(await pageClient(t, gateway, name, options));
    await world.open(world.clients.at(-1), { all: true });
  }
  for (let life = 0; life < lives; life++) {
    await world.disturb(200, { kills: 1 });
    await world.settle();
  }
  for (const { name, tab } of world.clients) {
    assert.deepEqual(await tab.run(() => window.wrong), [], name);
    assert.equal(tab.pageError, undefined);
    await tab.run(() => window.client.close());
  }
  await until(async () => (await gateway.metric("runcast_subscriptions")) === 0);
  await gateway.stop();
});
