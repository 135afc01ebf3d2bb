// Three gateways that follow each other on one PostgreSQL, with the settings of deploy/container/compose-cluster.yaml, and
// HAProxy in front of them with deploy/container/haproxy.cfg, in which only addresses are changed.
//
//   const { url, port, gateways, leader, others, postgres, servers } = await startCluster(t);
//   (await servers()).ready     how many gateways HAProxy sends calls to
//   (await servers()).up        for each gateway: 1 if it responds to checks
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

import { startFollowers } from "./followers.mjs";
import { freePort, killAtExit, temporaryFolder, until } from "./gateway.mjs";

const AT_SERVERS = "/servers-of-haproxy"; // answered by HAProxy itself
const settings = new URL("../../../deploy/container/haproxy.cfg", import.meta.url);

/** The settings for gateways of this machine, whose addresses need no resolver, and whose users may open fewer files. */
function adaptSettings(port, gateways) {
  const counts = `{"ready":%[nbsrv(gateways)],"up":[${gateways.map((_, i) => `%[srv_is_up(gateways/gateway-${i + 1})]`)}]}`;
  return fs.readFileSync(settings, "utf8").replace(/^resolvers [^]*?^defaults/m, "defaults").replaceAll(" resolvers compose init-addr libc,none", "")
    .split("\n").filter((line) => !(/gateway-(\d):3030/.exec(line)?.[1] > gateways.length)).join("\n")
    .replaceAll(/gateway-(\d):3030/g, (_, n) => `127.0.0.1:${gateways[n - 1].port}`)
    .replace("maxconn 20000", "maxconn 1000").replace("bind :3030", `bind 127.0.0.1:${port}\n  http-request return status 200 content-type application/json lf-string '${counts}' if { path ${AT_SERVERS} }`);
}

/** Starts HAProxy in front of gateways that follow each other. */
export async function startHaproxy(t, gateways) {
  const port = await freePort(), file = path.join(temporaryFolder(), "haproxy.cfg"), url = `http://127.0.0.1:${port}`;
  fs.writeFileSync(file, adaptSettings(port, gateways));
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore", env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } });
  killAtExit(child, "SIGKILL");
  t?.after(() => child.kill("SIGKILL"));
  const servers = async () => (await fetch(url + AT_SERVERS)).json();
  await until(async () => (await servers().catch(() => ({}))).ready === gateways.length, { what: "HAProxy has found the gateways" });
  return { port, url, servers };
}

export async function startCluster(t, { options = [], ...more } = {}) {
  const world = await startFollowers(t, { options: ["--trusted-proxies", "127.0.0.1", ...options], ...more });
  return { ...world, isFollowed: true, ...await startHaproxy(t, world.gateways) };
}
