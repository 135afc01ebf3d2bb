// Staying signed in to the dashboard in a real browser, which is closed and started again: over TLS by a cookie, and on
// the same machine without TLS by a key.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { freePort, keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { makeCertificate } from "../../support/js/tls.mjs";
import { judge, startWithProfile } from "./tab.mjs";

async function startBoth(t) {
  const own = makeCertificate(temporaryFolder(), "own"), plain = await freePort(), port = await freePort();
  const gateway = await startGateway({ t, port: plain,
    options: ["--listen", `127.0.0.1:${plain}`, "--listen", `127.0.0.1:${port},tls`, "--tls-cert", own.certificate, "--tls-key", own.key] });
  return { gateway, ways: { cookie: `https://127.0.0.1:${port}`, key: gateway.url } };
}

const at = (view, env = "dev") => `/projects/v3/${keys.ref}/${view}?env=${env}`;
const heading = (page, name) => page.getByRole("heading", { name, exact: true }).waitFor();
const link = async (gateway) => (await runProgram(["dashboard", "--data", gateway.data])).stdout.trim();
const staying = async (gateway) => (await runProgram(["token", "list", "--data", gateway.data])).stdout.split("\n").filter((line) => /stays signed in$/.test(line));
const account = async (page, item) => {
  await page.getByRole("button", { name: "Appearance and account" }).click();
  await page.getByRole("button", { name: item, exact: true }).click();
};

async function signIn(page, origin, { stays, token = keys.pat }) {
  await page.goto(origin + at("runs"));
  await page.getByLabel("Personal access token").fill(token);
  if (stays) await page.getByLabel(/^Stay signed in/).check();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await heading(page, "Runs");
}

for (const way of ["cookie", "key"]) describe(`by a ${way}`, () => {
  test("lasts across tabs and a closed browser, opens environments only, and signing out ends it", async (t) => {
    const { gateway, ways } = await startBoth(t), folder = temporaryFolder();
    let browser = await startWithProfile(t, folder);
    await signIn(await browser.open(), ways[way], { stays: true });
    await until(async () => (await staying(gateway)).length === 1, { what: "the gateway knows" });
    await browser.stop();

    browser = await startWithProfile(t, folder);
    const page = await browser.open();
    await page.goto(ways[way] + at("runs", "prod"));
    await heading(page, "Runs");
    await page.getByText("Live").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("runcast.token")), null);
    const { id } = (await gateway.post("/api/v1/tasks/hello/trigger", { payload: "1" }, { key: keys.prod })).json;
    await page.locator(`#row-${id}`).waitFor();
    for (const [view, title] of [["test", "Test"], ["queues", "Queues"], ["schedules", "Schedules"], ["envvars", "Variables"], ["deployments", "Deployments"], ["workers", "Workers"]]) {
      await page.goto(ways[way] + at(view));
      await page.locator("main h1").first().waitFor();
      assert.ok(!/Sign in to runcast|Sign in to this tab/.test(await page.locator("main").textContent()), `${view} ${title}`);
    }
    const second = await browser.open();
    await Promise.all([second.goto(ways[way] + at("queues")), page.goto(ways[way] + at("runs"))]);
    await Promise.all([heading(second, "Queues"), heading(page, "Runs")]);

    await page.goto(ways[way] + at("tokens"));
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    await judge(page);
    await page.getByRole("button", { name: "Confirm…" }).click();
    await judge(page);
    await page.getByLabel("Sign-in link or personal access token").fill(await link(gateway));
    await page.getByRole("button", { name: "Confirm", exact: true }).click();
    await page.getByText("dashboard, stays signed in").waitFor();

    await account(second, "Sign out");
    for (const tab of [page, second]) await heading(tab, "Sign in to runcast");
    await until(async () => (await staying(gateway)).length === 0, { what: "the gateway has ended it" });
    await second.reload();
    await heading(second, "Sign in to runcast");
    await browser.stop();
  });

  test("can be chosen after signing in with a link, and ends everywhere at once", async (t) => {
    const { gateway, ways } = await startBoth(t), folder = temporaryFolder(), elsewhere = await startWithProfile(t, temporaryFolder());
    const browser = await startWithProfile(t, folder), page = await browser.open(), other = await elsewhere.open();
    await page.goto(`${ways[way]}/#${new URL(await link(gateway)).hash.slice(1)}`);
    await page.waitForURL(/\/runs\?env=/);
    await account(page, "Stay signed in");
    await page.getByText("This browser stays signed in").waitFor();
    await signIn(other, ways[way], { stays: true });
    await other.close();
    const again = await elsewhere.open();
    await again.goto(ways[way] + at("runs"));
    await heading(again, "Runs");
    await account(page, "Sign out everywhere");
    await heading(page, "Sign in to runcast");
    await heading(again, "Sign in to runcast");
    await again.getByText("Your sign-in expired or was revoked").waitFor();
    assert.deepEqual(await staying(gateway), []);
    await Promise.all([browser.stop(), elsewhere.stop()]);
  });

  test("is not kept unless the user says so", async (t) => {
    const { gateway, ways } = await startBoth(t), browser = await startWithProfile(t, temporaryFolder()), page = await browser.open();
    await signIn(page, ways[way], { stays: false });
    await page.close();
    const next = await browser.open();
    await next.goto(ways[way] + at("runs"));
    await heading(next, "Sign in to runcast");
    assert.deepEqual([await staying(gateway), await browser.cookies()], [[], []]);
    await browser.stop();
  });
});

