// Commands of the official CLI that share a process: its modules take longer to load than most commands to execute.
//
//   const cli = startCommands({ t, env });
//   const { code, out } = await cli.run(["projects", "list"]);
import { spawn } from "node:child_process";
import path from "node:path";

import { workerFolder } from "./cli.mjs";
import { temporaryFolder } from "./gateway.mjs";

/** { t, folder: in which commands are executed, modules: the folder in whose node_modules the CLI is, home, env }
 *
 * Starts the process, which ends with the test or this process. Without home, it gets its own HOME. */
export function startCommands({ t, folder = path.join(workerFolder, "shop"), modules = workerFolder, home = temporaryFolder(), env = {} }) {
  const program = [process.execPath, "--import", path.join(workerFolder, "stub-net.mjs"), path.join(workerFolder, "commands.mjs"), modules];
  const child = spawn("/bin/sh", ["-c", 'exec "$0" "$@" 2>&1', ...program], {
    cwd: folder, stdio: ["ignore", "pipe", "inherit", "ipc"],
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home, STUB_ANSWER: "1", NO_COLOR: "1", TRIGGER_TELEMETRY_DISABLED: "1", ...env },
  });
  const stop = () => child.kill("SIGKILL");
  t?.after(stop);
  child.stdout.setEncoding("utf8");

  /** Executes a command to its end; returns { code, out }: its exit status and its output. */
  function run(words, more = {}) {
    let all = "";
    child.send({ words: [...words, "--skip-telemetry"], env: more });
    return new Promise((resolve, reject) => {
      const read = (text) => {
        all += text;
        const [, out, code] = /^([^\0]*)\0(\d+)\n$/.exec(all) ?? [];
        if (code !== undefined) end(resolve, { code: Number(code), out });
      };
      const fail = () => end(reject, new Error(`the process of the CLI ended: ${all}`));
      const end = (settle, value) => { child.stdout.off("data", read).off("close", fail); settle(value); };
      child.stdout.on("data", read).on("close", fail);
    });
  }
  return { run, stop };
}
