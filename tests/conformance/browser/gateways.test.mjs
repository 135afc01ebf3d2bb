// The dashboard's page of gateways in a real browser: the roles and lag of two gateways, at both of them, while one is lost.
import assert from "node:assert/strict";
import { test } from "node:test";

import { startFollowers } from "../../support/js/followers.mjs";
import { keys, until } from "../../support/js/gateway.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { judge, startBrowser } from "./tab.mjs";

const picture = process.env.PICTURES && ((page, name) => page.screenshot({ path: `${process.env.PICTURES}/${name}.png`, fullPage: true }));

/** Opens a view at a gateway, signed in with a token. */
async function open(browser, t, gateway, view, { token = keys.pat, ...options } = {}) {
  const { page } = await browser.open(t, "about:blank", options);
  await page.addInitScript((value) => { if (!sessionStorage.getItem("runcast.token")) sessionStorage.setItem("runcast.token", value); }, token);
  await page.goto(`${gateway.url}/projects/v3/${keys.ref}/${view}?env=prod`);
  return page;
}

test("the page shows each gateway with its role and lag, to users of the operator only", { timeout: 180_000 }, async (t) => {
  const browser = await startBrowser();
  t.after(() => browser.stop());
  const { leader, others: [b] } = await startFollowers(t, { names: ["a", "b"] });
  await until(async () => (await leader.get("/api/v1/gateways", { key: keys.pat })).json.gateways.length === 2, { what: "the leader knows b" });
  const cells = async (page) => page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const pages = [];
  for (const [at, gateway] of [leader, b].entries()) {
    const page = await open(browser, t, gateway, "runs");
    await page.getByRole("link", { name: "Gateways" }).click();
    await page.getByRole("heading", { name: "Gateways", exact: true }).waitFor();
    await until(async () => /\d ms, 0 changes/.test((await cells(page))[1]?.[3]), { what: "the lag of b" });
    const [first, second] = await cells(page);
    assert.deepEqual([first[0], first[1], second[0], second[1]], ["a", "Leads", "b", "Follows"]);
    assert.doesNotMatch(await page.content(), /127\.0\.1\./, "no address");
    await picture?.(page, `gateways-${at}`);
    await judge(page);
    pages.push(page);
  }
  await leader.kill();
  await until(async () => (await cells(pages[1])).some(([name, role]) => name === "b" && role === "Leads"), { what: "the page at b shows that b leads" });
  await until(async () => (await cells(pages[1])).some(([name, role]) => name === "a" && role.startsWith("Down")), { what: "a is down" });
  await picture?.(pages[1], "gateways-lost");
  await judge(pages[1]);

  const run = async (...words) => (await runProgram([...words, "--data", b.data])).stdout;
  await run("org", "create", "Tenant");
  await run("user", "create", "Eve", "--email", "eve@example.com", "--org", "tenant");
  const ref = (await run("project", "create", "Own", "--org", "tenant")).match(/proj_\w+/)[0];
  const token = (await run("token", "create", "--user", "eve@example.com")).match(/tr_pat_\w+/)[0];
  const page = await open(browser, t, b, "runs", { token });
  await page.goto(`${b.url}/projects/v3/${ref}/gateways?env=prod`);
  await page.getByRole("heading", { name: "No gateways to show" }).waitFor();
  await judge(page);
  await page.getByRole("link", { name: "Queues" }).click();
  await page.getByRole("heading", { name: "Queues", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Gateways" }).count(), 0);
  await b.stop();
});
