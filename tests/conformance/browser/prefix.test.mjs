// The dashboard in a real browser behind proxies that serve the gateway under a path of their host: nginx that keeps the
// path, nginx that removes it, and HAProxy, which keeps it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { keys } from "../../support/js/gateway.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { pathProxies, startUnderPath, underPath as prefix } from "../../support/js/proxies.mjs";
import { startBrowser } from "./tab.mjs";

let browser;
before(async () => { browser = await startBrowser(); });
after(() => browser?.stop());

for (const [name, how] of Object.entries(pathProxies))
  describe(`behind ${name}`, () => {
    let gateway, proxy, stop;
    before(async () => { ({ gateway, proxy, stop } = await startUnderPath(how)); });
    after(() => stop?.());

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
