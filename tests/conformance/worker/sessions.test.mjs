// Two official CLIs with different code in one environment. Each executes its own tasks, also after an edit, after a
// kill of the gateway, and after the other CLI has exited. An edit does not affect runs that began before it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { project, startCli } from "../../support/js/cli.mjs";
import { startGateway, until } from "../../support/js/gateway.mjs";

const head = `import { schedules, task, wait } from "@trigger.dev/sdk";\n`;
const simple = (id, by) => `export const ${id} = task({ id: "${id}", run: async () => "${by}" });\n`;
/** Tasks of a parent that waits for its children one by one; each returns the name of the code that executed it. */
const family = (by) => `${simple("quick", by)}
export const patient = task({ id: "patient", run: async ({ token }: { token: string }) => {
  await wait.forToken(token).unwrap();
  return "${by}";
} });
export const parent = task({ id: "parent", run: async ({ token }: { token?: string }) => {
  const one = token ? await patient.triggerAndWait({ token }).unwrap() : await quick.triggerAndWait({}).unwrap();
  return [one, await quick.triggerAndWait({}).unwrap(), "${by}"];
} });\n`;
const first = `${head}${simple("alpha", "first")}${simple("both", "first")}${simple("child", "first")}
export const ticks = schedules.task({ id: "ticks", cron: "0 3 * * *", run: async () => {} });\n`;
const [edited, again] = ["edited", "again"].map((by) => `${head}${family(by)}${simple("alpha", by)}${simple("both", by)}`);
const second = `${head}${simple("beta", "second")}${simple("both", "second")}
export const tocks = schedules.task({ id: "tocks", cron: "0 4 * * *", run: async () => {} });\n`;

test("each of two CLIs executes its own tasks", async (t) => {
  const gateway = await startGateway({ t });
  const trigger = async (task, payload = {}) => {
    const reply = await gateway.post(`/api/v1/tasks/${task}/trigger`, { payload });
    assert.equal(reply.status, 200, reply.text);
    return reply.json.id;
  };
  const show = async (id) => (await gateway.get(`/api/v3/runs/${id}`)).json;
  const ended = async (id) => {
    let run;
    await until(async () => { run = await show(id); return run.isCompleted; }, { timeoutMs: 120_000, everyMs: 50, what: `${id} has ended` })
      .catch(() => assert.fail(JSON.stringify(run)));
    return run;
  };
  const execute = async (task) => ended(await trigger(task));
  const scheduled = async () => (await gateway.get("/api/v1/schedules")).json.data.map(({ task }) => task).sort();

  const one = project(first), early = await trigger("alpha");
  assert.equal((await show(early)).status, "QUEUED");
  const a = await startCli({ t, gateway, folder: one.folder });
  assert.equal((await ended(early)).output, "first");
  const two = project(second), b = await startCli({ t, gateway, folder: two.folder });

  await t.test("and the declared schedules of both exist", async () => {
    const [alpha, beta, both] = await Promise.all(["alpha", "beta", "both"].map(execute));
    assert.deepEqual([alpha.output, beta.output], ["first", "second"]);
    assert.notEqual(alpha.version, beta.version);
    const newest = [alpha, beta].sort((x, y) => x.version.localeCompare(y.version)).at(-1);
    assert.deepEqual([both.version, both.output], [newest.version, newest.output]);
    assert.deepEqual(await scheduled(), ["ticks", "tocks"]);
  });

  await t.test("an edit replaces the version of its CLI, and no other", async () => {
    const { version } = await execute("alpha");
    await a.rebuild(() => one.write(edited));
    const alpha = await until(async () => {
      const run = await execute("alpha");
      return run.version !== version && run;
    }, { timeoutMs: 120_000 });
    assert.equal(alpha.output, "edited");
    assert.equal((await execute("both")).output, "edited"); // its version is the newest now
    assert.equal((await execute("beta")).output, "second");
    await until(async () => (await scheduled()).join() === "tocks");
    assert.equal((await show(await trigger("child"))).status, "WAITING_FOR_DEPLOY");
  });

  // The CLI writes each later build into the folder of its first build, so this test needs two edits.
  await t.test("a parent that waits when its code is edited continues in its version, and so do its children", async () => {
    const pauseQuick = async (action) => assert.equal((await gateway.post("/api/v1/queues/quick/pause", { type: "task", action })).status, 200);
    const { version } = await execute("alpha"), token = (await gateway.post("/api/v1/waitpoints/tokens", {})).json.id;
    const begin = async (payload, childStatus) => {
      const id = await trigger("parent", payload);
      return until(async () => {
        const { status, relatedRuns: { children: [child] } } = await show(id);
        return status === "FROZEN" && child?.status === childStatus && { id, child: child.id };
      }, { timeoutMs: 120_000, what: `a parent waits for a child that is ${childStatus}` });
    };
    await pauseQuick("pause");
    const parents = [await begin({}, "QUEUED"), await begin({ token }, "FROZEN")];
    await a.rebuild(() => one.write(again));
    await until(async () => (await execute("alpha")).output === "again", { timeoutMs: 120_000 });
    await pauseQuick("resume");
    assert.equal((await gateway.post(`/api/v1/waitpoints/tokens/${token}/complete`, {})).status, 200);
    for (const { id, child } of parents) {
      const runs = [await ended(id), await ended(child)];
      assert.deepEqual(runs.map(({ status, output }) => [status, output]), [["COMPLETED", ["edited", "edited", "edited"]], ["COMPLETED", "edited"]]);
      assert.deepEqual(runs.map((run) => run.version), [version, version]);
    }
    assert.deepEqual((await execute("parent")).output, ["again", "again", "again"]);
  });

  await t.test("both continue after a kill of the gateway", async () => {
    await gateway.kill();
    await gateway.restart();
    const ids = [await trigger("alpha"), await trigger("beta")];
    assert.deepEqual((await Promise.all(ids.map(ended))).map(({ output }) => output), ["again", "second"]);
    assert.deepEqual(await scheduled(), ["tocks"]);
  });

  // A CLI counts as gone after a minute. Tasks that both have go to the other CLI within seconds.
  await t.test("one continues when the other has ended, also with tasks that the other executed", async () => {
    await b.rebuild(() => two.write(second.replaceAll('"second"', '"newest"')));
    await until(async () => (await execute("both")).output === "newest", { timeoutMs: 120_000 });
    await b.stop("SIGINT");
    assert.equal((await execute("both")).output, "again");
    assert.equal((await execute("alpha")).output, "again");
    assert.deepEqual(await scheduled(), ["tocks"]); // the other CLI may reconnect
    assert.equal((await show(await trigger("beta"))).status, "QUEUED");
  });
  assert.doesNotMatch(a.output + b.output, /validation error|poll failed|Failed to submit|Failed to get/i);
  await a.stop();
  await gateway.stop();
});
