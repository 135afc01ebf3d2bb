// deploy/grafana: the dashboard and the alerts query only what a gateway exports, and the alerts fire when they should.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { freePort, keys, startGateway, temporaryFolder } from "../support/js/gateway.mjs";
import { promtool } from "../support/js/promtool.mjs";
import { makeCertificate } from "../support/js/tls.mjs";
import { Worker } from "../support/js/worker_calls.mjs";

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../deploy/grafana");
const file = (name) => path.join(folder, name);
const board = JSON.parse(fs.readFileSync(file("runcast.json"), "utf8"));
const rules = fs.readFileSync(file("alerts.yaml"), "utf8").replace(/^ *#.*\n/gm, "");
const alerts = rules.split(/^ +- alert: /m).slice(1).map((text) => ({
  name: text.slice(0, text.indexOf("\n")), text,
  expr: /expr: (?:>-)?([^]*?)\n +for: /.exec(text)[1].replace(/\s+/g, " ").trim(),
}));
const panels = board.panels.filter(({ type }) => type !== "row");
const ofPrometheus = ["job", "instance"]; // labels that the scrape adds

/** { name, labels: { name: Set of values } } of each metric that a busy gateway exports. */
let exported;
before(async () => {
  const { certificate, key } = makeCertificate(temporaryFolder(), "own"), port = await freePort();
  const gateway = await startGateway({ port, options: ["--storage-quota", "1m", "--listen", `127.0.0.1:${port}`, "--listen", `127.0.0.1:${await freePort()},tls`, "--tls-cert", certificate, "--tls-key", key] });
  const worker = await Worker.register(gateway, { tasks: ["hello"], key: keys.dev });
  await (await worker.take(await worker.trigger("hello"))).succeed(1);
  const full = await gateway.post("/api/v1/tasks/hello/trigger", { payload: "x".repeat(2 << 20) });
  assert.equal(full.status, 507, full.text); // so that the route has a sample of that class
  const metrics = await gateway.metrics();
  await gateway.stop();
  exported = new Map();
  for (const sample of metrics.keys()) {
    const [, name, text = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(sample);
    if (!exported.has(name)) exported.set(name, new Map());
    for (const [, label, value] of text.matchAll(/(\w+)="([^"]*)"/g))
      exported.get(name).set(label, (exported.get(name).get(label) ?? new Set()).add(value));
  }
});

/** Everything that an expression names must exist. Returns the labels that its metrics have. */
function check(expr, where) {
  const selectors = [...expr.matchAll(/\b((?:runcast|process)_\w+)\{([^}]*)\}/g)];
  const known = new Set(ofPrometheus);
  assert.ok(selectors.length, `${where}: names no metric`);
  for (const [, name, matchers] of selectors) {
    const labels = exported.get(name);
    assert.ok(labels, `${where}: ${name} is not exported`);
    for (const label of labels.keys()) known.add(label);
    for (const [, label, operator, value] of matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
      if (ofPrometheus.includes(label)) continue;
      assert.ok(labels.has(label), `${where}: ${name} has no label ${label}`);
      if (operator === "=") assert.ok(labels.get(label).has(value), `${where}: ${name} is never ${label}="${value}"`);
    }
  }
  const bare = expr.replace(/\{[^}]*\}/g, "").match(/\b(?:runcast|process)_\w+/g);
  assert.equal(bare.length, selectors.length, `${where}: each metric says whose it is`);
  for (const [, list] of expr.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(", ")) assert.ok(known.has(label), `${where}: there is no label ${label} to sum by`);
  return known;
}

test("each panel queries metrics that a gateway exports, and uses labels that they have", () => {
  for (const { title, targets } of panels)
    for (const { expr, legendFormat } of targets) {
      const known = check(expr, title);
      const summed = /\bby \(([^)]*)\)/.exec(expr)?.[1].split(", ");
      const left = summed ?? (/^sum\(|histogram_quantile/.test(expr) ? [] : [...known]);
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) assert.ok(left.includes(label), `${title}: nothing is left of ${label}`);
    }
  for (const { query, name } of board.templating.list.filter(({ type }) => type === "query")) {
    const [, metric, label] = /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec(query.query);
    assert.ok(exported.has(metric) && (ofPrometheus.includes(label) || exported.get(metric).has(label)), name);
  }
});

test("Grafana can show the dashboard: delivery first, each panel with a unit and a description, no two overlapping", () => {
  assert.equal(board.panels[0].title, "Delivery time, commit to socket");
  assert.ok(board.schemaVersion >= 38 && board.uid && board.title);
  assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length);
  assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length);
  const taken = new Set();
  for (const { title, gridPos: { x, y, w, h } } of board.panels)
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        assert.ok(column < 24 && !taken.has(`${column} ${line}`), `${title} is over another`);
        taken.add(`${column} ${line}`);
      }
  for (const { title, description, datasource, fieldConfig, targets } of panels) {
    assert.ok(description.length > 5 && fieldConfig.defaults.unit, title);
    for (const each of [datasource, ...targets.map((target) => target.datasource)]) assert.equal(each.uid, "${datasource}", title);
  }
  const variables = board.templating.list.map(({ name }) => name);
  for (const [, name] of JSON.stringify(panels).matchAll(/\$\{?([a-z]\w*)/g)) assert.ok(variables.includes(name), name);
});

test("each alert queries metrics that a gateway exports, and has a severity, an instruction, and a link to its panel", () => {
  assert.ok(alerts.length >= 9, "all were found");
  for (const { name, text, expr } of alerts) {
    if (name !== "RuncastDown") check(expr, name);
    assert.match(text, /\n +severity: (page|ticket)\n/, name);
    assert.match(text, /\n +summary: .+\n +description: >-\n/, name);
    for (const [, title] of text.slice(text.indexOf("description:")).matchAll(/"([^"]+)"/g))
      assert.ok(panels.some((panel) => panel.title === title), `${name}: there is no panel "${title}"`);
  }
});

test("Prometheus accepts the alerts, and they fire in their cases and no others", () => {
  const checked = promtool(["check", "rules", file("alerts.yaml")]);
  assert.deepEqual([checked.status, /SUCCESS: (\d+) rules/.exec(checked.output)?.[1]], [0, `${alerts.length}`], checked.output);
  const tested = promtool(["test", "rules", file("alerts.test.yaml")]);
  assert.equal(tested.status, 0, tested.output);
  const cases = fs.readFileSync(file("alerts.test.yaml"), "utf8");
  for (const { name } of alerts) assert.match(cases, new RegExp(`alertname[=:] ?"?${name}\\b`), `a case where ${name} fires`);
});
