// promtool, Debian's package prometheus: what Prometheus itself says of metrics and rules.
import { spawnSync } from "node:child_process";

/** { status, said }: said is what it writes, findings and errors alike. */
export function promtool(args, input) {
  const { status, error, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (error) throw error;
  return { status, said: (stdout + stderr).trim() };
}
