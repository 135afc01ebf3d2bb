import { defineConfig } from "@trigger.dev/sdk";

// As in cases.
export default defineConfig({
  project: "proj_sampleprojectaaaaaaa",
  runtime: "node",
  maxDuration: 120,
  dirs: ["./src/trigger"],
  retries: { enabledInDev: true },
});
