// A proxy from Debian in front of a gateway, with the settings of deploy/proxies-and-tls.md, in which only
// addresses and file names are changed.
//
//   const proxy = await startProxy("nginx", { port, gateway: gateway.port });
//   proxy.url          https://127.0.0.1:PORT, with proxy.certificate
//   proxy.plainPort    the same without TLS, for clients that do not support it
//
// The same proxy, which serves the gateway under a path:
//
//   const { gateway, proxy, stop } = await startUnderPath("HAProxy");
//   proxy.url + underPath     what a client gets as TRIGGER_API_URL
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { freePort, keys, startGateway, temporaryFolder, until, untilAccepts } from "./gateway.mjs";
import { HttpClient } from "./http.mjs";
import { makeCertificate, unwrap } from "./tls.mjs";

const deploy = new URL("../../../deploy/", import.meta.url);

/** Returns the block of indented lines of a chapter in deploy that begins with the line that starts with `first`. */
export function chapterSettings(chapter, first) {
  const lines = fs.readFileSync(new URL(chapter, deploy), "utf8").split("\n"), from = lines.findIndex((line) => line.startsWith(`    ${first}`));
  if (from < 0) throw new Error(`${chapter} has no settings that begin with ${first}`);
  const length = lines.slice(from).findIndex((line) => !line.startsWith("    "));
  return lines.slice(from, from + length).map((line) => line.slice(4)).join("\n");
}

/** For each proxy: its configuration, with the settings of the chapter in it, and the command that starts it. */
const kinds = {
  nginx: (folder, adapt) => ({
    text: `daemon off; master_process off; pid ${folder}/pid; error_log stderr; worker_rlimit_nofile 4096;
      events { worker_connections 1024; }
      http { access_log off; ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((what) => `${what}_temp_path ${folder}/${what};`).join(" ")}
      ${adapt(chapterSettings("proxies-and-tls.md", "upstream runcast {"))} }`,
    command: ["nginx", "-e", "stderr", "-p", folder, "-c"],
  }),
  haproxy: (folder, adapt) => ({
    text: `global\n  maxconn 1000\n${adapt(chapterSettings("proxies-and-tls.md", "frontend runs"))}\n`,
    command: ["haproxy", "-db", "-f"],
  }),
  // Without a certificate Caddy would request one from an authority, so the test adds `tls` to the line of the chapter.
  caddy: (folder, adapt, port) => ({
    text: `{\n  admin off\n  auto_https off\n}\nhttps://:${port} {\n  tls ${folder}/runs.pem ${folder}/runs.key\n  ${adapt("reverse_proxy 127.0.0.1:3030")}\n}\n`,
    command: ["caddy", "run", "--adapter", "caddyfile", "--config"],
  }),
};

/** Makes a certificate under the file names of the chapter's settings. HAProxy reads certificate and key from one file. */
function makeOwnCertificate(folder) {
  const { certificate, key } = makeCertificate(folder, "runs");
  fs.writeFileSync(path.join(folder, "runs.both.pem"), fs.readFileSync(certificate, "utf8") + fs.readFileSync(key, "utf8"));
  return certificate;
}

/** change: a function that edits the settings of the chapter. */
export async function startProxy(kind, { port, gateway, change = (text) => text }) {
  const folder = temporaryFolder(), certificate = makeOwnCertificate(folder);
  const adapt = (text) => change(text).replace("listen 443", `listen 127.0.0.1:${port}`).replace("bind :443", `bind 127.0.0.1:${port}`)
    .replace("127.0.0.1:3030", `127.0.0.1:${gateway}`).replaceAll("/etc/ssl/", `${folder}/`);
  const { text, command: [program, ...args] } = kinds[kind](folder, adapt, port);
  const file = path.join(folder, `${kind}.conf`);
  fs.writeFileSync(file, text);
  const child = spawn(program, [...args, file], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin`, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } });
  process.on("exit", () => child.kill("SIGKILL"));
  const proxy = { port, url: `https://127.0.0.1:${port}`, certificate, output: "" };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { proxy.output += text; });
  child.on("error", (error) => { proxy.output += error; });
  await untilAccepts(child, port, { what: kind, output: () => proxy.output });
  const plain = await unwrap(port, certificate);
  proxy.stop = () => { plain.close(); child.kill("SIGTERM"); };
  return Object.assign(proxy, { plainPort: plain.port, plainUrl: `http://127.0.0.1:${plain.port}` });
}

export const underPath = "/jobs/a";
const sockets = "location /socket.io/ { proxy_pass http://runcast; }", login = "location /api/v2/whoami { proxy_pass http://runcast; }";
const atPath = (text) => text.replace("location /realtime", `location ${underPath}/realtime`).replace("location / {", `${login}\n${sockets}\nlocation ${underPath}/ {`);

/** The proxies that serve a gateway under a path, as the chapter describes. They also pass on
 *  what the CLI requests at the root of the host. */
export const pathProxies = {
  "nginx that keeps the path": { kind: "nginx", change: atPath },
  "nginx that removes the path": { kind: "nginx", change: (text) => atPath(text).replace(/(location \/jobs\/a(\/\S*) {\s*proxy_pass http:\/\/runcast)/g, "$1$2") },
  "HAProxy": { kind: "haproxy", change: (text) => text.replace("default_backend runcast", `use_backend runcast if { path_beg ${underPath}/ /api/v2/whoami /socket.io/ }`) },
};
export const withoutSockets = { kind: "nginx", change: (text) => atPath(text).replace(sockets, "") };

/** Starts a gateway, and a proxy of pathProxies: { gateway, proxy, stop }. */
export async function startUnderPath({ kind, change }) {
  const port = await freePort(), front = await freePort();
  const gateway = await startGateway({ port, options: ["--public-url", `https://127.0.0.1:${front}${underPath}/`, "--trusted-proxies", "127.0.0.1"] });
  const proxy = await startProxy(kind, { port: front, gateway: port, change });
  const http = new HttpClient(proxy.plainUrl, keys.dev);
  await until(async () => (await http.request("GET", `${underPath}/readyz`).catch(() => ({}))).status === 200, { what: `${kind} to be ready` });
  http.close();
  return { gateway, proxy, async stop() { proxy.stop(); await gateway.stop(); } };
}
