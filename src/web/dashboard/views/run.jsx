// run.jsx - one run: its status and the reason, its history, its payload and output.
import { useEffect, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { useSubscription } from "../lib/live.js";
import { summaryOf, useDetails } from "../lib/details.js";
import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { parseExactly, session } from "../lib/session.js";
import { isFinal, toneOf } from "../lib/status.js";
import { stepsOf } from "../lib/steps.js";
import { clockTime, duration, runDuration, until, useNow } from "../lib/time.js";
import { loadTrace } from "../lib/trace.js";
import { Button, Empty, Facts, Id, Loading, Page, Problem, Status, Tag, Time, Warnings } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { Failure } from "../ui/failure.jsx";
import { Json } from "../ui/json.jsx";
import { attempt } from "../ui/toast.jsx";
import { limitAddress } from "./limits.jsx";
import { queueAddress } from "./usage.jsx";
import { Logs } from "./logs.jsx";
import { CancelDialog, ReplayDialog, RescheduleDialog, SnippetDialog } from "./run_dialogs.jsx";
import { Streams } from "./run_streams.jsx";
import { Trace } from "./trace.jsx";
import { CompleteDialog } from "./waitpoints.jsx";
import { currentWorker } from "./test.jsx";

const traceMs = 1500, longTraceMs = 15_000; // while the run has not ended; the whole trace is loaded each time

const shownMax = 2_000_000; // max characters of a large value that the page shows

/** A value that the SDK has stored outside of the run because it is large. A button shows it. */
function LargeValue({ url, label }) {
  const [value, setValue] = useState(), [problem, setProblem] = useState();
  async function show() {
    try {
      const response = await fetch(url), text = await response.text();
      if (!response.ok || text.length > shownMax) throw new Error(response.ok ? "Too long to show here" : `The gateway returned status ${response.status}`);
      try { setValue(parseExactly(text)); } catch { setValue(text); }
    } catch (error) { setProblem(error.message); }
  }
  if (value !== undefined) return <Json value={value} label={label} />;
  return <><p class="row">Large value: {!problem && <Button kind="small" onClick={show}>Show</Button>} <a href={url} target="_blank" rel="noreferrer noopener">Download</a></p>{problem && <p class="error">{problem}</p>}</>;
}

function Value({ run, name, label }) {
  const value = run[name], url = run[`${name}PresignedUrl`];
  return value === undefined && url ? <LargeValue key={url} url={url} label={label} /> : <Json value={value} label={label} />;
}

/** The gateway's explanation of a waiting run: times in the page's format, and ids as links. */
function Explanation({ place, text }) {
  const timed = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => clockTime(time));
  return timed.split(/((?:run|waitpoint)_\w+)/).map((part, at) => at % 2 === 0 ? part : <a key={at} href={addressOf({ ...place, view: part.startsWith("run_") ? "runs" : "waitpoints", id: part.startsWith("run_") ? part : undefined, query: {} })}><code>{part}</code></a>);
}

/** A link to what a waiting run needs a slot of: a concurrency limit, the run's queue, or that of a gate. */
function Obstacle({ place, run }) {
  const { reason, limitName } = run.waitingFor;
  if (limitName && !/^gate/.test(reason)) return <a class="button small" href={limitAddress(place, limitName, run.concurrencyKey)}>Show limit</a>;
  return /^queue_|^concurrency_key$|^gate|^rate$/.test(reason) && <a class="button small" href={queueAddress(place, limitName ?? run.queue, reason === "concurrency_key" ? run.concurrencyKey : run.waitingFor.limitKey)}>Show queue</a>;
}

function Panel({ title, children }) {
  return <section class="panel" aria-label={title}><header><h2>{title}</h2></header><div class="body">{children}</div></section>;
}

function States({ run }) {
  const now = useNow(!isFinal(run)), steps = stepsOf(run, now);
  return (
    <ol class="steps">{steps.map(([label, at], index) => (
      <li key={label} class={at > now ? "future" : undefined}><b>{label}</b><Time at={at} ms />{index > 0 && <small>+{duration(at - steps[index - 1][1])}</small>}</li>
    ))}</ol>
  );
}

function RunLink({ place, run, hasSummary = false }) {
  const details = useDetails(place, run.id, hasSummary);
  return (
    <a class="run-link" href={addressOf({ ...place, view: "runs", id: run.id, query: {} })}>
      <span>{run.taskIdentifier} <code class="dim">…{run.id.slice(-5)}</code>{hasSummary && <small>{summaryOf(details) || "\u00a0"}</small>}</span><Status status={run.status} />
    </a>
  );
}

const firstChildren = 20, childrenPage = 100;

