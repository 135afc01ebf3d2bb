// Renamed organizations, projects and users, and deleted users: at once and after a restart.
import assert from "node:assert/strict";
import { test } from "node:test";

import { isSqlite, keys, startGateway } from "../support/js/gateway.mjs";
import { runProgram } from "../support/js/program.mjs";

const asked = (gateway) => async (...words) => runProgram([...words, "--data", gateway.data]);

test("a new name is shown everywhere, and everything else stays, with and without a running gateway", async (t) => {
  const gateway = await startGateway({ t });
  const run = asked(gateway);
  const said = async (...words) => {
    const end = await run(...words);
    assert.equal(end.code, 0, end.all);
    return end.stdout;
  };
  const slug = (await said("org", "list")).split(/\s/)[0], email = (await said("user", "list")).split(/\s/)[0];
  const printed = await said("keys");
  for (let round = 1; round < 3; round++) {
    await said("org", "rename", slug, "--name", `Org ${round}`);
    await said("project", "rename", keys.ref, "--name", `Shop ${round}`);
    await said("user", "rename", email, "--name", `Ada ${round}`);
    const check = async () => {
      assert.match(await said("org", "list"), new RegExp(`^${slug} +Org ${round}\n$`));
      assert.match(await said("project", "list"), new RegExp(`^${keys.ref} +${slug} +Shop ${round}\n$`));
      assert.match(await said("user", "list"), new RegExp(`^${email} +${slug} +Ada ${round}\n$`));
      assert.equal(await said("keys"), printed);
    };
    await check();
    if (round === 1) {
      const { project } = (await gateway.get(`/api/v2/whoami?projectRef=${keys.ref}`, { key: keys.pat })).json;
      assert.deepEqual([project.name, project.orgTitle], ["Shop 1", "Org 1"]);
      await gateway.kill();
      await gateway.restart();
    } else {
      await gateway.stop();
      if (isSqlite) await said("user", "rename", email, "--name", "Ada 2"); // no gateway runs
      await gateway.restart();
    }
    await check();
  }
  for (const [words, why] of [[["org", "rename", "x", "--name", "y"], /organization not found/], [["project", "rename", keys.ref], /--name NAME is missing/],
    [["user", "rename", "x@y.zz", "--name", "y"], /user not found/], [["org", "rename", slug, "--name", "a\nb"], /control or invisible characters/]])
    assert.match((await run(...words)).stderr, why);
  await gateway.stop();
});

test("deleting a user, which must be confirmed, deletes the user's tokens and affects no other user", async (t) => {
  const gateway = await startGateway({ t });
  const run = asked(gateway);
  await run("org", "create", "Second");
  await run("project", "create", "Theirs", "--org", "second", "--ref", "proj_zzzzzzzzzzzzzzzzzzzz");
  const first = (await run("user", "list")).stdout.split(/\s+/);
  for (const org of [first[1], "second"]) assert.equal((await run("user", "create", "Bob", "--email", "bob@example.com", "--org", org)).code, 0);
  const token = (await run("token", "create", "--user", "bob@example.com")).stdout.trim();
  const sees = async (ref) => (await gateway.get(`/api/v1/projects/${ref}/dev`, { key: token })).status;
  assert.deepEqual([await sees(keys.ref), await sees("proj_zzzzzzzzzzzzzzzzzzzz")], [200, 200]);

  assert.match((await run("user", "delete", "bob@example.com")).stderr, /choose one with --org SLUG/);
  assert.equal((await run("user", "delete", "bob@example.com", "--org", "second")).code, 0);
  assert.deepEqual([await sees(keys.ref), await sees("proj_zzzzzzzzzzzzzzzzzzzz")], [200, 404]);
  assert.match((await run("user", "delete", "bob@example.com")).stderr, /this revokes 1 token of bob@example\.com; confirm with --confirm bob@example\.com/);
  assert.match((await run("user", "delete", "bob@example.com", "--confirm", "ada@example.com")).stderr, /--confirm names "ada@example\.com" instead of bob@example\.com; nothing was deleted/);
  assert.equal(await sees(keys.ref), 200);
  assert.match((await run("user", "delete", "bob@example.com", "--confirm", "bob@example.com")).stdout, /tokens revoked: 1/);
  assert.equal(await sees(keys.ref), 401);
  assert.equal((await gateway.get(`/api/v1/projects/${keys.ref}/dev`, { key: keys.pat })).status, 200);
  await gateway.kill();
  await gateway.restart();
  assert.equal(await sees(keys.ref), 401);
  assert.equal((await run("user", "list")).stdout.trim().split("\n").length, 1);
  assert.equal((await run("user", "create", "Bob", "--email", "bob@example.com", "--org", "second")).code, 0);
  await gateway.stop();
});
