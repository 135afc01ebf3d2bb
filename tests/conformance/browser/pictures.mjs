// pictures.mjs - takes the pictures in src/web/dashboard/pictures again, of a shop whose tasks the CLI executes.
//
//   GATEWAY_BIN=build-gcc/runcast node tests/conformance/browser/pictures.mjs
//
// It triggers runs for some minutes. On a busy machine their times are long; take the pictures on a quiet one.
import fs from "node:fs";

import { startCli } from "../../support/js/cli.mjs";
import { shop } from "../../support/js/dashboard_world.mjs";
import { keys, sleep, startGateway, until } from "../../support/js/gateway.mjs";
import { startBrowser } from "./tab.mjs";

const folder = new URL("../../../src/web/dashboard/pictures/", import.meta.url);
const size = { width: 1360, height: 860 }, minutes = 4, paceMs = 6000; // ms between orders
const customers = ["ada", "grace", "linus", "margaret", "edsger", "barbara"];

const gateway = await startGateway(), cli = await startCli({ gateway, folder: shop, logLevel: "log" }), browser = await startBrowser();

async function trigger(task, payload, options = {}) {
  const { status, json, text } = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload: JSON.stringify(payload), options: { payloadType: "application/json", ...options } });
  if (status !== 200) throw new Error(text);
  return json.id;
}

const show = async (id) => (await gateway.get(`/api/v3/runs/${id}`, { headers: { "x-trigger-api-version": "2025-07-16" } })).json;
const ends = (id) => until(async () => { const run = await show(id); return run.finishedAt && run; }, { timeoutMs: 300_000, everyMs: 500, what: `${id} ends` });

/** Triggers the nth order; every seventh is too expensive. */
function placeOrder(n) {
  const to = `${customers[n % customers.length]}@example.com`, tags = [["eu"], ["us", "express"], []][n % 3];
  return trigger("process-order", { order: `${4700 + n}`, amount: n % 7 === 3 ? 950 : 40 + n, to }, { tags });
}

/** Fills the environment; returns an order that completes. */
async function fill() {
  const first = await placeOrder(0);
  for (const order of ["4688", "4702"]) await trigger("approve-refund", { order }, { tags: ["refund"] });
  await trigger("rebuild-index", { seconds: 250 });
  await trigger("send-email", { to: "newsletter@example.com" }, { delay: "3h", tags: ["newsletter"] });
  await ends(first);
  for (let n = 1; n < minutes * 60_000 / paceMs; n++) {
    await placeOrder(n);
    if (n % 4 === 0) await trigger("send-email", { to: `${customers[n % customers.length]}@example.com` }, { tags: ["receipt"] });
    await sleep(paceMs); // the pace of the orders
  }
  return first;
}

/** Saves a picture of a view, once it shows the text. */
async function take(name, view, text, { colorScheme = "light", act = () => {} } = {}) {
  const closing = [], { page } = await browser.open({ after: (end) => closing.push(end) }, "about:blank", { viewport: size, colorScheme });
  await page.addInitScript((token) => sessionStorage.setItem("runcast.token", token), keys.pat);
  await page.goto(`${gateway.url}/projects/v3/${keys.ref}/${view}`);
  await page.getByText(text).first().waitFor();
  await act(page);
  await sleep(2000); // the plots and the first traces are drawn
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 88 });
  fs.writeFileSync(new URL(`${name}.webp`, folder), Buffer.from(data, "base64"));
  for (const end of closing) await end();
}

try {
  const order = await fill(), { data: [failed] } = (await gateway.get("/api/v1/runs?filter[taskIdentifier]=charge-card&filter[status]=FAILED&page[size]=1")).json;
  await take("runs", "runs?env=dev", "process-order");
  await take("run", `runs/${order}?env=dev`, "the mail server is slow");
  await take("overview", "overview?env=dev", "Recent failures", { act: (page) => page.getByRole("button", { name: "15 minutes" }).click() });
  await take("failed", `runs/${failed.id}?env=dev`, "the bank refuses", { colorScheme: "dark" });
} finally {
  await browser.stop();
  await cli.stop();
  await gateway.stop();
}
