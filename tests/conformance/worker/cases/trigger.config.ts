import { defineConfig } from "@trigger.dev/sdk";

// TRIGGER_PROJECT_REF in the environment overrides the project. Packages are found one folder up. A process executes one
// run after the other, except with tests/run.sh --all.
export default defineConfig({
  project: "proj_sampleprojectaaaaaaa",
  runtime: "node",
  maxDuration: 60,
  processKeepAlive: !process.env.TESTS_IN_FULL,
  dirs: ["./src/trigger"],
  retries: {
    enabledInDev: true,
    default: { maxAttempts: 3, minTimeoutInMs: 300, maxTimeoutInMs: 2000, factor: 2, randomize: false },
  },
});
