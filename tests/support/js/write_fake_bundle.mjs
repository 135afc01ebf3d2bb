// Writes a bundle whose run controller is fake_controller.mjs, for what has no Node of its own to make it with:
//
//   node write_fake_bundle.mjs FOLDER EVENTS       the folder is made; EVENTS is where tasks tell what happens
import fs from "node:fs";

import { makeFakeBundle } from "./bundles.mjs";

const [folder, events] = process.argv.slice(2);
fs.cpSync(makeFakeBundle(["task"], { events: `${events}/` }).folder, folder, { recursive: true });
