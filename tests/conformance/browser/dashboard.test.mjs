// The dashboard in a real browser, against a gateway with the real CLI as a worker and a version that it has deployed:
// every view is opened, used for its purpose, and passes axe-core.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { startCommands } from "../../support/js/cli_commands.mjs";
import { deploy, startWorld } from "../../support/js/dashboard_world.mjs";
import { Builder, Deployer } from "../../support/js/deployments.mjs";
import { freePort, keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";
import { runProgram } from "../../support/js/program.mjs";
import { Worker } from "../../support/js/worker_calls.mjs";
import { judge, startBrowser } from "./tab.mjs";

const order = (number, amount = 120) => ({ order: `${number}`, amount, to: "ada@example.com" });
let browser, world, gateway;
before(async () => {
  [browser, world] = await Promise.all([startBrowser(), startWorld()]);
  ({ gateway } = world);
});
after(async () => { await browser?.stop(); await world?.stop(); });

const at = (view, { env = "dev", ...query } = {}) => `/projects/v3/${keys.ref}/${view}?${new URLSearchParams({ env, ...query })}`;

/** Opens a signed-in tab at an address; the page calls `begin` first. Errors in its console fail the test. */
async function open(t, address, { token = keys.pat, of = gateway, begin, ...options } = {}) {
  const tab = await browser.open(t, "about:blank", options), { page } = tab, errors = [];
  page.on("console", (message) => { if (message.type() === "error" && !/Failed to load resource|WebSocket connection/.test(message.text())) errors.push(message.text()); });
  t.after(() => assert.deepEqual([tab.pageError?.stack, ...errors].filter(Boolean), []));
  if (token) await page.addInitScript((value) => { if (!sessionStorage.getItem("runcast.token")) sessionStorage.setItem("runcast.token", value); }, token);
  if (begin) await page.addInitScript(begin);
  page.setDefaultTimeout(15_000);
  await page.goto(of.url + address);
  return page;
}

const row = (page, id) => page.locator(`#row-${id}`);
const shows = (locator, text) => until(async () => (await locator.textContent().catch(() => "")).includes(text), { timeoutMs: 60_000, everyMs: 50, what: `it shows ${text}` });

describe("signing in", () => {
  test("with a one-time link, whose code leaves the address bar; a new tab shares the session, and signing out ends it in every tab", async (t) => {
    const link = (await runProgram(["dashboard", "--data", gateway.data])).stdout.trim();
    const page = await open(t, new URL(link).hash.replace(/^/, "/"), { token: null });
    await page.waitForURL(/\/runs\?env=/);
    assert.ok(!page.url().includes("signin") && !page.url().includes("tr_"));
    const other = await page.context().newPage();
    await other.goto(gateway.url + at("queues"));
    await other.getByRole("heading", { name: "Queues" }).waitFor();
    await other.getByRole("button", { name: "Appearance and account" }).click();
    await other.getByRole("button", { name: "Sign out", exact: true }).click();
    for (const tab of [page, other]) await tab.getByRole("heading", { name: "Sign in to runcast" }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("runcast.token")), null);
    await judge(page);
    const late = await open(t, new URL(link).hash.replace(/^/, "/"), { token: null });
    await late.getByText("This link was used or has expired").waitFor();
  });

  test("with a link that is pasted into the address bar of the tab, or into the field for a token", async (t) => {
    const link = async () => (await runProgram(["dashboard", "--data", gateway.data])).stdout.trim();
    const page = await open(t, "/", { token: null }), isIn = () => page.waitForURL(/\/runs\?env=/);
    await page.getByRole("heading", { name: "Sign in to runcast" }).waitFor();
    await page.goto(await link()); // only the fragment differs, so nothing is loaded
    await isIn();
    await page.getByRole("button", { name: "Appearance and account" }).click();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByLabel("Personal access token").fill(keys.dev);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Secret keys are for programs.").waitFor();
    await page.getByLabel("Personal access token").fill(` ${await link()}\n`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor(); // the address was that of the runs before
    await page.goto(`${page.url()}#signin=tr_link_of_another`);
    await until(() => !page.url().includes("signin"), { what: "the code leaves the address bar" });
    assert.equal(await page.evaluate(() => Boolean(sessionStorage.getItem("runcast.token"))), true);
  });

  test("with a personal access token; an invalid one, and one that ends, are reported in the page", async (t) => {
    const page = await open(t, at("runs"), { token: null });
    const made = (await runProgram(["token", "create", "--user", "admin@example.com", "--name", "tab", "--data", gateway.data])).stdout.trim();
    await page.getByLabel("Personal access token").fill("tr_pat_unknown");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Unknown or expired token").waitFor();
    await page.getByLabel("Personal access token").fill(made);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await runProgram(["token", "revoke", made, "--data", gateway.data]);
    await page.goto(gateway.url + at("queues"));
    await page.getByText("Your sign-in expired or was revoked").waitFor();
  });

  test("of the CLI: login prints a link, the user approves it, and whoami and logout work", async (t) => {
    const cli = startCommands({ t }), { out } = await cli.run(["login", "-a", gateway.url, "--no-browser"]);
    const [link] = /http:\S+authorization-code\/\w+/.exec(out);
    const page = await open(t, new URL(link).pathname);
    await page.getByText("127.0.0.1 (the gateway's machine)").waitFor();
    await judge(page);
    await page.getByRole("button", { name: "Approve" }).click();
    const code = await page.locator(".approval code").textContent();
    const wrong = await cli.run(["login", "-a", gateway.url, "--code", "BCDF-GHJK-LMNP"]);
    assert.match(wrong.out, /That code didn't work/);
    const right = await cli.run(["login", "-a", gateway.url, "--code", code]);
    assert.match(right.out, /Logged in successfully/);
    assert.match((await cli.run(["whoami"])).out, /admin@example\.com/);
    assert.match((await cli.run(["list-profiles"])).out, new RegExp(`default - ${gateway.url}`));
    assert.match((await cli.run(["logout"])).out, /Logged out/);
    await page.goto(link);
    await page.getByRole("heading", { name: "Login not found" }).waitFor();
    await judge(page);
  });

  test("of the CLI on the same machine: login opens the page, and continues by itself when the user approves", async (t) => {
    const home = temporaryFolder(), opened = path.join(home, "opened");
    const script = (name, text) => fs.writeFileSync(path.join(home, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    script("xdg-open", "exit 0"); // the CLI checks that it exists, and uses its own
    script("browser", `echo "$1" > ${opened}.new && mv ${opened}.new ${opened}`);
    const cli = startCommands({ t, home, env: { PATH: `${home}:${process.env.PATH}`, BROWSER: path.join(home, "browser") } });
    const login = cli.run(["login", "-a", gateway.url]);
    await until(() => fs.existsSync(opened), { timeoutMs: 60_000, what: "the CLI opens the browser" });
    const page = await open(t, new URL(fs.readFileSync(opened, "utf8").trim()).pathname);
    await page.getByText("The CLI continues automatically, on this machine").waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Return to your terminal to continue.").waitFor();
    assert.match((await login).out, /Logged in successfully/);
    assert.match((await cli.run(["switch", "default"])).out, /default/);
  });

  test("of the CLI: it lists, creates and renames projects, and reports how organizations are created", async (t) => {
    const commands = startCommands({ t, env: { TRIGGER_API_URL: gateway.url, TRIGGER_ACCESS_TOKEN: keys.pat } }), cli = async (...words) => (await commands.run(words)).out;
    const [{ slug }] = (await gateway.get("/api/v1/orgs", { key: keys.pat })).json;
    assert.match(await cli("orgs", "list"), new RegExp(slug));
    const made = await cli("projects", "create", "--org", slug, "--name", "Made by the CLI"), [ref] = /proj_\w+/.exec(made);
    assert.match(await cli("projects", "rename", ref, "Named again"), /Named again/);
    assert.match(await cli("projects", "get", ref), /Named again/);
    assert.match(await cli("projects", "list"), /Named again/);
    assert.match(await cli("orgs", "create", "--name", "Others"), /runcast org create/);
  });
});

describe("runs", () => {
  test("appear, change and are counted live, through a kill of the gateway", async (t) => {
    const page = await open(t, "/");
    await page.getByText("Live", { exact: true }).waitFor();
    const id = await world.trigger("approve-refund", { order: "1" }, { tags: ["eu"] });
    await row(page, id).waitFor();
    await shows(row(page, id), "Waiting");
    await judge(page);
    gateway.child.kill("SIGKILL"); // its supervise role survives, and holds its standard error
    await page.getByText("Connecting", { exact: true }).waitFor();
    await page.getByText("The gateway has not responded since").waitFor();
    await judge(page);
    assert.match(await page.locator("main").getAttribute("class"), /stale/);
    gateway.http.close();
    await gateway.restart();
    await page.getByText("Live", { exact: true }).waitFor({ timeout: 40_000 });
    await page.getByText("The gateway has not responded since").waitFor({ state: "detached" });
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    await shows(row(page, id), "Canceled");
  });

  test("are shown as live also when the page is drawn after the connection was opened", async (t) => {
    const begin = () => { // delays frames and timers, as on a busy machine, but not the network
      const timer = window.setTimeout;
      window.setTimeout = (ring, ms, ...values) => timer(ring, Math.max(ms ?? 0, 400), ...values);
      window.requestAnimationFrame = (draw) => timer(() => draw(performance.now()), 400);
    };
    const page = await open(t, at("runs"), { begin });
    await page.getByText("Live", { exact: true }).waitFor();
  });

  test("are filtered, and found by id, its beginning, tag and task; the address contains the filter", async (t) => {
    const id = await world.trigger("send-email", { to: "x@example.com" }, { tags: ["filtered"], delay: "1h" }), page = await open(t, at("runs"));
    await page.getByLabel("Find runs by id, tag, task or batch").fill("filtered");
    await page.keyboard.press("Enter");
    await page.waitForURL(/tag=filtered/);
    await until(async () => (await page.locator(".run-row").count()) === 1, { what: "one row" });
    await page.getByRole("button", { name: "Status", exact: true }).click();
    await judge(page);
    await page.locator(".menu").getByText("Failed").click();
    await page.waitForURL(/status=FAILED/);
    await page.getByText("No runs match").waitFor();
    await page.keyboard.press("Escape");
    await judge(page);
    await page.goBack();
    await row(page, id).waitFor();
    for (const text of [id, id.slice(0, -6)]) {
      await page.goto(gateway.url + at("runs"));
      await page.getByLabel("Find runs by id, tag, task or batch").fill(text);
      await page.keyboard.press("Enter");
      await page.waitForURL(new RegExp(`/runs/${id}`));
    }
    await page.getByText("It is delayed until").waitFor();
  });

  test("are reached by keyboard, selected, canceled and replayed in bulk after a count", async (t) => {
    const ids = [];
    for (let i = 0; i < 4; i++) ids.unshift(await world.trigger("send-email", { to: `${i}@example.com` }, { tags: ["bulk"], delay: "1h" }));
    const page = await open(t, at("runs", { tag: "bulk" }));
    await row(page, ids[3]).waitFor();
    for (const key of ["j", "x", "j", "x", "k"]) await page.keyboard.press(key);
    await page.getByText("2 selected").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await judge(page);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel 2 runs" }).waitFor();
    await judge(page);
    await page.getByRole("button", { name: "Cancel 2 runs" }).click();
    await page.getByText("Done. 2 canceled").waitFor();
    await judge(page);
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await shows(row(page, ids[0]), "Canceled");
    const all = async (item) => { await page.getByRole("button", { name: "Bulk actions" }).click(); await page.getByRole("button", { name: item }).click(); };
    await page.getByText("2 selected").waitFor({ state: "detached" });
    await all("Cancel all runs of this list…");
    await page.getByRole("button", { name: "Cancel 2 runs" }).click();
    await page.getByText("Done. 2 canceled").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.goto(gateway.url + at("runs", { tag: "bulk", status: "CANCELED" }));
    await all("Replay all runs of this list…");
    await page.getByRole("button", { name: "Replay 4 runs" }).click();
    await page.getByText("Done. 4 replayed").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/runs\/run_/);
  });

  test("that are roots are shown alone, with columns that are chosen and remembered, and whole task names on a small screen", async (t) => {
    const id = await world.trigger("process-order", order(70), { tags: ["rooted"] });
    await world.reaches(id, "COMPLETED");
    const page = await open(t, at("runs"), { viewport: { width: 1024, height: 768 } });
    await page.getByRole("button", { name: "Root runs only" }).click();
    await page.waitForURL(/root=true/);
    await row(page, id).waitFor();
    const { data } = (await gateway.get(`/api/v1/runs?filter[taskIdentifier]=charge-card&page[size]=1`)).json;
    assert.equal(await row(page, data[0].id).count(), 0, "a child");
    const name = row(page, id).locator(".what a");
    assert.ok(await name.evaluate((link) => link.scrollWidth <= link.clientWidth), "the name is not cut");
    await page.getByRole("button", { name: "Columns" }).click();
    await judge(page);
    await page.keyboard.press("Escape");
    for (const [column, text] of [["Payload", '"order":"70"'], ["Source", "API"], ["Queue", "task/process-order"]]) {
      await page.getByRole("button", { name: "Columns" }).click();
      await page.locator(".menu").getByRole("button", { name: column }).click();
      await page.keyboard.press("Escape");
      await shows(row(page, id), text);
    }
    await judge(page);
    await page.reload();
    await shows(row(page, id), "task/process-order");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.ok(await page.locator(".tabs").evaluate((tabs) => tabs.scrollWidth <= tabs.clientWidth), "every tab is visible");
  });

  test("stay in place while the user scrolls, and older ones are loaded", async (t) => {
    const items = Array.from({ length: 330 }, (_, n) => ({ task: "never", payload: `${n}`, options: { tags: ["many"] } }));
    await gateway.post("/api/v2/tasks/batch", { items }, { key: keys.staging });
    const page = await open(t, at("runs", { env: "staging" })), box = page.locator(".run-scroll"), count = () => page.locator(".run-rows").evaluate((rows) => rows.clientHeight / 40);
    await until(async () => (await count()) === 200, { what: "200 rows" });
    await until(async () => { await box.evaluate((element) => element.scrollTo(0, element.scrollHeight)); return (await count()) === 330; }, { what: "older rows" });
    const first = await page.locator(".run-row").first().getAttribute("id");
    await world.trigger("never", {}, { key: keys.staging });
    await page.getByRole("button", { name: "1 new run" }).waitFor();
    assert.equal(await page.locator(".run-row").first().getAttribute("id"), first);
    await page.getByRole("button", { name: "1 new run" }).click();
    await until(async () => (await box.evaluate((element) => element.scrollTop)) === 0);
  });

  test("can be selected: the loaded ones of a longer list, then all of them", async (t) => {
    const { total } = (await gateway.get("/api/v1/runs/counts?filter[createdAt][period]=7d", { key: keys.staging })).json, page = await open(t, at("runs", { env: "staging" }));
    assert.ok(total > 200);
    await page.locator(".run-row").first().waitFor();
    await page.getByLabel("Select all loaded runs").click();
    await page.getByText(`200 of ${total} selected`).waitFor();
    await page.locator(".run-row input").first().click();
    await page.getByText("199 selected").waitFor();
    await page.getByLabel("Select all loaded runs").click();
    await page.getByRole("button", { name: `Select all ${total}` }).click();
    await page.getByText(`All ${total} selected`).waitFor();
    await judge(page);
    await page.getByRole("toolbar", { name: "Selected runs" }).getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: `Cancel ${total} runs` }).click();
    await page.getByText(`Done. ${total} canceled`).waitFor();
  });
});

describe("a run", () => {
  test("shows its family as one timeline, payload, output, metadata, streams and tags", async (t) => {
    const id = await world.trigger("process-order", order(77), { tags: ["family"] }), page = await open(t, at(`runs/${id}`));
    await page.getByRole("heading", { name: "process-order" }).waitFor();
    await shows(page.locator(".page-head"), "Completed");
    const lines = page.locator(".trace-lines");
    for (const text of ["charge-card", "charging", "send-email", "smtp", "the mail server is slow", "triggerAndWait()"]) await shows(lines, text);
    for (const [name, text] of [["Payload", "ada@example.com"], ["Output", "r-77"], ["Metadata", "100"], ["Streams", "charged r-77"], ["Details", "order_77"], ["Family", "charge-card"]])
      await shows(page.getByRole("region", { name, exact: true }), text);
    await page.getByRole("button", { name: "the mail server is slow" }).first().click();
    await page.getByText("120", { exact: true }).first().waitFor();
    await judge(page);
    await page.getByRole("button", { name: "Copy as…" }).click();
    for (const [name, text] of [["curl", "$TRIGGER_SECRET_KEY"], ["SDK", "tasks.trigger"], ["Python", "urllib.request"]]) {
      await page.getByRole("button", { name, exact: true }).click();
      await shows(page.getByRole("dialog"), text);
      assert.ok(!(await page.getByRole("dialog").textContent()).includes("task/process-order"), "the task's own queue is its default");
    }
    await judge(page);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Replay…" }).click();
    await page.getByRole("textbox", { name: "Payload" }).fill('{"order": "78"');
    await page.getByText("Invalid JSON").waitFor();
    await judge(page);
    await page.getByRole("textbox", { name: "Payload" }).fill(JSON.stringify(order(78)));
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.waitForURL((url) => /\/runs\/run_/.test(url.pathname) && !url.pathname.includes(id));
    await shows(page.getByRole("region", { name: "Output" }), "r-78");
  });

  test("that fails shows its error with the stack, and links to its parent and its source", async (t) => {
    const id = await world.trigger("process-order", order(79, 950));
    await world.reaches(id, "WAITING");
    const child = await until(async () => (await world.run(id)).relatedRuns.children[0]?.id, { everyMs: 100 });
    await world.reaches(child, "FAILED");
    const page = await open(t, `/runs/${child}`);
    await page.waitForURL(new RegExp(`${keys.ref}/runs/${child}\\?env=dev`));
    await page.getByRole("heading", { name: /the bank refuses 950/ }).waitFor();
    await shows(page.getByRole("region", { name: "Error" }), "shop.ts");
    await page.getByRole("region", { name: "Family" }).getByText("process-order").first().click();
    await page.waitForURL(new RegExp(`/runs/${id}`));
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
  });

  test("that executes can be canceled, after a confirmation", async (t) => {
    const id = await world.trigger("rebuild-index", { seconds: 120 }), page = await open(t, at(`runs/${id}`));
    await shows(page.locator(".page-head"), "Executing");
    await shows(page.getByRole("region", { name: "Metadata" }), "done");
    await page.getByRole("button", { name: "Cancel…" }).click();
    await judge(page);
    await page.getByRole("button", { name: "Cancel run" }).click();
    await shows(page.locator(".page-head"), "Canceled");
  });

  test("that exceeds its maxDuration shows that as its error, and its open spans end with the run", async (t) => {
    const id = await world.trigger("rebuild-index", { seconds: 60 }, { maxDuration: 5 });
    await world.reaches(id, "TIMED_OUT");
    const page = await open(t, at(`runs/${id}`));
    await page.getByRole("heading", { name: "The run took longer than its maxDuration of 5 s" }).waitFor();
    const line = page.locator(".trace-lines > li").filter({ hasText: "Attempt 1" });
    await line.waitFor();
    assert.match(await line.getAttribute("class"), /bad/);
    assert.match(await line.locator(".trace-ms").textContent(), /^\d+(\.\d)? s$/);
    assert.equal(await page.getByRole("region", { name: "Output" }).count(), 0);
    await judge(page);
  });

  test("whose process exits shows that as its error, and the bar of each attempt ends with its process", async (t) => {
    const id = await world.trigger("exit-process", { code: 7 });
    await world.reaches(id, "CRASHED");
    const page = await open(t, at(`runs/${id}`));
    await page.getByRole("heading", { name: "The process of the run exited with an error" }).waitFor();
    const lines = page.locator(".trace-lines > li"), bar = async (name) => lines.filter({ hasText: name }).locator(".bar-line").evaluate(({ style }) => Number.parseFloat(style.left) + Number.parseFloat(style.width));
    await lines.filter({ hasText: "Attempt 2" }).waitFor();
    const started = await lines.filter({ hasText: "Attempt 2" }).locator(".bar-line").evaluate(({ style }) => Number.parseFloat(style.left));
    assert.ok(await bar("Attempt 1") < started - 10, "the time until the retry is not part of the first attempt");
    for (const name of ["Attempt 1", "Attempt 2"]) assert.match(await lines.filter({ hasText: name }).getAttribute("class"), /bad/);
    await judge(page);
  });

  test("shows logs of itself and its descendants; they can be searched, filtered by level, opened, copied and downloaded", async (t) => {
    const id = await world.trigger("process-order", order(71));
    await world.reaches(id, "COMPLETED");
    const page = await open(t, at(`runs/${id}`), { permissions: ["clipboard-read", "clipboard-write"] }), logs = page.getByRole("region", { name: "Logs" });
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.waitForURL(/logs=1/);
    for (const text of ["charging", "order=71", "amount=120", "the mail server is slow", "send-email"]) await shows(logs, text);
    await judge(page);
    await page.getByLabel("Search logs").fill("AMOUNT");
    await until(async () => (await logs.locator(".log-row").count()) === 1, { what: "one line" });
    assert.equal(await logs.locator("mark").textContent(), "amount");
    await logs.getByRole("button", { name: /charging/ }).click();
    await logs.getByRole("group", { name: "data" }).waitFor();
    await judge(page);
    await page.getByLabel("Search logs").fill("");
    await page.getByRole("button", { name: "Levels" }).click();
    for (const level of ["Info", "Log", "Debug", "Error"]) await page.locator(".menu").getByRole("button", { name: level }).click();
    await page.keyboard.press("Escape");
    await until(async () => (await logs.locator(".log-row").count()) > 0 && (await logs.locator(".log-row:not(.wait)").count()) === 0, { what: "warnings alone" });
    await logs.getByRole("button", { name: "Copy", exact: true }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /WARN +send-email the mail server is slow \{"ms":120\}/);
    const [file] = await Promise.all([page.waitForEvent("download"), logs.getByRole("button", { name: "Download" }).click()]);
    assert.equal(file.suggestedFilename(), `${id}.log`);
    const saved = path.join(temporaryFolder(), "saved.log");
    await file.saveAs(saved);
    assert.match(fs.readFileSync(saved, "utf8"), /the mail server is slow/);
    await page.getByRole("tab", { name: "Timeline" }).click();
    await page.locator(".trace-lines").waitFor();
  });

  test("with ten thousand logs draws only those near the screen, and finds the last one", async (t) => {
    const id = await world.trigger("send-email", { to: "many@example.com" }, { delay: "1h" }), page = await open(t, at("queues"), { permissions: ["clipboard-read", "clipboard-write"] });
    await page.route(`**/api/v1/runs/${id}/trace`, async (route) => {
      const answer = await (await route.fetch()).json(), root = answer.trace.rootSpan, began = Date.parse(root.data.startTime);
      root.children = Array.from({ length: 10_000 }, (_, n) => ({ id: `log${n}`, parentId: root.id, runId: id, children: [], data: { message: `line ${n} ${"x".repeat(n % 7 ? 20 : 400)}`, startTime: new Date(began + Math.floor(n / 20)).toISOString(), duration: 0, level: n % 100 ? "INFO" : "WARN", properties: { n }, events: [] } }));
      await route.fulfill({ json: answer });
    });
    await page.goto(gateway.url + at(`runs/${id}`, { logs: 1 }));
    const logs = page.getByRole("region", { name: "Logs" }), box = logs.getByRole("region", { name: "Lines" });
    await shows(logs, "10,000 lines");
    await shows(box, "line 9999 "); // it follows the end
    assert.ok(await page.locator(".log-row").count() <= 600);
    await until(async () => { await box.evaluate((element) => element.scrollTo(0, 0)); return (await logs.getByText("line 0 ").count()) === 1; }, { everyMs: 100, what: "the first line" });
    assert.equal(await page.getByRole("button", { name: "Follow" }).getAttribute("aria-pressed"), "false");
    assert.ok(await page.locator(".log-row").count() <= 600);
    const numbers = (texts) => texts.map((text) => /line (\d+) /.exec(text)[1]), firstTen = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]; // twenty lines have the same millisecond
    assert.deepEqual(numbers((await page.locator(".log-row .text").allTextContents()).slice(0, 10)), firstTen);
    await logs.getByRole("button", { name: "Copy", exact: true }).click();
    assert.deepEqual(numbers((await page.evaluate(() => navigator.clipboard.readText())).split("\n").slice(0, 10)), firstTen);
    const [file] = await Promise.all([page.waitForEvent("download"), logs.getByRole("button", { name: "Download" }).click()]);
    const saved = path.join(temporaryFolder(), "saved.log");
    await file.saveAs(saved);
    assert.deepEqual(numbers(fs.readFileSync(saved, "utf8").split("\n").slice(0, 10)), firstTen);
    await page.getByLabel("Search logs").fill("line 5123 ");
    await until(async () => (await page.locator(".log-row").count()) === 1, { what: "the line that matches the search" });
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
  });

  test("that has not started shows the time in its queue, why it waits and until when; one that expired says so", async (t) => {
    const id = await world.trigger("process-order", order(80), { delay: "3h" }), expired = await world.trigger("no-such-task", {}, { ttl: "1s" });
    const page = await open(t, at(`runs/${id}`)), line = page.locator(".trace-lines > li").first();
    await shows(page.locator(".waiting"), "in 2 h 59 min");
    await line.locator(".bar-queue").waitFor();
    assert.equal(await line.locator(".bar-line").count(), 0, "no time of execution");
    assert.ok(!(await page.getByRole("region", { name: "Details" }).textContent()).includes("Attempts"));
    await judge(page);
    await page.getByRole("button", { name: "Reschedule…" }).click();
    await judge(page);
    await page.keyboard.press("Escape");
    await gateway.post(`/api/v2/runs/${id}/cancel`, {});
    await world.reaches(expired, "EXPIRED");
    await page.goto(gateway.url + at(`runs/${expired}`));
    await page.getByRole("heading", { name: "The run expired: no worker started it within 1s" }).waitFor();
    await page.getByText("This run ended before a worker started it.").waitFor();
    await judge(page);
  });

  test("that does not exist is reported as not found, and so is another user's project", async (t) => {
    const page = await open(t, at("runs/run_217aaaaaaaaaaaaaaaaaa"));
    await page.getByRole("heading", { name: "Run not found" }).waitFor();
    await judge(page);
    await page.getByRole("link", { name: "Search all environments" }).click();
    await page.getByText("No environment of your projects has a run").waitFor();
    await judge(page);
    await page.goto(`${gateway.url}/projects/v3/proj_somebodyelsesaaaaaaa/runs`);
    await page.getByRole("heading", { name: "Project not found" }).waitFor();
    await judge(page);
    await page.goto(gateway.url + at("nonsense"));
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await judge(page);
    for (const env of ["nonsense", "constructor"]) {
      await page.goto(gateway.url + at("runs", { env }));
      await page.getByRole("heading", { name: `Environment ${env} not found` }).waitFor();
    }
    await judge(page);
  });
});

