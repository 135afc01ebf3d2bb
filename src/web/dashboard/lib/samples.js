// samples.js - the samples of an environment (GET /api/v1/environments/stats) as rows of equal steps, for plots.
//
// The gateway leaves out samples without events. Their queue is that of the previous sample, except that its oldest
// run has waited longer, so the last known queue is carried forward. The rows end with the last complete step.
const points = 180; // max rows; older samples are joined
const good = ["COMPLETED"], bad = ["FAILED", "CRASHED", "SYSTEM_FAILURE", "TIMED_OUT", "INTERRUPTED"];
const minuteMs = 60_000;

const sum = (byStatus, names) => names.reduce((total, name) => total + (byStatus[name] ?? 0), 0);
const ms = (time) => new Date(time).getTime();
const largest = (a, b) => a === null ? b : b === null ? a : Math.max(a, b);

/** Returns the sums of the samples. */
export function totalsOf(samples) {
  const totals = { triggers: 0, good: 0, bad: 0, canceled: 0, expired: 0 };
  for (const { triggers, ends: { byStatus } } of samples) {
    totals.triggers += triggers;
    totals.good += sum(byStatus, good);
    totals.bad += sum(byStatus, bad);
    totals.canceled += byStatus.CANCELED ?? 0;
    totals.expired += byStatus.EXPIRED ?? 0;
  }
  return totals;
}

/** Returns the queue before the first sample: the reported one, or the current one if there are no samples. */
function queueBefore({ samples, before, now, from, to }) {
  if (!samples.length) return { queued: now.queued, oldest: now.oldestQueuedMs, at: ms(to) };
  return before ? { queued: before.queued, oldest: before.oldestQueuedMs, at: ms(from) } : { queued: null, oldest: null, at: ms(from) };
}

/** Returns how long the oldest run has waited at the time, if the queue has not changed. */
const oldestAt = ({ oldest, at }, time) => oldest === null ? null : Math.max(oldest + time - at, 0);

/** Returns { rows, stepMs }: rows of equal steps, { at (seconds), triggers, good, bad, canceled, expired, queued, oldest, p50, p99 }. */
export function rowsOf(stats, seconds) {
  const { samples, intervalMs, from, to } = stats, rangeMs = seconds * 1000, stepMs = Math.ceil(rangeMs / intervalMs / points) * intervalMs;
  const end = Math.floor(ms(to) / stepMs) * stepMs, count = Math.ceil(rangeMs / stepMs), start = end - count * stepMs, knownFrom = ms(from);
  const rows = [];
  let queue = queueBefore(stats), next = samples.findIndex(({ at }) => ms(at) >= start);
  if (next < 0) next = samples.length;
  for (const sample of samples.slice(0, next)) queue = { queued: sample.queued, oldest: sample.oldestQueuedMs, at: ms(sample.at) + intervalMs };
  for (let at = start; at < end; at += stepMs) {
    const begin = next, rowEnd = at + stepMs, isKnown = rowEnd > knownFrom;
    const row = { at: at / 1000, queued: isKnown ? queue.queued : null, oldest: isKnown ? oldestAt(queue, rowEnd) : null, p50: null, p99: null };
    while (next < samples.length && ms(samples[next].at) < rowEnd) {
      const { at: time, queued, oldestQueuedMs, deliveryMs } = samples[next++];
      queue = { queued, oldest: oldestQueuedMs, at: ms(time) + intervalMs };
      row.queued = next - begin === 1 ? queued : Math.max(row.queued, queued);
      row.p50 = largest(row.p50, deliveryMs?.p50 ?? null);
      row.p99 = largest(row.p99, deliveryMs?.p99 ?? null);
    }
    if (next > begin) row.oldest = oldestAt(queue, rowEnd);
    rows.push(Object.assign(row, totalsOf(samples.slice(begin, next))));
  }
  return { rows, stepMs };
}

/** Returns rates per minute, over the last minute, or over the last step if a step is longer. */
export function lastMinute({ samples, to }, stepMs) {
  const overMs = Math.max(minuteMs, stepMs), totals = totalsOf(samples.filter(({ at }) => ms(at) >= ms(to) - overMs));
  return Object.fromEntries(Object.entries(totals).map(([name, value]) => [name, value * minuteMs / overMs]));
}
