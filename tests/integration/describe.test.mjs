// The man pages and completions that the build makes: valid for their readers (man, mandoc, bash, zsh, fish), and
// complete: they have every command and setting, in the words of --help.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { before, describe, test } from "node:test";

import { runProgram } from "../support/js/program.mjs";
import { temporaryFolder, until } from "../support/js/gateway.mjs";

const build = path.dirname(path.resolve(process.env.GATEWAY_BIN ?? new URL("../../build-asan/runcast", import.meta.url).pathname));
const made = (name) => path.join(build, "describe.d", name);
const pages = ["runcast.1", "runcast.conf.5", "runcast-protocol.7"];
const plain = (text) => text.replace(/\s+/g, " ").trim();

/** Runs a program to its end; returns its output. */
function run(program, words, { env = {}, input } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, words, { encoding: "utf8", env: { ...process.env, ...env }, input });
  if (error) throw error;
  return { status, stdout, stderr };
}

/** A page as its reader sees it, on one line. */
const read = (page) => plain(run("mandoc", ["-Tutf8", "-Owidth=250", made(page)]).stdout.replace(/.\x08/gu, ""));

/** The settings by name, each with its text in --help, without the default. */
let help, settings, commands;
before(async () => {
  help = (await runProgram(["--help"])).stdout;
  const names = (await runProgram(["--print-config"])).stdout.trim().split("\n").map((line) => line.split(/\s/)[0]);
  const variable = (name) => `RUNCAST_${name.toUpperCase().replaceAll("-", "_")}`;
  settings = names.map((name) => {
    const flag = new RegExp(`^  --${name}(?: [A-Z]+)? {2,}(.*)$|^  --${name}(?: [A-Z]+)? (.*)$`, "m").exec(help);
    const secret = flag ? null : new RegExp(`^  ${variable(name)} +(.*)$`, "m").exec(help);
    const [said] = [flag?.[1] ?? flag?.[2] ?? secret?.[1]];
    assert.ok(said, name);
    return { name, secret: Boolean(secret), variable: variable(name), help: said.replace(/ \[[^[\]]*\]$/, "") };
  });
  assert.ok(settings.length > 60);
  commands = [...new Set([...help.matchAll(/^ {2}runcast \[?([a-z-]+)/gm)].map(([, name]) => name))].filter((name) => name !== "help");
  assert.ok(commands.length > 12);
});

describe("man pages", () => {
  for (const page of pages)
    test(`${page} is valid for man and mandoc`, () => {
      const { status, stderr } = run("man", ["--warnings", "-E", "UTF-8", "-l", made(page)], { env: { MANPAGER: "cat", MANWIDTH: "80" } });
      assert.deepEqual([status, stderr], [0, ""]);
      const found = run("mandoc", ["-Tlint", "-W", "warning", made(page)]).stdout.split("\n").filter((line) => line && !line.includes("skipping paragraph macro")); // scdoc causes that warning
      assert.deepEqual(found, []);
      assert.doesNotMatch(read(page), /\b\w+__\w/, "marks of scdoc that it left as they are");
    });

  test("runcast(1) has every command and option, in the words of help", async () => {
    const page = read("runcast.1");
    for (const name of commands) {
      const { stdout } = name === "serve" ? { stdout: help.split("\n")[2] } : await runProgram(["help", name]);
      for (const paragraph of stdout.split("\n\n").filter((text) => text.trim())) assert.ok(page.includes(plain(paragraph)), `${name}: ${paragraph}`);
    }
    for (const one of settings.filter(({ secret }) => !secret)) assert.match(page, new RegExp(`--${one.name}( [A-Z]+)? ${one.help.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}`), one.name);
    for (const action of ["--config FILE", "--check-config", "--print-config", "--version", "--help"]) assert.ok(page.includes(action), action);
  });

  test("runcast.conf(5) has every setting with its default and variable", async () => {
    const page = read("runcast.conf.5");
    const defaults = new Map((await runProgram(["--print-config"])).stdout.trim().split("\n").map((line) => [line.split(/\s/)[0], /= ?(.*?) +# default$/.exec(line)?.[1] ?? ""]));
    for (const { name, variable, help: said } of settings) {
      const at = page.indexOf(`${said}. Default: `);
      assert.ok(at > 0, `${name}: ${said}`);
      const rest = page.slice(at + said.length + 2, page.indexOf(".", page.indexOf("Variable:", at)) + 1);
      assert.ok(rest.endsWith(`Variable: ${variable}.`), `${name}: ${rest}`);
      assert.ok(page.includes(` ${name} = `), name);
      assert.ok(defaults.has(name));
    }
  });

  test("runcast-protocol(7) has what protocol.h has: operations, codes, limits", () => {
    const page = read("runcast-protocol.7"), header = fs.readFileSync(new URL("../../include/runcast/protocol.h", import.meta.url), "utf8");
    const operations = [...header.matchAll(/"op":"(\w+)"/g)].map(([, op]) => op), codes = [...header.matchAll(/CLOSE_\w+ = (\d+)/g)].map(([, code]) => code);
    assert.ok(operations.length > 15 && codes.length > 9);
    for (const op of operations) assert.ok(page.includes(`{"op":"${op}"`), op);
    for (const code of codes) assert.match(page, new RegExp(` ${code} `), code);
    for (const [, word] of header.slice(header.indexOf("Codes of error")).matchAll(/^ \* {3}([a-z_]+) {2,}/gm)) assert.ok(page.includes(word), word);
    for (const [, name, number] of header.matchAll(/(PROTOCOL_\w+) = (\d+)/g)) assert.match(page, new RegExp(` ${number} [a-z]`), name);
  });
});

/** A shell in a terminal whose `runcast` prints its arguments: what was typed, and what Tab made of it. */
class Typist {
  constructor(t, command, ready) {
    this.output = "";
    const folder = temporaryFolder();
    fs.mkdirSync(path.join(folder, "alone-folder"));
    fs.writeFileSync(path.join(folder, "alone-file"), "");
    fs.mkdirSync(path.join(folder, "completions"));
    fs.copyFileSync(made("runcast.bash"), path.join(folder, "completions/runcast")); // as it is installed
    this.child = spawn("script", ["-qfec", command, "/dev/null"], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, TERM: "dumb", LC_ALL: "C.UTF-8", BASH_COMPLETION_USER_DIR: folder } });
    t.after(() => this.child.kill("SIGKILL"));
    this.child.stdout.on("data", (bytes) => { this.output += bytes; });
    this.type(ready);
  }

  type(text) { this.child.stdin.write(text); }

  /** The arguments that runcast got. */
  async complete(typed) {
    const before = this.output.length;
    this.type(`${typed}\n`);
    const shown = () => /got((?:<[^>]*>)+)\./.exec(this.output.slice(before));
    await until(() => shown(), { what: `what ${JSON.stringify(typed)} became` }).catch((error) => assert.fail(`${error.message}: ${this.output.slice(before)}`));
    return [...shown()[1].matchAll(/<([^>]*)>/g)].map(([, word]) => word);
  }
}

/** Typed text, and the words that completion makes of it. */
const cases = [
  ["runcast --print-c\t", ["--print-config"]],
  ["runcast heal\t", ["health"]],
  ["runcast help worker-t\t", ["help", "worker-token"]],
  ["runcast org cr\tX --sl\tS", ["org", "create", "X", "--slug", "S"]],
  ["runcast keys rotate st\t", ["keys", "rotate", "staging"]],
  ["runcast deploy --env prev\t", ["deploy", "--env", "preview"]],
  ["runcast deploy alone-fo\t", ["deploy", "alone-folder/"]],
  ["runcast --dashboard ad\t", ["--dashboard", "admin"]],
  ["runcast --log-format logf\t", ["--log-format", "logfmt"]],
  ["runcast --data alone-fo\t", ["--data", "alone-folder/"]],
  ["runcast --config alone-fi\t", ["--config", "alone-file"]],
  ["runcast supervise --supervise-dr\t5m", ["supervise", "--supervise-drain-timeout", "5m"]],
];

describe("completions", () => {
  const prints = "runcast() { printf 'got'; printf '<%s>' \"$@\"; printf '.\\n'; }\n";
  const shells = {
    bash: ["bash --norc --noprofile -i", `bind 'set bell-style none'; source ${made("runcast.bash")}; ${prints}`],
    "bash, which finds it by bash-completion": ["bash --norc --noprofile -i", `bind 'set bell-style none'; source /usr/share/bash-completion/bash_completion; ${prints}`],
    zsh: ["zsh -f -i", `fpath=(${path.dirname(made("_runcast"))} $fpath); autoload -Uz compinit && compinit -u -D; unsetopt beep; ${prints}`],
    fish: ["fish --no-config -i", `source ${made("runcast.fish")}; function runcast; printf got; printf '<%s>' $argv; printf '.\\n'; end\n`],
  };
  for (const [name, [command, ready]] of Object.entries(shells))
    test(name, { timeout: 240_000 }, async (t) => {
      const typist = new Typist(t, command, ready);
      for (const [typed, words] of cases) assert.deepEqual((await typist.complete(typed)).map((word) => word.replace(/\/$/, "")), words.map((word) => word.replace(/\/$/, "")), typed);
    });

  test("each shell completes all commands, their second words and all settings", () => {
    const bash = run("bash", ["-c", `source ${made("runcast.bash")}; COMP_WORDS=(runcast ''); COMP_CWORD=1; _runcast; printf '%s\\n' "\${COMPREPLY[@]}"`]).stdout.split("\n");
    const fish = ["", "--"].flatMap((begin) => run("fish", ["--no-config", "-c", `source ${made("runcast.fish")}; complete -C 'runcast ${begin}'`]).stdout.split("\n").map((line) => line.split("\t")[0]));
    const zsh = fs.readFileSync(made("_runcast"), "utf8");
    for (const word of [...commands, ...settings.filter(({ secret }) => !secret).map(({ name }) => `--${name}`)]) {
      assert.ok(bash.includes(word), `bash: ${word}`);
      assert.ok(fish.includes(word), `fish: ${word}`);
      assert.ok(zsh.includes(`'${word}:`), `zsh: ${word}`);
    }
    for (const { name } of settings.filter(({ secret }) => secret)) for (const known of [bash, fish]) assert.ok(!known.includes(`--${name}`), name);
  });

  test("every value that is offered is accepted, and a setting with few values offers all of them", async () => {
    const offered = new Map([...fs.readFileSync(made("runcast.bash"), "utf8").matchAll(/^ {4}(--[\w-]+)\) kind=words values='(.*)' ;;$/gm)].map(([, option, words]) => [option, words.split(" ")]));
    for (const { name } of settings.filter(({ secret }) => !secret)) {
      const refused = await runProgram([`--${name}`, "no-such-word", "--check-config"]);
      const few = /; give ((?:\w+, )*\w+ or \w+)$/m.exec(refused.stderr.trim())?.[1].split(/, | or /);
      if (few && few.join() !== "true,false") assert.deepEqual(offered.get(`--${name}`), few, name);
      else assert.equal(offered.get(`--${name}`), undefined, name);
      for (const word of few ?? []) assert.equal((await runProgram([`--${name}`, word, "--print-config"])).code, 0, `${name} ${word}`);
    }
  });
});
