// promtool, from Debian's package prometheus: checks metrics and rules as Prometheus itself does.
import { spawnSync } from "node:child_process";

/** { status, output }: output is its output, findings and errors alike. */
export function promtool(args, input) {
  const { status, error, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (error) throw error;
  return { status, output: (stdout + stderr).trim() };
}
