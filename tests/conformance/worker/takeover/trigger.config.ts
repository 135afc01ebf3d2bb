import { defineConfig } from "@trigger.dev/sdk";

// As in cases; a process executes one run after the other, except with tests/run.sh --all.
export default defineConfig({
  project: "proj_sampleprojectaaaaaaa",
  runtime: "node",
  maxDuration: 120,
  processKeepAlive: !process.env.TESTS_IN_FULL,
  dirs: ["./src/trigger"],
  retries: { enabledInDev: true },
});
