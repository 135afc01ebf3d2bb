// The dashboard in a real browser behind proxies that serve the gateway under a path of their host: nginx that keeps the
// path, nginx that removes it, and HAProxy, which passes everything on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { freePort, keys, startGateway, until } from "../../support/js/gateway.mjs";
import { HttpClient } from "../../support/js/http.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { startProxy } from "../../support/js/proxies.mjs";
import { startBrowser } from "./tab.mjs";

const prefix = "/jobs/a", root = (text) => text.replace("location / {", `location ${prefix}/ {`);
const proxies = {
  "nginx that keeps the path": { kind: "nginx", change: root },
  "nginx that removes the path": { kind: "nginx", change: (text) => root(text).replace("proxy_pass http://runcast;", "proxy_pass http://runcast/;") },
  "HAProxy": { kind: "haproxy", change: (text) => text },
};

let browser;
before(async () => { browser = await startBrowser(); });
after(() => browser?.stop());

for (const [name, { kind, change }] of Object.entries(proxies))
  describe(`behind ${name}`, () => {
    let gateway, proxy;
    before(async () => {
      const port = await freePort(), front = await freePort();
      gateway = await startGateway({ port, options: ["--public-url", `https://127.0.0.1:${front}${prefix}/`, "--trusted-proxies", "127.0.0.1"] });
      proxy = await startProxy(kind, { port: front, gateway: port, change });
      const http = new HttpClient(proxy.plainUrl, keys.dev);
      await until(async () => (await http.request("GET", `${prefix}/readyz`).catch(() => ({}))).status === 200, { what: `${name} to be ready\n${proxy.output}` });
      http.close();
    });
    after(async () => { proxy?.stop(); await gateway?.stop(); });

    test("a link signs in, runs are live, and the addresses of views begin with the path", async (t) => {
      const { stdout } = await runProgram(["dashboard", "--data", gateway.data]);
      const link = new URL(stdout.trim().split("\n").at(-1));
      assert.equal(link.origin + link.pathname, `${proxy.url}${prefix}/`);
      const { page } = await browser.open(t, "about:blank"), unexpected = [], under = `${proxy.plainUrl}${prefix}/`;
      page.on("response", (response) => { // no worker of dev is connected, which its call answers with 404
        if (!response.url().startsWith(under) || (response.status() === 404 && !response.url().endsWith("/workers/current"))) unexpected.push(response.url());
      });
      page.setDefaultTimeout(15_000);
      await page.goto(`${proxy.plainUrl}${prefix}/${link.hash}`);
      await page.waitForURL((url) => url.pathname.startsWith(`${prefix}/projects/v3/`) && url.pathname.endsWith("/runs"));
      const { json: { id } } = await gateway.post("/api/v1/tasks/hello/trigger", { payload: "{}", options: { payloadType: "application/json" } });
      await page.locator(`#row-${id} a`).first().click();
      await page.waitForURL((url) => url.pathname === `${prefix}/projects/v3/${keys.ref}/runs/${id}`);
      await page.locator("h1", { hasText: "hello" }).waitFor();
      await page.locator("a.brand").click();
      await page.waitForURL((url) => url.pathname.endsWith("/runs"));
      await page.reload();
      await page.locator(`#row-${id}`).waitFor();
      assert.deepEqual(unexpected, []);
    });

    test("the dashboard is also at the gateway's own address, with the path and without", async () => {
      for (const path of ["/", `${prefix}`, `${prefix}/`, `${prefix}/projects/v3/x/runs`]) {
        const { status, text } = await gateway.http.request("GET", path, { key: null });
        assert.equal(status, 200, path);
        assert.match(text, new RegExp(`src="${prefix}/dashboard/app.js"`));
      }
      assert.equal((await gateway.http.request("GET", `${prefix}/api/v3/runs/run_unknown`)).status, 404);
      assert.equal((await gateway.http.request("GET", `${prefix}/api/v1/runs`)).status, 200);
      assert.equal((await gateway.http.request("GET", `${prefix}x/api/v1/runs`)).status, 404);
    });
  });
