// The official CLI's MCP server, unmodified: `trigger.dev mcp`, called by the client of the protocol's SDK, as by an
// editor.
//
//   const mcp = await startMcp({ t, gateway, folder });
//   const { text, isError } = await mcp.call("list_runs", { environment: "dev" });
//
// It has its own HOME and TMPDIR, and no network except the gateway.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { workerFolder } from "./cli.mjs";
import { keys, temporaryFolder } from "./gateway.mjs";

const require = createRequire(path.join(workerFolder, "x.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

/** { t, gateway, folder, env, flags, home }; home: a folder with the CLI's profiles. */
export async function startMcp({ t, gateway, folder = workerFolder, env = {}, flags = [], home = temporaryFolder() }) {
  const stub = pathToFileURL(path.join(workerFolder, "stub-net.mjs")).href;
  const client = new Client({ name: "runcast-tests", version: "1" });
  const call = async (name, args = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: args }, undefined, { timeout: 100_000 });
    return { text: content.map(({ text }) => text).join("\n"), isError };
  };
  await client.connect(new StdioClientTransport({
    command: process.execPath, cwd: folder, stderr: "inherit",
    args: [path.join(workerFolder, "node_modules/trigger.dev/dist/esm/index.js"), "mcp", ...flags],
    env: {
      PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: path.join(home, ".config"), TMPDIR: temporaryFolder(),
      NODE_OPTIONS: `--import ${stub} --experimental-global-webcrypto`, // with Node 18, the CLI's agent chats need the latter
      STUB_ANSWER: "1", NO_COLOR: "1", CI: "1", TRIGGER_TELEMETRY_DISABLED: "1",
      TRIGGER_API_URL: gateway.url, TRIGGER_ACCESS_TOKEN: keys.pat, TRIGGER_PROJECT_REF: keys.ref, ...env,
    },
  }));
  t.after(async () => {
    await call("stop_dev_server"); // otherwise the CLI that it started keeps running
    await client.close();
  });
  return { call, tools: async () => (await client.listTools()).tools.map(({ name }) => name) };
}
