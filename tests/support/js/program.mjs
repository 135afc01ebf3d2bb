// Runs the program to its end and returns its output, as a shell would.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

/** Returns { code, signal, stdout, stderr, all }. env replaces the variables of this process that begin with RUNCAST_. Kills a
 *  program that takes longer than timeoutMs, and throws. preload: the name of a shim; the program then has no
 *  sanitizers. onStart gets the process. */
export function runProgram(args, { env = {}, timeoutMs = 60_000, preload, onStart } = {}) {
  const folder = process.env.SHIM_DIR ?? path.join(top, "build-gcc");
  const binary = preload ? process.env.GATEWAY_RELEASE_BIN ?? path.join(top, "build-gcc/runcast")
    : process.env.GATEWAY_BIN ?? path.join(top, "build-asan/runcast");
  if (preload) env = { ...env, LD_PRELOAD: path.resolve(folder, `${preload}.so`) };
  const all = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNCAST_")));
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { env: { ...all, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`runcast ${args.join(" ")} did not end within ${timeoutMs} ms`));
    }, timeoutMs);
    onStart?.(child);
    const end = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => { end.stdout += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { end.stderr += text; });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...end, all: end.stdout + end.stderr });
    });
  });
}
