// build.mjs - builds the dashboard: index.html, app.js, app.css and icon.svg.
//
//   node build.mjs FOLDER
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url)), out = process.argv[2];
if (!out) throw new Error("usage: node build.mjs FOLDER");

const { outputFiles } = await build({
  entryPoints: { app: path.join(here, "app.jsx") },
  outdir: out, bundle: true, write: false, minify: true, format: "esm", target: ["chrome111", "firefox113", "safari16.4"],
  jsx: "automatic", jsxImportSource: "preact", nodePaths: [path.join(here, "node_modules")],
  define: { "process.env.NODE_ENV": '"production"' }, legalComments: "none", logLevel: "warning", charset: "utf8",
});

const files = Object.fromEntries(outputFiles.map((file) => [path.basename(file.path), file.text]));
files["icon.svg"] = fs.readFileSync(path.join(here, "icon.svg"), "utf8");
files["index.html"] = fs.readFileSync(path.join(here, "index.html"), "utf8");
fs.mkdirSync(out, { recursive: true });
for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(out, name), text);
