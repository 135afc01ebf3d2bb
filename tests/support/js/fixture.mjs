// Data directories that released gateways wrote, in tests/fixtures; see make_fixture.mjs.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { temporaryFolder } from "./gateway.mjs";

const fixtures = fileURLToPath(new URL("../../fixtures", import.meta.url));

/** Options under which nothing expires during the test. */
export const fixtureOptions = ["--dev-ttl", "0", "--retain", "0", "--lease", "1h", "--heartbeat-timeout", "1h", "--cancel-timeout", "1h"];

/** Unpacks a fixture; returns { data, seen }: its data directory, and the responses of the gateway that wrote it. */
export function openFixture(name) {
  const data = path.join(temporaryFolder(), "data");
  fs.mkdirSync(data, { mode: 0o700 });
  execFileSync("tar", ["-xzf", path.join(fixtures, `${name}.tar.gz`), "-C", data]);
  fs.chmodSync(path.join(data, "encryption.key"), 0o600);
  const seen = JSON.parse(fs.readFileSync(path.join(data, "seen.json"), "utf8"));
  fs.rmSync(path.join(data, "seen.json"));
  return { data, seen };
}

/** The headers of the official clients that poll. */
export const polls = { "x-trigger-electric-version": "1.0.0-beta.1", "x-trigger-api-version": "2025-07-16" };

/** A response without waitingFor, which depends on the workers that are connected. */
export const withoutReasons = (text) => text.replace(/"waitingFor":\{[^{}]*\},/g, "");

/** A response without the members that were added to responses after the fixture was made. */
export const withoutNewMembers = (text) => text.replace(/"combinedConcurrencyLimit":null,|"singleton":null,/g, "").replace(/,"waitingRun":\{[^{}]*\}/g, "").replace(/"maxDurationSeconds":\d+,/g, "").replace(/"concurrencyKey":"k",/g, "");

/** A response of a gateway, without its address. */
export async function asOfFixture(gateway, { key, call, branch }) {
  const headers = { ...(call.startsWith("/realtime/") && polls), ...(branch && { "x-trigger-branch": branch }) };
  const { status, text } = await (call.endsWith("/connect") ? gateway.post(call, { metadata: {} }, { key, headers }) : gateway.get(call, { key, headers }));
  return { status, text: text.replaceAll(gateway.url, "") };
}