describe("the other views", () => {
  test("test: a task is triggered with a payload, from the link that the CLI prints", async (t) => {
    const page = await open(t, `/projects/v3/${keys.ref}/test?environment=dev`);
    await page.getByLabel("Task").selectOption("send-email");
    await page.waitForURL(/test\/send-email/);
    await page.getByLabel("JSON").fill('{"to": "test@example.com"}');
    await page.getByText("The task declares no schema").waitFor();
    await page.getByLabel("Task").selectOption("process-order");
    await until(async () => (await page.getByLabel("JSON").inputValue()).includes('"amount"'), { what: "an example of the payload" });
    assert.equal(await page.locator(".editor .json-name").first().textContent(), '"order"');
    await page.getByLabel("JSON").fill("{}"); // the example has an address, too
    await page.getByRole("button", { name: "Use last payload" }).click();
    await until(async () => /"to": "\w+@example.com"/.test(await page.getByLabel("JSON").inputValue()), { what: "the payload of the last run" });
    await page.getByLabel("JSON").fill('{"order": 7, "amount": 0}');
    for (const hint of ["order", "amount", "to"]) await shows(page.getByLabel("Schema problems"), hint);
    await judge(page);
    await page.getByLabel("Task").selectOption("send-email");
    await page.getByLabel("JSON").fill('{"to": "test@example.com"}');
    await page.getByLabel("Tags").fill("by-hand, twice");
    await judge(page);
    await page.getByRole("button", { name: "Trigger send-email" }).waitFor();
    await page.getByLabel("JSON").press("Control+Enter");
    await page.waitForURL(/\/runs\/run_/);
    await shows(page.locator(".page-head"), "Completed");
    await shows(page.getByRole("region", { name: "Details" }), "by-hand");
  });

  test("batches: their task, tags, progress and failures, by status", async (t) => {
    const item = (task, payload) => ({ task, payload: JSON.stringify(payload), options: { payloadType: "application/json", tags: ["campaign"] } });
    const { id: mixed } = (await gateway.post("/api/v2/tasks/batch", { items: [item("charge-card", order(90, 950)), item("send-email", { to: "ada@example.com" })] })).json;
    const { id } = (await gateway.post("/api/v2/tasks/batch", { items: [1, 2, 3].map((n) => ({ task: "send-email", payload: JSON.stringify({ to: `${n}@example.com` }), options: { payloadType: "application/json" } })) })).json;
    const page = await open(t, at("batches"));
    await page.getByRole("link", { name: id }).waitFor();
    await judge(page);
    const line = page.getByRole("row").filter({ hasText: mixed });
    for (const text of ["campaign", "Partly failed", "2 / 2", "+1"]) await shows(line, text);
    assert.equal(await line.locator(".progress .bad").count(), 1, "the failed run is not drawn as completed");
    await page.getByRole("link", { name: id }).click();
    await shows(page.locator(".page-head"), "Completed");
    await shows(page.getByRole("region", { name: "Progress" }), "Completed 3");
    await judge(page);
  });

  test("queues: paused, resumed, limited and released again", async (t) => {
    const page = await open(t, at("queues")), line = page.getByRole("row").filter({ has: page.getByRole("link", { name: "payments", exact: true }) });
    await page.mouse.move(0, 0);
    const opacity = await line.getByRole("button", { name: "Pause payments" }).evaluate((button) => [button, button.closest("span")].map((one) => getComputedStyle(one).opacity).join());
    assert.equal(opacity, "1,1", "the actions of a row are visible although the mouse is elsewhere");
    await line.getByRole("button", { name: "Pause payments" }).click();
    await line.getByText("Paused").waitFor();
    await judge(page);
    await line.getByRole("button", { name: "Resume payments" }).click();
    await shows(page.getByRole("region", { name: "Environment" }), "at a time");
    await shows(page.getByRole("row").filter({ hasText: "send-email" }), "(environment)");
    await page.getByRole("button", { name: "Pause all…" }).click();
    await judge(page);
    await page.getByRole("button", { name: /^Pause \d+ queues/ }).click();
    await shows(line, "Paused");
    await page.getByRole("button", { name: "Resume all…" }).click();
    await page.getByRole("button", { name: /^Resume \d+ queues/ }).click();
    await line.getByText("Paused").waitFor({ state: "detached" });
    await line.getByRole("button", { name: "Limit of payments" }).click();
    await page.getByLabel("Concurrent runs").fill("7");
    await judge(page);
    await page.getByLabel("One run of each concurrency key").selectOption("skip");
    await page.getByText("One run of each key executes, whatever the limit. 0 starts no run.").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await shows(line, "overridden");
    await shows(line, "singleton: skip");
    const { concurrency, singleton } = (await gateway.get("/api/v1/queues/payments?type=custom")).json;
    assert.deepEqual([concurrency.override, singleton], [7, "skip"]);
    await line.getByRole("button", { name: "Limit of payments" }).click();
    await page.getByLabel("One run of each concurrency key").selectOption("");
    await page.getByRole("button", { name: "Save" }).click();
    await line.getByText("singleton: skip").waitFor({ state: "detached" });
    assert.equal((await gateway.get("/api/v1/queues/payments?type=custom")).json.concurrency.override, 7, "only what was changed is sent");
    await line.getByRole("button", { name: "Limit of payments" }).click();
    await page.getByRole("button", { name: "Remove override" }).click();
    await until(async () => (await gateway.get("/api/v1/queues/payments?type=custom")).json.concurrencyLimit === 2);
  });

  test("limits: runs that hold one and wait for it, keys, overrides, pause; a queue and a run link there", async (t) => {
    const [first, second, third] = [await world.trigger("ship-parcel", {}, { concurrencyKey: "dhl" }), await world.trigger("ship-parcel", {}, { concurrencyKey: "ups" }), await world.trigger("ship-parcel", {}, { concurrencyKey: "dhl" })];
    for (const id of [first, second]) await world.reaches(id, "EXECUTING");
    const page = await open(t, at("limits")), line = page.getByRole("row").filter({ has: page.getByRole("link", { name: "carriers", exact: true }) });
    for (const text of ["Full", "2 of 2", "1"]) await shows(line, text);
    await shows(page.getByRole("row").filter({ hasText: "task/ship-parcel" }), "inline");
    await judge(page);
    await line.getByRole("button", { name: "Override carriers" }).click();
    await page.getByLabel("In total").fill("-1");
    await page.getByText("Enter a whole number from 0 to 100000").waitFor();
    assert.ok(await page.getByRole("button", { name: "Override", exact: true }).isDisabled());
    await page.getByLabel("In total").fill("3");
    await judge(page);
    await page.getByRole("button", { name: "Override", exact: true }).click();
    await shows(line, "overridden");
    const limit = async () => (await gateway.get("/api/v1/concurrency-limits/carriers")).json;
    assert.deepEqual(await limit().then(({ total, perKey }) => [total.override, perKey.override]), [3, null], "only what was changed is overridden");
    const inForce = (await gateway.post("/api/v1/concurrency-limits/carriers/override", { total: 100_000 })).json.total.current;
    await shows(line, `2 of ${inForce}`);
    await shows(line, "overridden to 100,000, 2 in code");
    await gateway.post("/api/v1/concurrency-limits/carriers/override", { total: 3 });
    await shows(line, "overridden, 2 in code");

    await line.getByRole("link", { name: "carriers", exact: true }).click();
    const part = (name) => page.getByRole("region", { name, exact: true });
    for (const id of [first, second]) await shows(part("Holders"), id.slice(-5));
    await shows(part("Waiting"), third.slice(-5));
    await shows(part("Summary"), "of 3 in total");
    const dhl = part("Keys").getByRole("row").filter({ hasText: "dhl" });
    await shows(dhl, "1 of 1");
    await judge(page);
    await dhl.getByRole("button", { name: "Override for dhl" }).click();
    await page.getByLabel("Concurrent runs of this key").fill("2");
    await page.getByLabel("For", { exact: true }).selectOption("1h");
    await judge(page);
    await page.getByRole("button", { name: "Override", exact: true }).click();
    await shows(dhl, "ends in");
    await shows(part("Holders"), third.slice(-5)); // it executes now
    await gateway.post("/api/v1/concurrency-limits/carriers/override", { total: 4 });
    const keyless = await world.trigger("ship-parcel", {});
    await shows(part("Keys").getByRole("row").filter({ hasText: "without a key" }), "1 of 1");
    await gateway.post(`/api/v2/runs/${keyless}/cancel`, {});
    await gateway.post("/api/v1/concurrency-limits/carriers/override", { total: 3 });
    await part("Keys").getByLabel("Look up a key").fill("nobody");
    await page.keyboard.press("Enter");
    await page.waitForURL(/key=nobody/);
    await shows(part("Keys").getByRole("row").filter({ hasText: "nobody" }), "0 of 1");
    await part("Keys").getByRole("button", { name: "Show all" }).click();
    await dhl.getByRole("button", { name: "Override for dhl" }).click();
    await page.getByRole("button", { name: "Remove override" }).click();
    await until(async () => (await gateway.get("/api/v1/concurrency-limits/carriers?concurrencyKey=dhl")).json.perKey.override === null, { what: "the override of the key is removed" });

    await page.getByRole("button", { name: "Pause carriers" }).click();
    await page.getByText("Runs that need this limit do not start").waitFor();
    const held = await world.trigger("ship-parcel", {}, { concurrencyKey: "gls", gates: [{ queue: "payments" }] });
    await page.goto(gateway.url + at(`runs/${held}`));
    await page.getByText("The concurrency limit carriers is paused").waitFor();
    const details = part("Details");
    await shows(details, "Needs limits");
    assert.deepEqual(await details.locator(".names a").allTextContents(), ["task/ship-parcel", "carriers", "payments"]);
    await judge(page);
    await page.getByRole("link", { name: "Show limit" }).click();
    await page.waitForURL(/limits\/carriers\?env=dev&key=gls/);
    await shows(part("Keys").getByRole("row").filter({ hasText: "gls" }), "selected");
    await page.getByRole("button", { name: "Resume carriers" }).click();
    await page.getByRole("button", { name: "Pause carriers" }).waitFor();
    assert.equal((await limit()).paused, false);
    await page.getByRole("button", { name: "Override…" }).first().click();
    await page.getByRole("button", { name: "Remove overrides" }).click();
    await until(async () => (await limit()).total.override === null, { what: "the overrides are removed" });
    await part("Holders").getByRole("link", { name: new RegExp(first.slice(-5)) }).click();
    await shows(details, "Holds limits");
    await page.goto(gateway.url + at("queues"));
    await page.getByRole("row").filter({ hasText: "ship-parcel" }).getByRole("link", { name: "limits of the task" }).click();
    await page.waitForURL(/limits\/task%2Fship-parcel/);
    await page.getByRole("heading", { name: "task/ship-parcel" }).waitFor();
    await page.goto(gateway.url + at("queues"));
    await page.getByRole("link", { name: "payments", exact: true }).click();
    await page.waitForURL(/queues\/payments/);
    await page.getByRole("heading", { name: "payments", exact: true }).waitFor();
    await world.reaches(held, "EXECUTING");
    await shows(part("Holders"), held.slice(-5));
    await shows(part("Holders"), "task/ship-parcel");
    await shows(part("Keys").getByRole("row").filter({ hasText: "gls" }), "1 of 2");
    await judge(page);
    await part("Holders").getByRole("link", { name: "gls" }).click();
    await page.waitForURL(/key=gls/);
    await shows(part("Keys"), "selected");
    await page.goto(gateway.url + at("queues/unknown"));
    await page.getByRole("heading", { name: "Queue not found" }).waitFor();
    await page.goto(gateway.url + at("limits/unknown"));
    await page.getByRole("heading", { name: "Limit not found" }).waitFor();
    await judge(page);
    for (const id of [first, second, third, held]) await world.gateway.post(`/api/v2/runs/${id}/cancel`, {});
  });

  test("rates of a limit and of a queue: set, shown and removed; a run that waits for one says so", async (t) => {
    const page = await open(t, at("limits/carriers")), rates = page.getByRole("region", { name: "Rate", exact: true });
    const get = async (path) => (await gateway.get(path)).json.rate;
    await page.getByRole("button", { name: "Rate…" }).click();
    const save = page.getByRole("button", { name: "Set rate" });
    await page.getByLabel("Starts in total").fill("0");
    await page.getByText("Enter a whole number from 1 to 100000").waitFor();
    assert.ok(await save.isDisabled());
    await page.getByLabel("Starts in total").fill("1");
    await page.getByLabel("Period in total").fill("1h");
    await judge(page);
    await save.click();
    await shows(rates, "1 per 1h");
    assert.deepEqual(await get("/api/v1/concurrency-limits/carriers").then(({ total, perKey }) => [total.starts, total.period, perKey]), [1, "1h", null]);
    const [first, second] = [await world.trigger("ship-parcel", { seconds: 1 }, { concurrencyKey: "a" }), await world.trigger("ship-parcel", { seconds: 1 }, { concurrencyKey: "b" })];
    await world.reaches(first, "COMPLETED");
    await shows(rates, "0 left, next in");
    await judge(page);
    await page.goto(gateway.url + at(`runs/${second}`));
    await page.locator(".waiting").getByRole("link", { name: "Show limit" }).click();
    await page.waitForURL(/limits\/carriers\?env=dev&key=b/);
    await page.goto(gateway.url + at("limits"));
    await shows(page.getByRole("row").filter({ has: page.getByRole("link", { name: "carriers", exact: true }) }), "1 per 1h");
    await page.getByRole("link", { name: "carriers", exact: true }).click();
    await page.getByRole("button", { name: "Rate…" }).click();
    await page.getByLabel("Starts in total").fill("");
    await save.click();
    await rates.waitFor({ state: "detached" });
    assert.equal(await get("/api/v1/concurrency-limits/carriers"), undefined);
    await world.reaches(second, "COMPLETED");

    await page.goto(gateway.url + at("queues"));
    const line = page.getByRole("row").filter({ has: page.getByRole("link", { name: "payments", exact: true }) });
    await line.getByRole("button", { name: "Limit of payments" }).click();
    await page.getByRole("button", { name: "Rate…" }).click();
    await page.getByLabel("Starts for each key").fill("7");
    await page.getByLabel("Period for each key").fill("soon");
    await save.click();
    await page.getByText("perKey.period: must be a duration").waitFor();
    await page.getByLabel("Period for each key").fill("10s");
    await save.click();
    await shows(line, "7 per 10s for each key");
    await line.getByRole("button", { name: "Limit of payments" }).click();
    await page.getByRole("button", { name: "Rate…" }).click();
    await page.getByLabel("Starts for each key").fill("");
    await save.click();
    await line.getByText("7 per 10s").waitFor({ state: "detached" });
    assert.equal(await get("/api/v1/queues/payments?type=custom"), undefined);
  });

  test("schedules: created with a preview of the next times, edited, deactivated, deleted", async (t) => {
    const page = await open(t, at("schedules"));
    await shows(page.getByRole("table"), "Europe/Berlin");
    await page.getByRole("button", { name: "Run daily-report now" }).click();
    await page.waitForURL(/\/runs\/run_/);
    await shows(page.locator(".page-head"), "Completed");
    await page.goto(gateway.url + at("schedules"));
    await page.getByRole("button", { name: "New schedule" }).click();
    await page.getByLabel("Task").fill("daily-report");
    await page.getByLabel("Cron").fill("99 * * * *");
    await page.getByText("Invalid cron expression").waitFor();
    await page.getByLabel("Cron").fill("15 7 * * 1");
    await page.getByLabel("Time zone").fill("America/New_York");
    await until(async () => (await page.locator(".next li").count()) === 5, { what: "five times" });
    await judge(page);
    await page.getByRole("button", { name: "Create schedule" }).click();
    const line = page.getByRole("row").filter({ hasText: "15 7 * * 1" });
    await line.waitFor();
    await line.getByRole("button", { name: "Edit…" }).click();
    await page.getByLabel("Cron").fill("30 8 * * 2");
    await page.locator(".next li").first().waitFor();
    await page.getByText("More options").click();
    await judge(page);
    await page.getByRole("button", { name: "Save" }).click();
    const edited = page.getByRole("row").filter({ hasText: "30 8 * * 2" });
    await edited.getByRole("switch").click();
    await shows(edited, "Off");
    await edited.getByRole("button", { name: "Delete" }).click();
    await judge(page);
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await edited.waitFor({ state: "detached" });
  });

  test("waitpoints: completed by hand, and the run continues", async (t) => {
    const id = await world.trigger("approve-refund", { order: "by-hand" });
    await world.reaches(id, "WAITING");
    const page = await open(t, at("waitpoints")), line = page.getByRole("row").filter({ hasText: "order_by-hand" });
    await shows(line, id.slice(-8)); // the run that waits
    await line.getByRole("button", { name: "Complete…" }).click();
    await judge(page);
    await page.getByLabel("Output").fill('{"approved": true}');
    await page.getByRole("button", { name: "Complete", exact: true }).click();
    await world.reaches(id, "COMPLETED");
    assert.deepEqual((await world.run(id)).output, { order: "by-hand", approved: true });
  });

  test("variables: a secret is written, and never shown", async (t) => {
    const page = await open(t, at("variables"));
    await page.getByRole("heading", { name: "No variables" }).waitFor();
    await judge(page);
    for (const [name, value, isSecret] of [["LOG_LEVEL", "info", false], ["API_TOKEN", "s3cret", true]]) {
      await page.getByRole("button", { name: "New variable" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill(name);
      await page.getByRole("textbox", { name: "Value" }).fill(value);
      if (isSecret) await judge(page);
      await page.getByLabel(/Secret: only/).setChecked(isSecret);
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByRole("row").filter({ hasText: name }).waitFor();
    }
    await page.getByRole("button", { name: "Show LOG_LEVEL" }).click();
    await page.getByText("info", { exact: true }).waitFor();
    await judge(page);
    assert.ok(!(await page.content()).includes("s3cret"));
    await page.getByRole("button", { name: "Edit API_TOKEN" }).click();
    await judge(page);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Delete API_TOKEN" }).click();
    await judge(page);
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("row").filter({ hasText: "API_TOKEN" }).waitFor({ state: "detached" });
  });

  test("deployments: from the CLI's link to the log, promoted and rolled back; prod's workers and runs", async (t) => {
    const first = await deploy(gateway), link = /http:\S+deployments\/\w+/.exec(first.out)?.[0];
    assert.ok(link, first.out);
    const page = await open(t, new URL(link).pathname); // it names no environment
    await page.waitForURL(/env=prod/);
    await shows(page.locator(".page-head"), "Deployed");
    await shows(page.getByRole("region", { name: "Build", exact: true }), "index.json");
    await judge(page);
    await deploy(gateway);
    await page.goto(gateway.url + at("deployments", { env: "prod" }));
    await shows(page.getByRole("row").nth(1), "4.8.3");
    const older = page.getByRole("row").filter({ has: page.getByRole("button", { name: /Make .* the current/ }) });
    await until(async () => await older.count() === 1, { what: "the second version is promoted, and shown as the current one" });
    await older.getByRole("button").click();
    await page.getByRole("button", { name: /Roll back to/ }).waitFor();
    await judge(page);
    await page.getByRole("button", { name: /Roll back to/ }).click();
    await until(async () => (await gateway.get("/api/v1/deployments/current", { key: keys.prod })).json.shortCode === link.split("/").at(-1), { what: "the first version is the current one again" });
    await judge(page);
    await page.goto(gateway.url + at("workers", { env: "prod" }));
    await shows(page.getByRole("table").first(), "Supervisor");
    const id = await world.trigger("send-email", { to: "prod@example.com" }, { key: keys.prod });
    await page.goto(gateway.url + at("runs", { env: "prod" }));
    await shows(row(page, id), "Completed");
  });

  test("overview, workers, keys and tokens", async (t) => {
    const page = await open(t, at("overview"));
    await page.getByRole("region", { name: "Triggered" }).locator("canvas").waitFor();
    await shows(page.getByRole("region", { name: "Summary" }), "Failure rate");
    await shows(page.getByRole("region", { name: "Tasks" }), "charge-card");
    await page.getByRole("link", { name: "Show all" }).waitFor();
    const ends = await page.getByRole("region", { name: "Recent failures" }).locator("time").evaluateAll((times) => times.map(({ dateTime }) => dateTime));
    assert.deepEqual(ends, [...ends].sort().reverse(), "the last failure comes first");
    const alike = await page.getByRole("region", { name: "Recent failures" }).locator(".run-link").evaluateAll((links) => links.map((link) => link.firstChild.firstChild.textContent + link.querySelector(".status").textContent));
    assert.ok(alike.length > 1 && new Set(alike).size === alike.length, `one row for each task and status: ${alike}`);
    await judge(page);
    await page.getByRole("link", { name: "Workers" }).click();
    await page.getByText("Developer CLI").waitFor();
    await judge(page);
    await page.getByRole("link", { name: "Keys and tokens" }).click();
    await shows(page.getByRole("region", { name: "Secret keys", exact: true }).first(), `tr_dev_…${keys.dev.slice(-4)}`);
    await page.getByText("this tab").waitFor();
    await judge(page);
    assert.ok(!(await page.content()).includes(keys.dev));
  });

  test("keys and tokens are shown, copied, created, rotated and revoked, after a fresh sign-in", async (t) => {
    const folder = temporaryFolder(), wall = path.join(folder, "wall");
    const ahead = (ms) => { fs.writeFileSync(`${wall}.new`, `${ms}`); fs.renameSync(`${wall}.new`, wall); };
    ahead(0);
    const other = await startGateway({ t, preload: "shim_clock", env: { SHIM_CLOCK: wall } });
    const link = async () => (await runProgram(["dashboard", "--data", other.data])).stdout.trim();
    const opens = async (key) => (await other.get("/api/v1/runs", { key })).status;
    const page = await open(t, new URL(await link()).hash.replace(/^/, "/"), { token: null, of: other, permissions: ["clipboard-read", "clipboard-write"] });
    const button = (name) => page.getByRole("button", { name, exact: true }), dialog = page.getByRole("dialog").last();
    const made = async () => { await page.locator(".secret code").waitFor(); return page.locator(".secret code").textContent(); };
    await page.waitForURL(/\/runs\?env=/);
    await page.goto(other.url + at("tokens"));
    await button("Show main key").click();
    await shows(page.getByRole("region", { name: "Keys", exact: true }), keys.dev);
    await button("Hide main key").click();
    await button("Copy main key").click();
    await page.getByText("Copied").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), keys.dev);
    assert.ok(!(await page.content()).includes(keys.dev));

    await button("New key").click();
    await judge(page);
    await dialog.getByLabel("Name").fill("Web app");
    await dialog.getByLabel("Expires").selectOption("In 90 days");
    await button("Create key").click();
    const key = await made();
    assert.equal(await opens(key), 200);
    await judge(page);
    await button("Done").click();
    await button("Rotate Web app").click();
    await judge(page);
    await dialog.getByLabel("The old key stays valid").selectOption("For another hour");
    await button("Rotate key").click(); // the sign-in is fresh
    const next = await made();
    assert.deepEqual([await opens(key), await opens(next), next === key], [200, 200, false]);
    await button("Done").click();
    await page.getByText("replaced").waitFor();

    await button("New token").click();
    await dialog.getByLabel("Name").fill("laptop");
    await button("Create token").click();
    const token = await made();
    await button("Done").click();
    assert.ok(!(await page.content()).includes(token));
    ahead(11 * 60_000);
    await button("Rotate Web app").click();
    await dialog.getByLabel("The old key stays valid").selectOption("Not at all: it ends immediately");
    await button("Rotate key").click();
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    await judge(page);
    await button("Cancel").click(); // back to the dialog of the key, which has not changed
    assert.equal(await opens(next), 200);
    await button("Rotate key").click();
    await dialog.getByLabel("Sign-in link or personal access token").fill("tr_pat_unknown");
    await button("Confirm").click();
    await page.getByText("Unknown or expired token").waitFor();
    await dialog.getByLabel("Sign-in link or personal access token").fill(await link());
    await button("Confirm").click();
    const last = await made();
    assert.deepEqual([await opens(next), await opens(last)], [401, 200]);
    await button("Done").click();
    await page.locator("tr").filter({ hasText: "Web app" }).filter({ hasNotText: "replaced" }).getByRole("button", { name: "Revoke Web app" }).click();
    await judge(page);
    await button("Revoke key").click(); // confirmed a moment ago
    await until(async () => await opens(last) === 401, { what: "the key is revoked" });
    await button("Revoke laptop").click();
    await button("Revoke token").click();
    await until(async () => (await other.get("/api/v2/whoami", { key: token })).status === 401, { what: "the token is revoked" });
    await judge(page);

    const tab = await page.evaluate(() => sessionStorage.getItem("runcast.token"));
    await button("Sign out of this tab").click();
    await page.getByRole("heading", { name: "Sign in to runcast" }).waitFor();
    await until(async () => (await other.get("/api/v2/whoami", { key: tab })).status === 401, { what: "signing out ends the sign-in" });
    await page.getByLabel("Personal access token").fill(keys.pat);
    await button("Sign in").click();
    await page.getByRole("heading", { name: "Keys and tokens" }).waitFor();
    assert.notEqual(await page.evaluate(() => sessionStorage.getItem("runcast.token")), keys.pat, "the tab does not keep the token");
  });

  test("tables show all of their columns on a small screen, without scrolling, and each row is low", async (t) => {
    const long = "resize-images-and-publish-them-to-the-content-delivery-network", token = (await gateway.post("/api/v1/waitpoints/tokens", { timeout: "2h", tags: ["approval", "order_1"] })).json.id;
    await world.trigger(long, {}, { ttl: "1s" });
    await gateway.post("/api/v2/tasks/batch", { items: Array.from({ length: 500 }, () => ({ task: long, payload: "{}", options: { ttl: "1s", tags: ["campaign"] } })) });
    await gateway.post("/api/v1/schedules", { task: "daily-report", cron: "30 9 * * 1-5", timezone: "America/Argentina/ComodRivadavia", deduplicationKey: "wide", externalId: "customer-42" });
    if (!(await gateway.get("/api/v1/deployments", { key: keys.prod })).json.data.length) await deploy(gateway);
    const page = await open(t, at("overview"), { viewport: { width: 1024, height: 768 } });
    const lastRun = { id: "run_last", status: "SYSTEM_FAILURE", createdAt: new Date(Date.now() - 25 * 86_400_000) }; // schedules have one at any time of day
    await page.route((url) => url.searchParams.has("filter[schedule]"), (route) => route.fulfill({ json: { data: [lastRun] } }));
    for (const [view, text, env] of [["overview", long], ["batches", "campaign"], ["schedules", "System failure"], ["waitpoints", "approval"], ["deployments", "4.8.3", "prod"], ["workers", "shop.ts"], ["tokens", "this tab"], ["queues", "payments"]]) {
      await page.goto(gateway.url + at(view, { env: env ?? "dev" }));
      await until(async () => (await page.locator("table").allTextContents()).join().includes(text), { what: `${view} shows ${text}` });
      const sizes = await page.evaluate(() => ({
        page: document.documentElement.scrollWidth - innerWidth, tables: [...document.querySelectorAll(".scroll")].map((box) => box.scrollWidth - box.clientWidth),
        cut: [...document.querySelectorAll(".batch-name b")].filter((name) => name.textContent.length < 14 && name.scrollWidth > name.clientWidth).length,
        heights: Math.max(...[...document.querySelectorAll("tbody tr")].map((row) => row.clientHeight)),
      }));
      assert.ok(sizes.page <= 0 && sizes.tables.every((over) => over <= 0) && sizes.heights < 150 && !sizes.cut, `${view}: ${JSON.stringify(sizes)}`);
    }
    await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, {});
  });

  test("links that the CLI prints open a page: the error of a build, or the runs", async (t) => {
    const page = await open(t, `/projects/v3/${keys.ref}/ai-help?q=${encodeURIComponent("Could not resolve ./mail")}`);
    await page.getByRole("heading", { name: "Build failed" }).waitFor();
    await page.getByText("Could not resolve ./mail").waitFor();
    await judge(page);
    for (const path of ["/login", "/orgs/my-org-1234/projects/new"]) {
      await page.goto(gateway.url + path);
      await page.waitForURL(/\/runs\?env=/);
    }
  });

  test("on a phone: the navigation opens by a button, and time zone and theme can be chosen", async (t) => {
    const page = await open(t, at("runs"), { viewport: { width: 390, height: 800 } });
    await page.locator(".run-row").first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the phone");
    await page.getByRole("button", { name: "Navigation" }).click();
    await judge(page);
    await page.getByRole("link", { name: "Queues" }).click();
    await page.getByRole("heading", { name: "Queues" }).waitFor();
    await page.getByRole("button", { name: "Appearance and account" }).click();
    await judge(page);
    await page.getByRole("button", { name: "UTC" }).click();
    await page.getByRole("button", { name: "Dark" }).click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  });
});

