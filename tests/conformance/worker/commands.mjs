// Executes commands of the official CLI, one after the other, in one process, which loads the CLI's modules once.
// tests/support/js/cli_commands.mjs starts it, sends the words of each command, and reads its output up to a line with
// its exit status. Each command gets new objects of the CLI's parser, since those keep the options of earlier commands.
const parser = new URL("./node_modules/trigger.dev/dist/esm/cli/index.js", import.meta.url).href;

let count = 0;
process.on("message", async (words) => {
  process.exitCode = undefined;
  const { program } = await import(`${parser}?${++count}`);
  await program.parseAsync([...process.argv.slice(0, 2), ...words]).catch((error) => { console.error(error); process.exitCode = 1; });
  console.log(`\0${process.exitCode ?? 0}`);
});
