// Writes a bundle whose run controller is fake_controller.mjs into a folder, for scripts on machines without Node:
//
//   node write_fake_bundle.mjs FOLDER EVENTS       creates the folder; tasks log their events in EVENTS
import fs from "node:fs";

import { makeFakeBundle } from "./bundles.mjs";

const [folder, events] = process.argv.slice(2);
fs.cpSync(makeFakeBundle(["task"], { events: `${events}/` }).folder, folder, { recursive: true });