describe("preview", () => {
  test("has runs in its branches, also in those with unusual names", async (t) => {
    const page = await open(t, at("runs", { env: "preview" })), branch = "größe/分支";
    await page.getByRole("heading", { name: "No preview branches yet" }).waitFor();
    await judge(page);
    await gateway.post(`/api/v1/projects/${keys.ref}/branches`, { env: "preview", branch }, { key: keys.pat });
    await page.goto(gateway.url + at("runs", { env: "preview" }));
    await page.waitForURL((url) => url.searchParams.get("branch") === branch);
    await page.getByRole("heading", { name: "No runs in preview yet" }).waitFor();
    for (const [view, heading] of Object.entries({ runs: "No runs in preview yet", batches: "No batches", queues: "No queues yet", limits: "No concurrency limits", schedules: "No schedules", waitpoints: "No waiting tokens", variables: "No variables", deployments: "No deployments in preview", workers: "No version in preview", test: "No tasks in preview" })) {
      await page.goto(gateway.url + at(view, { env: "preview", branch }));
      await page.getByRole("heading", { name: heading }).waitFor();
      await judge(page);
    }
    await page.goto(gateway.url + at("runs", { env: "preview", branch }));
    const headers = { authorization: `Bearer ${keys.preview}`, "content-type": "application/json", "x-trigger-branch": Buffer.from(branch).toString("latin1") };
    const { id } = await (await fetch(`${gateway.url}/api/v1/tasks/send-email/trigger`, { method: "POST", headers, body: '{"payload":"{}"}' })).json();
    await row(page, id).waitFor();
    await page.goto(`${gateway.url}/runs/${id}`);
    await page.waitForURL((url) => url.searchParams.get("branch") === branch && url.pathname.endsWith(id));
    await page.goto(gateway.url + at("runs", { env: "preview", branch: "unknown-branch" }));
    await page.getByRole("heading", { name: "Branch not found" }).waitFor();
    await page.getByRole("link", { name: branch }).click();
    await row(page, id).waitFor();
  });
});