test("signing out while the gateway does not respond ends it as soon as a page is opened again", async (t) => {
  const { gateway, ways } = await startBoth(t), browser = await startWithProfile(t, temporaryFolder()), page = await browser.open();
  await signIn(page, ways.cookie, { stays: true });
  let tried = 0;
  await page.route("**/dashboard/session", (route) => { tried++; return route.abort(); });
  await account(page, "Sign out");
  await heading(page, "Sign in to runcast");
  await until(() => tried, { what: "the page has tried" });
  assert.equal((await staying(gateway)).length, 1);
  await page.unroute("**/dashboard/session");
  await page.reload();
  await heading(page, "Sign in to runcast");
  await until(async () => (await staying(gateway)).length === 0, { what: "the gateway has ended it" });
  await until(async () => (await browser.cookies()).length === 0, { what: "the cookie is gone" });
  await browser.stop();
});

test("a cookie of another user, which another server of the host may set, signs nobody in", async (t) => {
  const { gateway, ways } = await startBoth(t), [mine, theirs] = [await startWithProfile(t, temporaryFolder()), await startWithProfile(t, temporaryFolder())];
  await runProgram(["user", "create", "Eve", "--email", "eve@example.com", "--data", gateway.data]);
  const eve = (await runProgram(["token", "create", "--user", "eve@example.com", "--data", gateway.data])).stdout.trim();
  await signIn(await theirs.open(), ways.cookie, { stays: true, token: eve });
  const page = await mine.open();
  await signIn(page, ways.cookie, { stays: true });
  await page.close();
  await mine.setCookies(await theirs.cookies());
  const next = await mine.open();
  await next.goto(ways.cookie + at("runs"));
  await heading(next, "Sign in to runcast");
  await Promise.all([mine.stop(), theirs.stop()]);
});

test("a page of another port, which shares the cookies of the host, cannot use the cookie", async (t) => {
  const { ways } = await startBoth(t), { ways: { cookie: attacker } } = await startBoth(t), browser = await startWithProfile(t, temporaryFolder());
  await signIn(await browser.open(), ways.cookie, { stays: true });
  const [{ name, httpOnly, secure, sameSite, path }, ...others] = await browser.cookies();
  assert.deepEqual([httpOnly, secure, sameSite, path, others], [true, true, "Strict", "/dashboard/session", []]);
  const evil = await browser.open();
  await evil.goto(attacker + at("runs"));
  const read = await evil.evaluate(async ([url]) => {
    const tries = [{}, { mode: "no-cors" }, { headers: { "content-type": "application/json" } }];
    return Promise.all(tries.map((options) => fetch(`${url}/dashboard/session`, { method: "POST", credentials: "include", body: "{}", ...options }).then(async (response) => [response.status, await response.text()], (error) => error.name)));
  }, [ways.cookie]);
  assert.deepEqual(read, ["TypeError", "TypeError", "TypeError"], "its policy forbids foreign hosts");
  assert.equal(await evil.evaluate(() => document.cookie), "", `${name} is not readable`);
  const fresh = await browser.open();
  await fresh.goto(ways.cookie + at("runs"));
  await heading(fresh, "Runs");
  await browser.stop();
});
