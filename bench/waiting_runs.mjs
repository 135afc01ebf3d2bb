// waiting_runs.mjs - makes unfinished runs, which no worker takes, for a gateway's start to load.
import { keys } from "../tests/support/js/gateway.mjs";

/** Triggers `count` runs with payloads of `payloadBytes` bytes. */
export async function triggerWaiting(gateway, count, payloadBytes) {
  const item = { task: "waits", payload: JSON.stringify("x".repeat(payloadBytes - 2)), options: { payloadType: "application/json" } };
  for (let left = count; left > 0; left -= 500) {
    const { status, text } = await gateway.post("/api/v1/tasks/batch", { items: Array(Math.min(left, 500)).fill(item) }, { key: keys.prod });
    if (status >= 300) throw new Error(`a batch was refused: ${text}`);
  }
}
