// batches.jsx - the list of batches and their progress, and one batch.
import { useState } from "preact/hooks";

import { withRuns } from "../lib/batches.js";
import { summaryOf, useDetails } from "../lib/details.js";
import { useWatch } from "../lib/live.js";
import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { failedStatuses, finalStatuses, statuses, toneOf } from "../lib/status.js";
import { Button, Empty, Facts, Id, Loading, Page, Problem, Status, Table, Tag, Time } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";

const order = Object.keys(statuses).sort((a, b) => finalStatuses.has(b) - finalStatuses.has(a));
const failed = [...failedStatuses, "EXPIRED"];
const countOf = (byStatus = {}, names) => names.reduce((sum, name) => sum + (byStatus[name] ?? 0), 0);

/** The state of a batch in one word: in progress, or how it ended. */
function State({ batch, byStatus = {} }) {
  const { status, runCount, endedCount } = batch, bad = countOf(byStatus, failed), hasEnded = endedCount >= runCount;
  const [label, tone] = status === "ABORTED" ? ["Aborted", "off"] : !hasEnded ? ["In progress", "run"]
    : bad === 0 && status !== "PARTIAL_FAILED" ? ["Completed", "good"] : bad >= runCount ? ["Failed", "bad"] : ["Partly failed", "bad"];
  return <Status status={tone} tone={tone} label={label} />;
}

/** A bar of runs by status. */
export function Progress({ byStatus, total }) {
  const shown = order.filter((status) => byStatus[status]), done = shown.filter((status) => finalStatuses.has(status)).reduce((sum, status) => sum + byStatus[status], 0);
  return (
    <span class="progress" role="img" aria-label={`${done} of ${total} runs finished`} title={shown.map((status) => `${statuses[status].label} ${byStatus[status]}`).join(", ")}>
      {shown.map((status) => <i key={status} class={toneOf(status)} style={{ width: `${byStatus[status] / Math.max(total, 1) * 100}%` }} />)}
    </span>
  );
}

/** The payload of a run in one line. */
function Glimpse({ place, run }) {
  const text = summaryOf(useDetails(place, run.id), 100);
  return <code class="dim glimpse" title={text}>{text}</code>;
}

function Batch({ place }) {
  const mirror = useWatch(place, { batch: place.id, from: "2000-01-01T00:00:00Z" }, { limit: 200, counts: true }), back = addressOf({ ...place, id: undefined, query: {} });
  const { data, error } = useQuery([place.ref, place.env, place.id], () => session.request(place, "GET", `/api/v2/batches/${encodeURIComponent(place.id)}`), { everyMs: 2000 });
  if (!data) return <Page title="Batch">{error?.status === 404 ? <Empty title="Batch not found"><p>{place.env} has no batch <code>{place.id}</code>: it may be in another environment, or retention has removed it.</p><p><a href={back}>Show all batches</a></p></Empty> : error ? <Problem error={error} /> : <Loading />}</Page>;
  const counts = mirror?.counts ?? { byStatus: {} }, tags = mirror?.runs.values().next().value?.tags ?? [], rows = [...mirror?.runs.values() ?? []];
  return (
    <Page title="Batch" subtitle={<span class="row"><a class="back" href={back}><Icon name="left" size={14} />Batches</a><State batch={{ ...data, endedCount: countOf(counts.byStatus, [...finalStatuses]) }} byStatus={counts.byStatus} /><Id>{data.id}</Id></span>}
      actions={<a class="button" href={addressOf({ ...place, view: "runs", id: undefined, query: { batch: place.id } })}>Show runs</a>}>
      <section class="panel" aria-label="Progress"><div class="body stack">
        <Progress byStatus={counts.byStatus} total={data.runCount} />
        <ul class="plain">{order.filter((status) => counts.byStatus[status]).map((status) => <li key={status}><Status status={status} /> {counts.byStatus[status].toLocaleString("en")}</li>)}</ul>
        <Facts rows={[["Runs", data.runCount.toLocaleString("en")], ["Failed", countOf(counts.byStatus, failed) > 0 && <a href={addressOf({ ...place, view: "runs", id: undefined, query: { batch: place.id, status: failed.join(",") } })}>{countOf(counts.byStatus, failed).toLocaleString("en")}</a>], ["Tags", tags.length > 0 && <span class="row">{tags.map((tag) => <Tag key={tag} href={addressOf({ ...place, view: "runs", id: undefined, query: { tag } })}>{tag}</Tag>)}</span>], ["Created", <Time at={data.createdAt} />], ["Idempotency key", data.idempotencyKey]]} />
      </div></section>
      {rows.length > 0 && <Table label="Runs of the batch" rows={rows} columns={[
        ["Task", (run) => <a class="batch-name" href={addressOf({ ...place, view: "runs", id: run.id, query: {} })}><b>{run.taskIdentifier}</b> <code class="dim" title={run.id}>…{run.id.slice(-8)}</code></a>], ["Payload", (run) => <Glimpse place={place} run={run} />], ["Status", (run) => <Status status={run.status} />], ["Created", (run) => <Time at={run.createdAt} relative />, "number"],
      ]} />}
    </Page>
  );
}

