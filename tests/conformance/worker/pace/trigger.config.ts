import { defineConfig } from "@trigger.dev/sdk";

// As in cases; a process executes one run after the other.
export default defineConfig({
  project: "proj_sampleprojectaaaaaaa",
  runtime: "node",
  maxDuration: 60,
  processKeepAlive: true,
  dirs: ["./src/trigger"],
});
