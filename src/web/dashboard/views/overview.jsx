// overview.jsx - the state of an environment: stuck runs, failures, figures of each task, and plots of the last hours.
import { useMemo, useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { cursorOf } from "../lib/run_id.js";
import { lastMinute, rowsOf, totalsOf } from "../lib/samples.js";
import { session } from "../lib/session.js";
import { failedStatuses } from "../lib/status.js";
import { duration } from "../lib/time.js";
import { Button, Figure, Loading, Page, Problem, Status, Table, Time } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { Plot } from "../ui/plot.jsx";

const ranges = [["15m", "15 minutes", 900], ["1h", "1 hour", 3600], ["6h", "6 hours", 21600]];
const always = ["completed", "failed"]; // plotted even if all values are 0
const stuckMs = 60_000, shownFailures = 8, everyMs = 10_000;
const allFailed = failedStatuses.join(","), failedOrExpired = `${allFailed},EXPIRED`;
const oldest = cursorOf(`run_${"0".repeat(21)}`); // before every run

const ms = (value) => value < 1000 ? `${Number(value.toPrecision(2))} ms` : duration(value);
const tick = (value) => ms(value).replace(/ 00 (s|min)$/, "");
const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const steps = [.1, .5, 1, 5, 10, 50, 100, 500, ...[1, 5, 15, 30].map((n) => n * second), ...[1, 2, 5, 10, 30].map((n) => n * minute), ...[1, 2, 6, 12].map((n) => n * hour), ...[1, 2, 5, 10, 50, 100].map((n) => n * day)];
const number = (value) => value.toLocaleString("en");
const short = (value) => value >= 1000 ? `${(value / 1000).toFixed(1)}k` : `${Math.round(value * 10) / 10}`;
const rate = (value) => `${short(value)}/min`;
const percent = (part, whole) => !whole ? undefined : part && part / whole < .001 ? "<0.1%" : `${Math.round(part / whole * 1000) / 10}%`;

function Figures({ place, data, range }) {
  const { now } = data, { triggers, good, bad, expired } = totalsOf(data.samples), isStuck = now.oldestQueuedMs > stuckMs;
  const runs = (status) => addressOf({ ...place, view: "runs", query: { status, period: range } });
  return (
    <section class="figures" aria-label="Summary">
      <Figure label="Failure rate" value={percent(bad, good + bad)} tone={bad ? "bad" : ""} note={good + bad ? `${number(bad)} of ${number(good + bad)} finished` : "None finished"} href={runs(allFailed)} />
      <Figure label="Triggered" value={number(triggers)} note={rate(lastMinute(data, 0).triggers)} href={runs()} />
      <Figure label="Completed" value={number(good)} note={expired ? `${number(expired)} expired` : undefined} href={runs("COMPLETED")} />
      <Figure label="Executing" value={number(now.executing)} note={`of ${number(now.concurrencyLimit)}`} href={addressOf({ ...place, view: "runs", query: { status: "EXECUTING" } })} />
      <Figure label="Queued" value={number(now.queued)} tone={isStuck || now.pendingVersion ? "wait" : ""} note={now.oldestQueuedMs !== null ? `oldest ${duration(now.oldestQueuedMs)}` : now.pendingVersion ? `${number(now.pendingVersion)} wait for a version` : undefined} href={addressOf({ ...place, view: "runs", query: { status: "QUEUED" } })} />
    </section>
  );
}

/** Shows how many runs have waited for a long time, or wait for a version, and why the oldest of them waits. */
function Stuck({ place, now }) {
  const isLong = now.oldestQueuedMs > stuckMs, isStuck = isLong || now.pendingVersion > 0, status = isLong ? "QUEUED" : "PENDING_VERSION", count = isLong ? now.queued : now.pendingVersion;
  const { data: run } = useQuery([place.ref, place.env, place.branch, status], async () => {
    const { data: [first] } = await session.request(place, "GET", `/api/v1/runs?${new URLSearchParams({ "filter[status]": status, "filter[createdAt][from]": "2000-01-01T00:00:00Z", "page[size]": 1, "page[before]": oldest })}`);
    return first && session.request(place, "GET", `/api/v3/runs/${first.id}`);
  }, { enabled: isStuck, everyMs });
  if (!isStuck) return null;
  return (
    <div class="waiting wait stuck" role="status"><Icon name="queues" /><span><b>{isLong ? `${number(count)} ${count === 1 ? "run is" : "runs are"} queued, the oldest for ${duration(now.oldestQueuedMs)}.` : `${number(count)} ${count === 1 ? "run waits" : "runs wait"} for a version.`}</b> {run?.waitingFor?.message}</span>
      {run && <a class="button small" href={addressOf({ ...place, view: "runs", id: run.id })}>Oldest run</a>}</div>
  );
}

function Tasks({ place, data, range }) {
  const rows = data.tasks.filter(({ triggers, completed, failed, expired }) => triggers + completed + failed + expired > 0).sort((a, b) => b.failed - a.failed || b.triggers - a.triggers);
  const runs = (task, status) => addressOf({ ...place, view: "runs", query: { task, status, period: range } });
  return (
    <section class="panel" aria-label="Tasks"><header><h2>Tasks</h2>{rows.length > 0 && <span class="dim">since <Time at={rows.map(({ from }) => from).sort()[0]} /></span>}</header>
      {rows.length === 0 ? <p class="pad dim">No task was triggered in this period.</p> : <Table label="Figures by task" rows={rows} rowKey="task" columns={[
        ["Task", ({ task }) => <a class="strong" title={task} href={runs(task)}>{task}</a>],
        ["Runs", ({ triggers }) => number(triggers), "number"],
        ["Failure rate", ({ task, completed, failed }) => failed ? <a class="rate" href={runs(task, allFailed)}><span class="meter" aria-hidden="true"><i style={{ width: `${failed / (completed + failed) * 100}%` }} /></span>{percent(failed, completed + failed)}</a> : completed ? <span class="dim">0%</span> : <span class="dim">–</span>, "number"],
        ["Expired", ({ expired }) => expired ? number(expired) : <span class="dim">–</span>, "number"],
        ["p50", ({ durationMs }) => durationMs ? duration(durationMs.p50) : <span class="dim">–</span>, "number"],
        ["p95", ({ durationMs }) => durationMs ? duration(durationMs.p95) : <span class="dim">–</span>, "number"],
        ["Last failure", ({ lastFailure }) => lastFailure ? <a href={addressOf({ ...place, view: "runs", id: lastFailure.runId })}><Time at={lastFailure.at} relative /></a> : <span class="dim">–</span>, "number"],
      ]} />}
      {data.tasksAreCut && <p class="pad dim">Some figures are missing: there are more tasks than are counted, or there is no memory for more figures.</p>}
    </section>
  );
}

/** Returns runs that ended alike: by task and status, the last ended first. */
function alike(runs, endOf) {
  const groups = new Map();
  for (const run of [...runs].sort((a, b) => endOf(b) - endOf(a))) {
    const key = `${run.taskIdentifier} ${run.status}`;
    groups.set(key, [...groups.get(key) ?? [], run]);
  }
  return [...groups.values()];
}

/** The last runs that failed or expired, out of the hundred newest of both, with one row for each task and status. */
function Failures({ place }) {
  const newest = (status) => session.request(place, "GET", `/api/v1/runs?${new URLSearchParams({ "filter[status]": status, "page[size]": 100 })}`);
  const { data } = useQuery([place.ref, place.env, place.branch, "failures"], async () => (await Promise.all([newest(allFailed), newest("EXPIRED")])).flatMap((page) => page.data), { everyMs });
  const endOf = ({ finishedAt, updatedAt }) => new Date(finishedAt ?? updatedAt), rows = alike(data ?? [], endOf).slice(0, shownFailures);
  const address = ([run, next]) => addressOf({ ...place, view: "runs", ...next ? { query: { task: run.taskIdentifier, status: run.status } } : { id: run.id } });
  return (
    <section class="panel" aria-label="Recent failures"><header><h2>Recent failures</h2>{rows.length > 0 && <a href={addressOf({ ...place, view: "runs", query: { status: failedOrExpired } })}>Show all</a>}</header><div class="body">
      {data && !rows.length && <p class="dim">No failures in the last 7 days</p>}
      {rows.map((same) => { const [run] = same; return <a key={run.id} class="run-link" href={address(same)}><span>{run.taskIdentifier}<small class="when">{same.length > 1 && `×${same.length}${same.length < 100 ? "" : "+"}, last `}<Time at={endOf(run)} relative /></small></span><Status status={run.status} /></a>; })}
    </div></section>
  );
}

function Plots({ data, seconds }) {
  const plots = useMemo(() => {
    const { rows, stepMs } = rowsOf(data, seconds), now = lastMinute(data, stepMs), of = (name) => rows.map((row) => row[name]);
    const perMinute = (label, name, tone) => ({ label, tone, values: rows.map((row) => row[name] * 60_000 / stepMs), now: now[name] });
    const hasDeliveries = rows.some(({ p50 }) => p50 !== null);
    return { times: of("at"), from: rows[0].at, to: rows.at(-1).at, of, perMinute, hasDeliveries };
  }, [data, seconds]);
  const { of, perMinute } = plots, common = { times: plots.times, from: plots.from, to: plots.to };
  return (
    <div class="plots">
      <Plot title="Triggered" per="per minute" {...common} unit={short} series={[perMinute("last minute", "triggers", "accent")]} />
      <Plot title="Finished" per="per minute" {...common} unit={short} series={[perMinute("completed", "good", "good"), perMinute("failed", "bad", "bad"), perMinute("canceled", "canceled", "off"), perMinute("expired", "expired", "wait")].filter(({ label, values }) => always.includes(label) || values.some(Boolean))} />
      <Plot title="Queued" none="No runs were queued" {...common} isWhole series={[{ label: "runs", tone: "wait", values: of("queued"), now: data.now.queued }]} />
      <Plot title="Oldest queued" none="No runs were queued" {...common} unit={tick} steps={steps} series={[{ label: "wait time", tone: "wait", values: of("oldest"), now: data.now.oldestQueuedMs }]} />
      {plots.hasDeliveries && <Plot title="Commit-to-subscriber latency" {...common} unit={tick} steps={steps} series={[{ label: "p99", tone: "pause", values: of("p99") }, { label: "p50", tone: "run", values: of("p50") }]} />}
    </div>
  );
}

export function Overview({ place }) {
  const [range, setRange] = useState("1h"), seconds = ranges.find(([name]) => name === range)[2];
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, range], () => session.request(place, "GET", `/api/v1/environments/stats?since=${range}`), { everyMs });
  const isPartial = data && new Date(data.to) - new Date(data.from) < (seconds - 60) * 1000;
  return (
    <Page title="Overview" actions={<div class="segments" role="group" aria-label="Time range">{ranges.map(([name, label]) => <Button key={name} kind="small" aria-pressed={name === range} onClick={() => setRange(name)}>{label}</Button>)}</div>}>
      {error && <Problem error={error} retry={reload} />}
      {!data ? !error && <Loading /> : <>
        <Stuck place={place} now={data.now} />
        <Figures place={place} data={data} range={range} />
        <div class="columns even"><Tasks place={place} data={data} range={range} /><Failures place={place} /></div>
        <Plots data={data} seconds={seconds} />
        {isPartial && <p class="dim note">These figures begin <Time at={data.from} relative />, when this environment was first used.</p>}
      </>}
    </Page>
  );
}
