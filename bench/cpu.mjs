// cpu.mjs - what a process has used, for benches of gateways.
import fs from "node:fs";

/** CPU in µs that all threads of a process have used so far. */
export function cpuUs(pid) {
  const threads = fs.readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, id) => sum + Number(fs.readFileSync(`/proc/${pid}/task/${id}/schedstat`, "latin1").split(" ")[0]), 0) / 1000;
}