describe("content of a task's author", () => {
  const register = (tasks, key) => gateway.post(`/api/v1/projects/${keys.ref}/background-workers`, { localOnly: true, engine: "V2", metadata: { packageVersion: "4.8.3", contentHash: `${Math.random()}`, tasks } }, { key });
  const wide = { $ref: "#/d", d: { type: "object", properties: Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`p${i}`, { $ref: "#/d" }])) } };
  const deep = { ...Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`d${i}`, { anyOf: Array(30).fill({ $ref: `#/d${i + 1}` }) }])), d9: { type: "null" }, default: 1, anyOf: Array(30).fill({ $ref: "#/d0" }) };
  const odd = { type: "object", required: { length: 3 }, properties: { a: { type: "string", format: "constructor", minLength: { toString: 1, valueOf: 1 } }, b: { $ref: "#/%" }, c: { $ref: {} }, d: { type: "number", minimum: { valueOf: 1 } } } };

  test("endless or invalid schemas do not stop the page", async (t) => {
    const { json: { token: key } } = await gateway.post(`/api/v1/projects/${keys.ref}/staging/jwt`, { claims: { scopes: ["admin"] } }, { key: keys.pat });
    assert.ok(key);
    const made = await register([["wide", wide], ["deep", deep], ["odd", odd]].map(([id, payloadSchema]) => ({ id, filePath: "a.ts", exportName: id, payloadSchema })), keys.dev);
    assert.equal(made.status, 200, made.text);
    const page = await open(t, at("test"));
    for (const task of ["wide", "deep", "odd"]) {
      await page.getByLabel("Task").selectOption(task);
      await page.getByRole("button", { name: `Trigger ${task}` }).waitFor();
      await page.getByLabel("JSON").fill('{"a":"x","b":1,"c":2,"d":3}');
      await page.getByRole("button", { name: `Trigger ${task}` }).waitFor();
    }
  });

  test("a run with many streams leaves connections for everything else, also in several tabs", async (t) => {
    const { json: { id } } = await gateway.post("/api/v1/tasks/send-email/trigger", { payload: "{}", options: { delay: "1h" } });
    for (let i = 0; i < 7; i++) {
      const { status, text } = await gateway.post(`/realtime/v1/streams/${id}/self/s${i}`, "still going");
      assert.ok(status < 300, text);
    }
    const page = await open(t, at(`runs/${id}`));
    await page.getByRole("region", { name: "Streams" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Read" }).count(), 5);
    const others = [];
    for (let i = 0; i < 2; i++) {
      const other = await page.context().newPage();
      await other.goto(gateway.url + at(`runs/${id}`));
      await other.getByRole("region", { name: "Streams" }).waitFor();
      others.push(other);
    }
    await others.at(-1).getByRole("button", { name: "Cancel…" }).click();
    await others.at(-1).getByRole("button", { name: "Cancel run" }).click();
    await world.reaches(id, "CANCELED");
  });
});