function List({ place }) {
  const [before, setBefore] = useState([]);
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, before], async () => {
    const page = await session.request(place, "GET", `/api/v1/batches?${new URLSearchParams({ "page[size]": 30, ...before.length && { "page[after]": before.at(-1) } })}`);
    return { ...page, data: await withRuns(place, page.data) };
  }, { everyMs: 2000 });
  const rows = data?.data ?? [];
  return (
    <Page title="Batches">
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !rows.length && <Empty title="No batches"><p>A batch triggers many runs with one call, and this page shows its progress:</p><pre>{`await tasks.batchTrigger("send-email", [
  { payload: { to: "ada@example.com" } },
  { payload: { to: "bob@example.com" } },
]);`}</pre></Empty>}
      {rows.length > 0 && <Table label="Batches" rows={rows} columns={[
        ["Batch", ({ id, tasks: [task = "Batch", ...others] = [] }) => <a class="batch-name" title={`${[task, ...others].join(", ")} ${id}`} href={addressOf({ ...place, id, query: {} })}><b>{task}</b>{others.length > 0 && <span class="dim nowrap"> +{others.length}</span>} <code class="dim">{id}</code></a>, "id-cell"],
        ["Tags", (one) => one.tags?.length > 0 && <span class="row">{one.tags.slice(0, 2).map((tag) => <Tag key={tag}>{tag}</Tag>)}</span>],
        ["Status", (one) => <State batch={one} byStatus={one.byStatus} />],
        ["Progress", (one) => <span class="progress-cell"><span>{one.endedCount.toLocaleString("en")} / {one.runCount.toLocaleString("en")}</span><Progress byStatus={one.byStatus ?? {}} total={one.runCount} /></span>, "wide-cell"],
        ["Failed", (one) => { const bad = countOf(one.byStatus, failed); return bad ? <a class="error-link" href={addressOf({ ...place, view: "runs", id: undefined, query: { batch: one.id, status: failed.join(",") } })}>{bad.toLocaleString("en")}</a> : <span class="dim">–</span>; }, "number"],
        ["Created", (one) => <Time at={one.createdAt} relative />, "number"],
      ]} />}
      {(before.length > 0 || data?.pagination?.next) && <div class="row-end flat"><Button disabled={!before.length} onClick={() => setBefore(before.slice(0, -1))}>Previous</Button><Button disabled={!data?.pagination?.next} onClick={() => setBefore([...before, data.pagination.next])}>Next</Button></div>}
    </Page>
  );
}

export const Batches = ({ place }) => place.id ? <Batch key={place.id} place={place} /> : <List place={place} />;
