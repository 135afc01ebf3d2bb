// Executes commands of the official CLI, one after the other, in one process, which loads the CLI's modules once.
//
//   node commands.mjs FOLDER      the folder in whose node_modules the CLI is
//
// tests/support/js/cli_commands.mjs starts it, sends each command's words and variables, and reads the output up to a
// line with the exit status. Each command gets new objects of the CLI's parser, since those keep earlier options.
import path from "node:path";
import { pathToFileURL } from "node:url";

const parser = pathToFileURL(path.join(process.argv[2], "node_modules/trigger.dev/dist/esm/cli/index.js")).href;

// Commands that call this do so last.
process.exit = (code) => { process.exitCode ||= code; };

let count = 0;
process.on("message", async ({ words, env }) => {
  const before = { ...process.env };
  Object.assign(process.env, env);
  process.exitCode = 0;
  const { program } = await import(`${parser}?${++count}`);
  await program.parseAsync([...process.argv.slice(0, 2), ...words]).catch((error) => { console.error(error); process.exitCode = 1; });
  Object.assign(process.env, before);
  console.log(`\0${process.exitCode}`);
});
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