describe("a version that declares features which the gateway lacks", () => {
  const tasks = [{ id: "plain" }, { id: "chat", agentConfig: { type: "ai-sdk-chat" }, triggerSource: "agent" }];
  const warnings = (page) => page.getByRole("note", { name: "Warning" });
  const ofPrompts = "This gateway does not have prompts", ofAgents = "This gateway does not have sessions and agents that chat";

  /** Asserts that the page has one warning for each text, in this order. */
  async function warns(page, ...texts) {
    const all = await until(async () => { const found = await warnings(page).allTextContents(); return found.length === texts.length && found; }, { everyMs: 50, what: `${texts.length} warnings` });
    for (const [i, text] of texts.entries()) assert.ok(all[i].includes(text), `${all[i]} has ${text}`);
  }

  test("has warnings: with the current version, its tasks, and their tests", async (t) => {
    const own = await startGateway({ t });
    await Worker.register(own, { tasks, prompts: [{ id: "greeting", filePath: "a.ts", content: "Hello" }] });
    const page = await open(t, at("workers"), { of: own });
    await page.getByRole("region", { name: "Current version" }).waitFor();
    await warns(page, `${ofPrompts}: a run that resolves one fails: greeting`, ofAgents);
    const marked = (slug) => page.getByRole("row", { name: slug }).getByText("not supported").count();
    assert.deepEqual([await marked("chat"), await marked("plain")], [1, 0]);
    await judge(page);
    await page.goto(own.url + at("test/chat"));
    await page.getByRole("button", { name: "Trigger chat" }).waitFor();
    await warns(page, `${ofAgents}: a run that chats`);
    await judge(page);
    await page.goto(own.url + at("test/plain"));
    await page.getByRole("button", { name: "Trigger plain" }).waitFor();
    await warns(page);
    await own.stop();
  });

  test("has them with a run that failed by one of them, and with no other run", async (t) => {
    const own = await startGateway({ t }), worker = await Worker.register(own, { tasks, prompts: [{ id: "greeting", filePath: "a.ts", content: "Hello" }] });
    const refusal = (await own.get("/api/v1/prompts/greeting")).json.error, error = (message) => ({ type: "BUILT_IN_ERROR", name: "Error", message, stackTrace: `Error: ${message}` });
    const fail = async (message) => {
      const attempt = await worker.take(await worker.trigger("plain"));
      await attempt.fail(error(message));
      return attempt.id;
    };
    const [failed, other] = [await fail(`404 ${refusal}`), await fail("out of paper")];
    const page = await open(t, at(`runs/${failed}`), { of: own });
    await page.getByText(refusal).first().waitFor();
    await warns(page, ofPrompts);
    await judge(page);
    await page.goto(own.url + at(`runs/${other}`));
    await page.getByText("out of paper").first().waitFor();
    await warns(page);
    await own.stop();
  });

  test("has them with its deployment", async (t) => {
    const own = await startGateway({ t }), builder = await Builder.start(own), deploying = new Deployer(own).deploy();
    const { deployment } = await builder.build(tasks);
    assert.equal((await deploying).status, 200);
    const page = await open(t, at(`deployments/${deployment.id}`, { env: "prod" }), { of: own });
    const marks = page.getByRole("region", { name: "Tasks" }).locator(".task-grid > div", { hasText: "not supported" });
    await marks.first().waitFor();
    assert.match((await marks.allTextContents()).join(), /^chat/);
    await warns(page, `${ofAgents}: a run that chats`);
    await judge(page);
    await own.stop();
  });
});

