// Bundles like those of the CLI, with an index controller whose code the test chooses.
//
//   const { bytes } = makeBundle({ index: `await register(["hello"])` });
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

import { temporaryFolder } from "./gateway.mjs";

const entry = (name) => `/app/node_modules/trigger.dev/entry/${name}.mjs`;

/** The beginning of each index controller: functions for its calls. It does not use fetch, for the reason in
 *  fake_controller.mjs. */
const indexHead = `
import fs from "node:fs";
const { TRIGGER_API_URL: api, TRIGGER_SECRET_KEY: key, TRIGGER_DEPLOYMENT_ID: id, TRIGGER_PROJECT_REF: ref, TRIGGER_CONTENT_HASH: contentHash } = process.env;
const manifest = JSON.parse(fs.readFileSync("./build.json", "utf8"));
const { request } = await import(api.startsWith("https:") ? "node:https" : "node:http");
const call = (method, target, body) => new Promise((resolve, reject) => {
  const answered = (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part) => { text += part; }).on("error", reject)
      .on("end", () => resolve({ status: response.statusCode, text: async () => text, json: async () => JSON.parse(text) }));
  };
  request(api + target, { method, headers: { authorization: "Bearer " + key, "content-type": "application/json" } }, answered)
    .on("error", reject).end(body && JSON.stringify(body));
});
const variables = async () => (await (await call("GET", "/api/v1/projects/" + ref + "/envvars")).json()).variables;
const writeIndex = (tasks) => fs.writeFileSync("index.json", JSON.stringify({ configPath: manifest.configPath, runtimeVersion: process.versions.node, tasks }));
const register = async (names) => {
  const tasks = names.map((name) => ({ filePath: "src/tasks.ts", entryPoint: manifest.files[0].out, ...(name.id ? name : { id: name }) }));
  writeIndex(tasks);
  const answer = await call("POST", "/api/v1/deployments/" + id + "/background-workers", { localOnly: true, engine: "V2", metadata: { packageVersion: "4.8.3", contentHash, queues: [], tasks } });
  if (answer.status !== 200) console.error("Failed to create background worker", answer.status, await answer.text());
};
const fail = async (error) => { await call("POST", "/api/v1/deployments/" + id + "/fail", { error }); process.exit(1); };
`;

const containerfile = (commands) => ["FROM triggerdotdev/node AS base", "", "FROM triggerdotdev/node-build AS build", "USER node", "WORKDIR /app", "",
  "COPY --chown=node:node package.json ./", "RUN npm i --no-audit --no-fund --no-save --no-package-lock", "", "# Now copy all the files", "COPY --chown=node:node . .", "",
  ...commands.map((command) => `RUN ${command}`), "", "COPY --chown=node:node . .", "", "RUN mkdir -p node_modules", "", "FROM scratch AS code", ""].join("\n");

/** Returns a bundle's { bytes, hash, folder }; folder has the files before they were packed. index: JavaScript after
 *  indexHead; files: more files, by name. */
export function makeBundle({ index = 'await variables(); await register(["hello"]);', commands = [], dependencies = {}, image, runtime = "node-22", cli = "4.8.3", files = {}, without = [] } = {}) {
  const folder = temporaryFolder();
  const manifest = { build: {}, deploy: {}, cliPackageVersion: cli, packageVersion: "4.8.3", contentHash: "hash", runtime, image, environment: "prod", target: "deploy", config: { project: "proj", dirs: [] },
    configPath: "/app/trigger.config.mjs", outputPath: "/app/", files: [{ entry: "src/tasks.ts", out: "/app/src/tasks.mjs" }], sources: {},
    indexControllerEntryPoint: entry("index-controller"), indexWorkerEntryPoint: entry("index-worker"), runControllerEntryPoint: entry("run-controller"), runWorkerEntryPoint: entry("run-worker") };
  const all = {
    "package.json": JSON.stringify({ name: "bundle", dependencies }), "build.json": JSON.stringify(manifest), Containerfile: containerfile(commands),
    "trigger.config.mjs": "", "src/tasks.mjs": "", [entry("index-controller").slice(5)]: indexHead + index, [entry("run-controller").slice(5)]: "", ...files,
  };
  for (const name of without) delete all[name];
  for (const [name, text] of Object.entries(all)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  const bytes = execFileSync("tar", ["-czf", "-", "-C", folder, ...fs.readdirSync(folder)], { maxBuffer: 64 << 20 });
  return { bytes, hash: createHash("sha256").update(bytes).digest("hex"), folder };
}

/** A bundle whose run controller is fake_controller.mjs. tasks: names, or objects like those of a registration; events: a
 *  folder that the tasks can write to, with a slash at its end; index: JavaScript that is executed first. */
export function makeFakeBundle(tasks, { events, index = "" } = {}) {
  const read = (name) => fs.readFileSync(new URL(name, import.meta.url), "utf8");
  return makeBundle({ index: `${index}; await variables(); await register(${JSON.stringify(tasks)});`, files: {
    ...Object.fromEntries(["fake_controller.mjs", "http.mjs", "websocket.mjs"].map((name) => [name, read(name)])),
    [entry("run-controller").slice(5)]: 'import "../../../fake_controller.mjs";', ...events && { "events.path": events },
  } });
}
