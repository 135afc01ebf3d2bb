// waiting_runs.mjs - makes unfinished runs, which no worker takes.
import { keys } from "../tests/support/js/gateway.mjs";

/** Triggers `count` runs with payloads of `payloadBytes` bytes, with different concurrencyKeys if differentKeys is given. */
export async function triggerWaiting(gateway, count, payloadBytes, { task = "waits", differentKeys = 0 } = {}) {
  const payload = JSON.stringify("x".repeat(payloadBytes - 2));
  const item = (n) => ({ task, payload, options: { payloadType: "application/json", ...differentKeys && { concurrencyKey: `k${n % differentKeys}` } } });
  for (let left = count; left > 0; left -= 500) {
    const items = Array.from({ length: Math.min(left, 500) }, (_, i) => item(left - i));
    const { status, text } = await gateway.post("/api/v1/tasks/batch", { items }, { key: keys.prod });
    if (status >= 300) throw new Error(`a batch was refused: ${text}`);
  }
}