describe("the server of the page", () => {
  const load = (of, host, target = "/") => of.http.request("GET", target, { key: null, headers: { host } });

  test("restricts by a policy what the page may load, and accepts only known host names", async (t) => {
    const { port } = gateway, page = await load(gateway, `127.0.0.1:${port}`), policy = page.headers["content-security-policy"];
    assert.equal(page.status, 200);
    assert.ok(!policy.includes("unsafe"), policy);
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal((await load(gateway, `localhost:${port}`)).status, 200);
    assert.equal((await load(gateway, "evil.example.com")).status, 421);
    const named = await startGateway({ t, options: ["--public-url", "https://runs.example.com"] });
    assert.equal((await load(named, "Runs.example.com")).status, 200);
    assert.equal((await load(named, "runs.example.com.evil.net")).status, 421);
    const total = await Promise.all(["/", "/dashboard/app.js", "/dashboard/app.css", "/dashboard/icon.svg"].map(async (target) => {
      const { headers } = await gateway.http.request("GET", target, { key: null, headers: { "accept-encoding": "gzip" } });
      assert.equal(headers["x-content-type-options"], "nosniff");
      return Number(headers["content-length"]);
    }));
    assert.ok(total.reduce((sum, bytes) => sum + bytes) < 150_000, `${total} bytes`);
    await named.stop();
  });

  test("serves the page only at the admin listener, or not at all, according to the setting", async (t) => {
    const off = await startGateway({ t, options: ["--dashboard", "off"] });
    assert.match((await load(off, "localhost")).text, /--dashboard/);
    assert.equal((await load(off, "localhost", "/dashboard/app.js")).status, 404);
    await off.stop();
    const admin = await startGateway({ t, options: ["--dashboard", "admin"] });
    assert.equal((await load(admin, "localhost", "/dashboard/app.js")).status, 404);
    assert.match((await admin.getAsAdmin("/", { host: "localhost" })).text, /app\.js/);
    assert.equal((await admin.getAsAdmin("/api/v2/whoami", { host: "localhost", authorization: `Bearer ${keys.pat}` })).status, 200);
    assert.equal((await admin.getAsAdmin("/api/v2/whoami", { host: "localhost" })).status, 401);
    assert.equal((await admin.getAsAdmin("/", { host: "evil.example.com" })).status, 403);
    await admin.stop();
    const port = await freePort(), listens = await startGateway({ t, options: ["--dashboard", "admin", "--admin-listen", `127.0.0.1:${port}`] });
    const link = async (of) => (await runProgram(["dashboard", "--data", of.data])).all.trim();
    assert.match(await link(listens), new RegExp(`^http://127.0.0.1:${port}/#signin=`));
    const login = await listens.post("/api/v1/authorization-code", { codeChallenge: "A".repeat(43), codeChallengeMethod: "S256" }, { key: null });
    assert.match(login.json.url, new RegExp(`^http://127.0.0.1:${port}/account/`));
    await listens.stop();
    const none = await startGateway({ t, options: ["--dashboard", "off"] });
    assert.match(await link(none), /the dashboard is off/);
    await none.stop();
  });

  test("is the only server that the page sends requests to", async (t) => {
    const tab = await browser.open(t, "about:blank"), hosts = new Set();
    tab.page.on("request", (request) => hosts.add(new URL(request.url()).host));
    await tab.page.goto(`${gateway.url}/`);
    await tab.page.getByRole("heading", { name: "Sign in to runcast" }).waitFor();
    assert.deepEqual([...hosts].filter(Boolean), [`127.0.0.1:${gateway.port}`]);
  });
});
