// overview.jsx - the state of an environment: what runs now, and plots of the last hours.
import { useMemo, useState } from "preact/hooks";

import { useWatch } from "../lib/live.js";
import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { statuses } from "../lib/status.js";
import { duration } from "../lib/time.js";
import { Button, Loading, Page, Problem, Status, Time } from "../ui/basic.jsx";
import { Plot } from "../ui/plot.jsx";

const ranges = [["15m", "15 minutes", 900], ["1h", "1 hour", 3600], ["6h", "6 hours", 21600]];
const always = ["QUEUED", "EXECUTING", "WAITING", "COMPLETED", "FAILED"]; // shown even if there are none
const points = 180; // max points; older samples are joined
const good = ["COMPLETED"], bad = ["FAILED", "CRASHED", "SYSTEM_FAILURE", "TIMED_OUT", "INTERRUPTED"], off = ["CANCELED", "EXPIRED"];
const sum = (byStatus, names) => names.reduce((total, name) => total + (byStatus[name] ?? 0), 0);

/** The gateway's samples as rows of equal steps. It has no sample for times without events. */
function rowsOf({ samples, intervalMs, to }, seconds) {
  const end = Math.floor(new Date(to) / intervalMs) * intervalMs, all = Math.ceil(seconds * 1000 / intervalMs), join = Math.ceil(all / points), step = join * intervalMs;
  const count = Math.ceil(all / join), start = Math.floor(end / step) * step - (count - 1) * step;
  const rows = Array.from({ length: count }, (_, at) => ({ at: (start + at * step) / 1000, triggers: 0, good: 0, bad: 0, off: 0, queued: 0, oldest: null, p50: null, p99: null }));
  for (const sample of samples) {
    const row = rows[Math.floor((new Date(sample.at) - start) / step)];
    if (!row) continue;
    row.triggers += sample.triggers;
    row.good += sum(sample.ends.byStatus, good);
    row.bad += sum(sample.ends.byStatus, bad);
    row.off += sum(sample.ends.byStatus, off);
    row.queued = Math.max(row.queued, sample.queued);
    if (sample.oldestQueuedMs !== null) row.oldest = Math.max(row.oldest ?? 0, sample.oldestQueuedMs);
    if (sample.deliveryMs) {
      row.p50 = Math.max(row.p50 ?? 0, sample.deliveryMs.p50);
      row.p99 = Math.max(row.p99 ?? 0, sample.deliveryMs.p99);
    }
  }
  return { rows, stepS: step / 1000 };
}

function Now({ place }) {
  const mirror = useWatch(place, { period: "7d" }, { limit: 1, counts: true }), byStatus = mirror?.counts?.byStatus;
  const shown = Object.keys(statuses).filter((status) => always.includes(status) || byStatus?.[status]);
  return (
    <section class="tiles" aria-label="Runs from the last 7 days by status">{shown.map((status) => (
      <a key={status} class="tile" href={addressOf({ ...place, view: "runs", query: { status } })}><Status status={status} /><b>{byStatus ? (byStatus[status] ?? 0).toLocaleString("en") : "–"}</b></a>
    ))}</section>
  );
}

const ms = (value) => value < 1000 ? `${Number(value.toPrecision(2))} ms` : duration(value);

export function Overview({ place }) {
  const [range, setRange] = useState("1h"), seconds = ranges.find(([name]) => name === range)[2];
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, range], () => session.ask(place, "GET", `/api/v1/environments/stats?since=${range}`), { everyMs: 10_000 });
  const plots = useMemo(() => {
    if (!data) return undefined;
    const { rows, stepS } = rowsOf(data, seconds), of = (name) => rows.map((row) => row[name]), perMinute = (name) => rows.map((row) => row[name] * 60 / stepS);
    return { times: of("at"), from: rows[0].at, to: rows.at(-1).at, of, perMinute };
  }, [data, seconds]);
  const isYoung = data && new Date(data.to) - new Date(data.from) < (seconds - 60) * 1000;
  const rate = (value) => `${value >= 1000 ? `${(value / 1000).toFixed(1)}k` : Math.round(value * 10) / 10}/min`;
  const common = plots && { times: plots.times, from: plots.from, to: plots.to };
  const worst = useQuery([place.ref, place.env, place.branch, "worst"], () => session.ask(place, "GET", `/api/v1/runs?${new URLSearchParams({ "filter[status]": "FAILED,CRASHED,SYSTEM_FAILURE,TIMED_OUT", "page[size]": 6 })}`), { everyMs: 10_000 });
  return (
    <Page title="Overview" actions={<div class="row" role="group" aria-label="Time range">{ranges.map(([name, label]) => <Button key={name} kind={`small ${name === range ? "primary" : ""}`} aria-pressed={name === range} onClick={() => setRange(name)}>{label}</Button>)}</div>}>
      <Now place={place} />
      {error && <Problem error={error} retry={reload} />}
      {isYoung && <p class="dim">The gateway keeps these figures in memory. They start <Time at={data.from} relative />, when the gateway started or this environment was first viewed.</p>}
      {!plots ? !error && <Loading /> : <div class="plots">
        <Plot title="Triggered" {...common} unit={rate} series={[{ label: "now", tone: "accent", values: plots.perMinute("triggers") }]} />
        <Plot title="Finished" {...common} unit={rate} series={[{ label: "completed", tone: "good", values: plots.perMinute("good") }, { label: "failed", tone: "bad", values: plots.perMinute("bad") }, { label: "canceled or expired", tone: "off", values: plots.perMinute("off") }]} />
        <Plot title="Queued" {...common} series={[{ label: "runs", tone: "wait", values: plots.of("queued") }]} />
        <Plot title="Oldest queued" {...common} unit={ms} series={[{ label: "wait time", tone: "wait", values: plots.of("oldest") }]} />
        <Plot title="Commit-to-subscriber latency" {...common} unit={ms} series={[{ label: "p99", tone: "pause", values: plots.of("p99") }, { label: "p50", tone: "run", values: plots.of("p50") }]} />
        <section class="panel" aria-label="Recent failures"><header><h2>Recent failures</h2></header><div class="body">
          {worst.data?.data.length === 0 && <p class="dim">No failures in the last 7 days</p>}
          {worst.data?.data.map((run) => <a key={run.id} class="run-link" href={addressOf({ ...place, view: "runs", id: run.id })}><span>{run.taskIdentifier}</span><span class="row"><span class="dim"><Time at={run.finishedAt ?? run.updatedAt} relative /></span><Status status={run.status} /></span></a>)}
        </div></section>
      </div>}
    </Page>
  );
}