/** The newest children, live, and pages of older ones. */
function Children({ place, id, first }) {
  const [pages, setPages] = useState([]), [after, setAfter] = useState(""), [isBusy, setBusy] = useState(false);
  const more = pages.flat(), shown = more.length ? more : first.slice(0, firstChildren), mayHaveMore = after !== undefined && (more.length > 0 || first.length > firstChildren);
  async function load() {
    setBusy(true);
    await attempt(async () => {
      const { data, pagination } = await session.request(place, "GET", `/api/v1/runs/${encodeURIComponent(id)}/children?${new URLSearchParams({ "page[size]": childrenPage, ...after && { "page[after]": after } })}`);
      setPages((old) => [...old, data]);
      setAfter(pagination?.next);
    });
    setBusy(false);
  }
  return (
    <>
      <h3 class="dim">Children</h3>
      <div class="children">{shown.map((child) => <RunLink key={child.id} place={place} run={first.find((one) => one.id === child.id) ?? child} hasSummary />)}</div>
      {mayHaveMore && <Button kind="small" busy={isBusy} onClick={load}>Show more</Button>}
    </>
  );
}

export function Run({ place }) {
  const { id } = place, mirror = useSubscription(place, { run: id }), live = mirror?.runs.get(id);
  const [dialog, setDialog] = useState();
  const { data: run, error, isLoading, reload } = useQuery([place.ref, place.env, place.branch, id], () => session.request(place, "GET", `/api/v3/runs/${encodeURIComponent(id)}`));
  const isLive = run && !isFinal(run), [isLong, setIsLong] = useState(false);
  const trace = useQuery([place.ref, place.env, place.branch, id, "trace", run?.id], () => loadTrace(place, run), { enabled: Boolean(run), everyMs: isLive ? (isLong ? longTraceMs : traceMs) : undefined });
  useEffect(() => { setIsLong(Boolean(trace.data?.isLong)); }, [trace.data]);
  useEffect(() => { if (live) { reload(); trace.reload(); } }, [live]);
  const now = useNow(Boolean(isLive));
  const { data: version } = useQuery([place.ref, place.env, place.branch, run?.version, "version"], () => currentWorker(place, run.version), { enabled: Boolean(run?.error && run.version) });
  const failedBy = version?.worker?.warnings?.filter(({ feature }) => run?.error?.message?.includes(`runcast does not have ${feature}`));
  const isLogs = place.query.get("logs") === "1", without = Object.fromEntries([...place.query].filter(([name]) => name !== "logs"));
  const back = addressOf({ ...place, view: "runs", id: undefined, query: without });
  useEffect(() => {
    const press = (event) => { if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], .menu") && !event.target.closest("input, textarea, select")) go(back); };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [back]);

  if (!run && isLoading) return <Page title="Run"><Loading what="Loading the run" /></Page>;
  if (!run) return (
    <Page title="Run"><Problem error={error.status === 404 ? undefined : error} retry={reload} />
      {error.status === 404 && <Empty title="Run not found"><p>{place.env} has no run <code>{id}</code>: it may be in another environment, or retention has removed it.</p><p><a href={`${base}/runs/${encodeURIComponent(id)}`}>Search all environments</a> or <a href={back}>show all runs</a></p></Empty>}
    </Page>
  );
  const tab = (label, isShown, query) => <a role="tab" aria-selected={isShown} href={addressOf({ ...place, query })} onClick={(event) => { event.preventDefault(); go(addressOf({ ...place, query }), { replace: true }); }}>{label}</a>;
  const tabs = <div class="segments" role="tablist" aria-label="Timeline or logs">{tab("Timeline", !isLogs, without)}{tab("Logs", isLogs, { ...without, logs: 1 })}</div>, Shown = isLogs ? Logs : Trace;
  const activity = trace.data ? <Shown place={place} trace={trace.data} isLive={isLive} tabs={tabs} /> : trace.error ? <Problem error={trace.error} retry={trace.reload} /> : <Loading />;
  const token = run.waitingFor?.reason === "waitpoint" ? /waitpoint_\w+/.exec(run.waitingFor.message)?.[0] : undefined;
  const related = run.relatedRuns ?? {}, streams = live?.realtimeStreams ?? [], link = (view, value, query) => <a href={addressOf({ ...place, view, id: query ? undefined : value, query })}>{value}</a>;
  return (
    <Page title={run.taskIdentifier} subtitle={<span class="row"><a class="back" href={back}><Icon name="left" size={14} />Runs</a><Status status={run.status} /><Id>{run.id}</Id></span>}
      actions={<>
        <Button icon="copy" onClick={() => setDialog("snippet")}>Copy as…</Button>
        <Button icon="replay" onClick={() => setDialog("replay")}>Replay…</Button>
        {run.status === "DELAYED" && <Button icon="schedules" onClick={() => setDialog("time")}>Reschedule…</Button>}
        {!isFinal(run) && <Button icon="stop" onClick={() => setDialog("cancel")}>Cancel…</Button>}
      </>}>
      {error && <Problem error={error} retry={reload} />}
      {run.waitingFor && <div class={`waiting ${toneOf(run.status)}`} role="status"><Icon name="waitpoints" /><span><Explanation place={place} text={run.waitingFor.message} />{run.waitingFor.until && <span class="dim"> · {until(run.waitingFor.until, now)}</span>}</span>{token && <Button kind="small" onClick={() => setDialog("token")}>Complete…</Button>}<Obstacle place={place} run={run} /></div>}
      <Warnings warnings={failedBy} />
      {run.error && <Failure error={run.error} limit={run.maxDurationSeconds && `${run.maxDurationSeconds.toLocaleString("en")} s`} />}
      {isLogs && activity}
      <div class="columns">
        <div class="stack">
          {!isLogs && activity}
          <div class="pair"><Panel title="Payload"><Value run={run} name="payload" label="payload" /></Panel>{(run.status === "COMPLETED" || isLive) && <Panel title="Output">{isLive ? <p class="dim">Not finished yet</p> : <Value run={run} name="output" label="output" />}</Panel>}</div>
          {run.metadata && Object.keys(run.metadata).length > 0 && <Panel title="Metadata"><Json value={run.metadata} label="metadata" /></Panel>}
          {streams.length > 0 && <Panel title="Streams"><Streams place={place} run={id} names={streams} /></Panel>}
        </div>
        <aside class="stack">
          <Panel title="Lifecycle"><States run={run} /></Panel>
          <Panel title="Details"><Facts rows={[
            ["Task", link("runs", run.taskIdentifier, { task: run.taskIdentifier })], ["Version", run.version && link("runs", run.version, { version: run.version })], ["Queue", run.queue && link("runs", run.queue, { queue: run.queue })],
            [isFinal(run) ? "Limits" : run.status === "EXECUTING" ? "Holds limits" : "Needs limits", run.concurrencyLimits?.length > 0 && <ul class="names">{run.concurrencyLimits.map((name) => <li key={name}><a href={limitAddress(place, name, run.concurrencyKey)}>{name}</a></li>)}</ul>],
            ["Gates", run.gates?.length > 0 && <ul class="names">{run.gates.map(({ queue, concurrencyKey }) => <li key={`${queue} ${concurrencyKey ?? ""}`}><a href={queueAddress(place, queue, concurrencyKey)}>{queue}</a>{concurrencyKey && <> <code class="dim">{concurrencyKey}</code></>}</li>)}</ul>],
            ["Duration", run.startedAt && duration(runDuration(run, now))], ["Attempts", run.attemptCount > 0 && run.attemptCount], ["Tags", run.tags.length > 0 && <span class="row">{run.tags.map((tag) => <Tag key={tag} href={addressOf({ ...place, view: "runs", id: undefined, query: { tag } })}>{tag}</Tag>)}</span>],
            ["Batch", run.batchId && <a href={addressOf({ ...place, view: "batches", id: run.batchId })}>{run.batchId}</a>], ["Schedule", run.schedule && <a href={addressOf({ ...place, view: "schedules", id: run.schedule.id })}>{run.schedule.id}</a>],
            ["Idempotency key", run.idempotencyKey], ["Concurrency key", run.concurrencyKey], ["Expires after", !run.startedAt && !isFinal(run) && run.ttl], ["Triggered with", run.triggerFunction && <code>{run.triggerFunction}</code>], ["Test run", run.isTest && "Yes"], ["Cost", run.costInCents + run.baseCostInCents > 0 && `${(run.costInCents + run.baseCostInCents).toFixed(4)} ¢`],
          ]} /></Panel>
          {(related.parent || related.children?.length > 0) && <Panel title="Family">
            {related.root && related.root.id !== related.parent?.id && <><h3 class="dim">Root</h3><RunLink place={place} run={related.root} /></>}
            {related.parent && <><h3 class="dim">Parent</h3><RunLink place={place} run={related.parent} /></>}
            {related.children?.length > 0 && <Children key={id} place={place} id={id} first={related.children} />}
          </Panel>}
        </aside>
      </div>
      {dialog === "token" && token && <CompleteDialog place={place} token={{ id: token }} onClose={() => setDialog()} onDone={reload} />}
      {dialog === "replay" && <ReplayDialog place={place} run={run} onClose={() => setDialog()} />}
      {dialog === "cancel" && <CancelDialog place={place} run={run} onClose={() => setDialog()} onDone={reload} />}
      {dialog === "time" && <RescheduleDialog place={place} run={run} onClose={() => setDialog()} onDone={reload} />}
      {dialog === "snippet" && <SnippetDialog place={place} run={run} onClose={() => setDialog()} />}
    </Page>
  );
}
