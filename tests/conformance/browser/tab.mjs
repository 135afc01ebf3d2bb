// A real browser for tests: Debian's Chromium without windows, and pages from a different origin than the gateway's.
//
//   const browser = await startBrowser();
//   const tab = await browser.open(t);
//   await tab.show("Run", { id, accessToken, baseURL });
//   await tab.shows(id, { status: "COMPLETED" });
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { chromium } from "playwright-core";

import { until } from "../../support/js/gateway.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<title>runs</title><div id="root"></div><script src="/page.js"></script>`;

/** Bundles page.jsx with the real hooks. Node's own modules are left out, as by any bundler for browsers. */
async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [path.join(here, "page.jsx")], bundle: true, write: false, platform: "browser",
    jsx: "automatic", external: ["node:*"], define: { "process.env.NODE_ENV": '"production"' }, logLevel: "error",
  });
  return outputFiles[0].text;
}

/** Serves files: path -> [content type, text]. Tests can add files. */
function serve(files) {
  const server = http.createServer((request, response) => {
    const [type, text] = files[request.url] ?? ["text/plain", ""];
    response.writeHead(files[request.url] ? 200 : 404, { "content-type": type }).end(text);
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject).listen(0, "127.0.0.1", () => resolve(server));
  });
}

/** How Chromium is launched: the program without windows, which takes half the CPU time, and without what no test uses: the
 * emulation of a GPU, and a process that it prepares for the next page. Chromium uses only the last list of disabled
 * features, so this one repeats Playwright's. */
const launch = {
  executablePath: "/usr/lib/chromium/chromium-headless-shell",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-software-rasterizer",
    `--disable-features=${["SpareRendererForSitePerProcess", "AvoidUnnecessaryBeforeUnloadCheckSync",
      "BoundaryEventDispatchTracksNodeRemoval", "DestroyProfileOnBrowserClose", "DialMediaRouteProvider",
      "GlobalMediaControls", "HttpsUpgrades", "LensOverlay", "MediaRouter", "PaintHolding",
      "ThirdPartyStoragePartitioning", "Translate", "RenderDocument", "OptimizationHints"].join(",")}`],
};

/** On a time-out, reports which resources keep the tests from ending. */
process.once("SIGTERM", () => {
  console.error("still open:", process.getActiveResourcesInfo().join(" "));
  process.exit(124);
});

export async function startBrowser() {
  const script = await bundle();
  const server = await chromium.launchServer({
    ...launch,
    args: [...launch.args, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
  });
  const browser = await chromium.connect(server.wsEndpoint());
  const files = { "/": ["text/html", html], "/page.js": ["text/javascript", script] };
  const origin = await serve(files);
  const { port } = origin.address();
  return {
    origin: `http://127.0.0.1:${port}`,
    files,
    otherOrigin: `http://localhost:${port}`,
    /** Opens a page with its own storage, which is closed when the test ends. */
    async open(t, at = `http://127.0.0.1:${port}`, options = {}) {
      const context = await browser.newContext(options);
      t.after(() => context.close());
      const tab = new Tab(await context.newPage());
      await tab.page.goto(at);
      return tab;
    },
    /** Kills the browser with all its processes, since one that survives would keep our pipes open. */
    async stop() {
      await browser.close();
      await server.kill();
      origin.close();
      origin.closeAllConnections();
    },
  };
}

/** Starts a relay to a gateway: { url, cut() }. cut() breaks all open connections. */
export async function startRelay(t, port) {
  const open = new Set();
  const server = net.createServer((from) => {
    const to = net.connect(port, "127.0.0.1");
    for (const [socket, other] of [[from, to], [to, from]]) {
      open.add(socket);
      socket.pipe(other);
      socket.on("error", () => {}).on("close", () => { open.delete(socket); other.destroy(); });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => { for (const socket of open) socket.resetAndDestroy(); };
  t.after(() => { server.close(); cut(); });
  return { url: `http://127.0.0.1:${server.address().port}`, cut };
}

class Tab {
  constructor(page) {
    Object.assign(this, { page, requests: [], answers: [] });
    page.on("pageerror", (error) => { this.pageError ??= error; });
    page.on("request", (request) => this.requests.push(request));
    page.on("response", (response) => this.answers.push(response));
  }

  /** Reloads the page, and forgets its requests and responses. */
  async reload() {
    await this.page.reload();
    Object.assign(this, { requests: [], answers: [] });
  }

  run(script, argument) { return this.page.evaluate(script, argument); }
  show(hook, options) { return this.run(([name, all]) => window.show(name, all), [hook, options]); }
  text(id) { return this.page.locator(`#${id}`).textContent({ timeout: 30_000 }); }
  seen() { return this.run(() => window.seen); }
  completed() { return this.run(() => window.completed); }

  /** Waits until the page shows that run with all of these fields; returns the run. */
  async shows(id, fields, timeoutMs = 10_000) {
    const wanted = Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]);
    let value;
    const find = async () => {
      if (this.pageError) throw this.pageError;
      value = JSON.parse(await this.text("value"));
      const run = [value ?? []].flat().find((one) => one.id === id);
      return run && wanted.every(([name, text]) => JSON.stringify(run[name]) === text) && run;
    };
    return until(find, { timeoutMs, what: `the page shows ${JSON.stringify(fields)}` }).catch(async (error) => {
      assert.fail(`${error.message}; it shows ${JSON.stringify(value)?.slice(0, 1500)} ${await this.text("error")}`);
    });
  }

  /** Waits until the hook returns an error; returns its text: status and message. */
  error() { return until(() => this.text("error"), { timeoutMs: 60_000, what: "an error in the hook" }); }

  /** Overrides the visibility that the page sees: "hidden" or "visible". */
  setVisibility(state) {
    return this.run((now) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => now });
      Object.defineProperty(document, "hidden", { configurable: true, get: () => now === "hidden" });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  }
}

/** A browser whose profile is a folder, like a person's: it can be stopped and started again. Certificates are not
 * checked. */
export async function startWithProfile(t, folder) {
  const context = await chromium.launchPersistentContext(folder, { ...launch, ignoreHTTPSErrors: true });
  const stop = () => context.close();
  t.after(stop);
  return {
    stop,
    cookies: () => context.cookies(),
    setCookies: (cookies) => context.addCookies(cookies),
    /** Opens a tab. */
    async open() {
      const page = await context.newPage();
      page.setDefaultTimeout(15_000);
      return page;
    },
  };
}

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ofColors = process.env.TESTS_IN_FULL ? undefined : { type: "rule", values: ["color-contrast", "link-in-text-block"] };
const schemes = [["light", undefined], ["dark", ofColors]];

/** Asserts that axe-core finds nothing, in both color schemes. In the dark one, only the rules about colors are checked,
 *  except with tests/run.sh --all. Nothing is preloaded: only a rule about sounds that play by themselves needs that. */
export async function judge(page) {
  for (const [colorScheme, runOnly] of schemes) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
    const found = await page.evaluate(async (rules) => (await window.axe.run(document, { resultTypes: ["violations"], preload: false, ...rules })).violations
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`), runOnly && { runOnly });
    assert.deepEqual(found, [], colorScheme);
  }
}
