// The parts of Trigger.dev's API that runcast lacks, as src/api/router/README.md lists them; and the routes that an
// official package calls.
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const readme = fs.readFileSync(fileURLToPath(new URL("../../../src/api/router/README.md", import.meta.url)), "utf8");
const chapter = readme.slice(readme.indexOf("## What is not there"), readme.indexOf("## What a status is called"));

/** A path with {} for each parameter, without a query. */
export const plain = (path) => path.replace(/[?].*$/, "").replace(/\$\{(queryParams|searchParams|qs|suffix|search)\b.*$/, "").replace(/\$?\{[^}]*\}/g, "{}");

/** [{ method, path }] of the README's table; without method, the row applies to all methods. */
export function absentRoutes() {
  const found = [];
  for (const line of chapter.split("\n").filter((each) => each.startsWith("| "))) {
    let base = "";
    for (const [, method, text] of line.split(" | ").at(-1).matchAll(/(POST |PATCH )?`([/…][^`]*)`/g)) {
      if (!text.startsWith("…")) base = text;
      found.push({ method: method?.trim(), path: plain(text.replace("…", base)) });
    }
  }
  return found;
}

/** The commands that fail with an error, as the README lists them. */
export function absentCommands() {
  const at = chapter.indexOf("These commands of the CLI end with an error");
  return at < 0 ? [] : [...chapter.slice(at).split("\n\n")[0].matchAll(/`([a-z -]+)`/g)].map(([, name]) => name);
}

/** [{ method, path }] of the calls in a client's source; base is its member with the gateway's address. */
export function routesOf(program, base) {
  const text = fs.readFileSync(program, "utf8"), pieces = text.split(`\${this.${base}}`).slice(1);
  return pieces.filter((piece) => piece.startsWith("/")).map((piece) => ({
    path: plain(/^[^`]*/.exec(piece)[0]), method: /method: "(\w+)"/.exec(piece)?.[1] ?? "GET",
  }));
}

/** Returns the routes that are neither operations of the document nor in the README's table. */
export function unknownRoutes(routes, document) {
  const there = new Set(Object.entries(document.paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${plain(path)}`)));
  const absent = absentRoutes();
  const isAbsent = (route) => absent.some(({ method, path }) => path === route.path && (!method || method === route.method));
  return routes.filter((route) => !there.has(`${route.method} ${route.path}`) && !isAbsent(route)).map(({ method, path }) => `${method} ${path}`);
}
