// The README's five minutes, run as they are written: its own lines in a shell, in an empty
// folder. Only what npm would fetch is linked from here; README_INSTALL=1 lets npm do it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { workerFolder } from "../../support/js/cli.mjs";
import { keys, startGateway, temporaryFolder, until } from "../../support/js/gateway.mjs";

const readme = fs.readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
const section = readme.slice(readme.indexOf("## Run your tasks in five minutes")).split("\n## ")[0].slice(1);

/** The indented block behind the sentence that contains `words`. */
function block(words) {
  const at = section.indexOf(words);
  assert.ok(at >= 0, `the README says: ${words}`);
  const lines = section.slice(at).split("\n"), begin = lines.findIndex((line) => line.startsWith("    "));
  const end = lines.findIndex((line, i) => i > begin && line && !line.startsWith("    "));
  return lines.slice(begin, end).map((line) => line.slice(4)).join("\n");
}

/** A shell in the folder, with the variables that the first start prints. */
function shell(gateway, folder, script) {
  const scratch = temporaryFolder(), stub = pathToFileURL(path.join(workerFolder, "stub-net.mjs")).href;
  const child = spawn("bash", ["-c", `set -e\n${script}`], {
    cwd: folder,
    detached: true, // its group ends with it
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env, HOME: scratch, TMPDIR: scratch, STUB_ANSWER: "1", NODE_OPTIONS: `--import ${stub}`, NO_COLOR: "1",
      PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
      TRIGGER_API_URL: gateway.url, TRIGGER_SECRET_KEY: keys.dev,
      TRIGGER_PROJECT_REF: keys.ref, TRIGGER_ACCESS_TOKEN: keys.pat,
    },
  });
  const one = { child, said: "" };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { one.said += text; });
  one.ended = new Promise((resolve) => child.on("close", (code) => { one.code = code ?? 1; resolve(one.code); }));
  return one;
}

async function run(gateway, folder, script) {
  const one = shell(gateway, folder, script);
  assert.equal(await one.ended, 0, one.said);
  return one.said;
}

test("an empty folder, a task, npx trigger.dev dev, trigger and watch, as the README says", async (t) => {
  const gateway = await startGateway({ t });
  const folder = fs.realpathSync(temporaryFolder());
  const [init, install] = block("The worker is the official CLI").trim().split("\n");
  await run(gateway, folder, init);
  if (process.env.README_INSTALL) {
    await run(gateway, folder, install);
  } else {
    const { dependencies, devDependencies } = JSON.parse(fs.readFileSync(path.join(workerFolder, "package.json")));
    const wanted = Object.entries({ ...dependencies, ...devDependencies }).map(([name, version]) => `${name}@${version}`);
    assert.equal(install, `npm install ${wanted.join(" ")}`);
    fs.symlinkSync(path.join(workerFolder, "node_modules"), path.join(folder, "node_modules"));
    fs.copyFileSync(path.join(workerFolder, "package-lock.json"), path.join(folder, "package-lock.json"));
  }
  await run(gateway, folder, block("A task, and where tasks are"));

  const cli = shell(gateway, folder, block("This executes them"));
  t.after(() => { if (cli.code === undefined) process.kill(-cli.child.pid, "SIGKILL"); });
  await until(() => cli.code !== undefined || cli.said.includes("Local worker ready"), { timeoutMs: 100_000, what: "the CLI is ready" });
  assert.equal(cli.code, undefined, cli.said);

  const seen = (await run(gateway, folder, block("Trigger and watch"))).trim().split("\n");
  assert.ok(seen.includes("WAITING { step: 'waiting' } undefined"), seen.join("\n"));
  assert.equal(seen.at(-1), "COMPLETED { step: 'waiting' } { greeting: 'Hello, Ada!' }", seen.join("\n"));

  // In an editor the next version is one save away; what executes ends as it began. The wait keeps
  // its length: the SDK sends metadata once a second and does not wait for that when a run ends, so
  // that of a run of one second may come behind its end.
  const earlier = shell(gateway, folder, "node watch.mjs");
  await until(() => earlier.said.includes("WAITING"), { timeoutMs: 40_000, what: "a run that waits" });
  const file = path.join(folder, "src/trigger/hello.ts");
  fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("Hello,", "Good morning,"));
  await until(() => /Local worker ready.*\.2\b/.test(cli.said), { timeoutMs: 60_000, what: "the second version" });
  const next = (await run(gateway, folder, "node watch.mjs")).trim().split("\n");
  assert.equal(next.at(-1), "COMPLETED { step: 'waiting' } { greeting: 'Good morning, Ada!' }", next.join("\n"));
  assert.equal(await earlier.ended, 0, earlier.said);
  assert.equal(earlier.said.trim().split("\n").at(-1), seen.at(-1), earlier.said);

  process.kill(-cli.child.pid, "SIGTERM");
  await cli.ended;
  await gateway.stop();
});
