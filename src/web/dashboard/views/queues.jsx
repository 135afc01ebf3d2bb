// queues.jsx - queues: how many runs wait and execute in each, which ones, and their limits.
import { useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { age, duration, useNow } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Figure, Loading, Page, Problem, Status, Table } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { attempt } from "../ui/toast.jsx";
import { limitAddress } from "./limits.jsx";
import { RateDialog, RateFigures, Rates } from "./rates.jsx";
import { queueAddress, Usage } from "./usage.jsx";

const everyMs = 2000, limitsMs = 10_000;
const number = (value) => value.toLocaleString("en");
const pathOf = ({ name }) => `/api/v1/queues/${encodeURIComponent(name)}`;
export const nameOf = ({ name, type }) => type === "task" ? `task/${name}` : name;

const strategies = [["", "No: as many as the limit allows"], ["queue", "Yes: further runs wait"], ["skip", "Yes: skip further triggers"], ["cancel", "Yes: cancel the older run"]];

/** Sets the limit of a queue and its singleton strategy; sends what the user has changed. */
function LimitDialog({ place, queue, onRate, onClose, onDone }) {
  const { base, override } = queue.concurrency ?? { base: null, override: null }, set = String(override ?? base ?? ""), own = queue.singleton ?? "";
  const [limit, setLimit] = useState(set), [strategy, setStrategy] = useState(own), [isBusy, setBusy] = useState(false);
  const number = Number(limit), isWrong = limit !== "" && (!Number.isInteger(number) || number < 0 || number > 100_000), hasLimit = limit !== "" && limit !== set;
  const post = (path, body) => session.request(place, "POST", `${pathOf(queue)}/${path}`, { body: { type: queue.type, ...body } });
  async function change(action, text) {
    setBusy(true);
    if (await attempt(action, text)) { onDone(); onClose(); }
    setBusy(false);
  }
  async function save() {
    if (strategy !== own) await post("singleton", { strategy: strategy || null });
    if (hasLimit) await post("concurrency/override", { concurrencyLimit: number });
  }
  return (
    <Dialog title={`Limit of ${queue.name}`} onClose={onClose} actions={<>
      <Button icon="schedules" kind="plain aside" onClick={onRate}>Rate…</Button>
      {override !== null && <Button busy={isBusy} onClick={() => change(() => post("concurrency/reset", {}), "Limit override removed")}>Remove override</Button>}
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" busy={isBusy} disabled={isWrong || !hasLimit && strategy === own} onClick={() => change(save, `Limit of ${queue.name} saved`)}>Save</Button></>}>
      <Field label="Concurrent runs" type="number" min="0" max="100000" value={limit} onInput={(event) => setLimit(event.currentTarget.value)} error={isWrong ? "Enter a whole number from 0 to 100000" : undefined}
        hint={strategy ? "One run of each key executes, whatever the limit. 0 starts no run." : base === null ? "The code sets no limit, so the limit of the environment applies." : `The code sets ${base} for each concurrency key. An override applies until it is removed.`} />
      <Field as="select" label="One run of each concurrency key" value={strategy} onChange={(event) => setStrategy(event.currentTarget.value)} hint="Runs without a concurrencyKey share one.">{strategies.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</Field>
    </Dialog>
  );
}

/** The limits of a queue: its own, that of all keys together, and a link to those of its task. */
function Limits({ place, queue, limit, inline }) {
  const { concurrencyLimit: own, combinedConcurrencyLimit: total, concurrency = {} } = queue, ofTask = queue.version === "V2" || inline;
  return <>
    {own !== null ? number(own) : !ofTask && total === null && <span class="dim" title="The limit of the environment applies">{limit === undefined ? "–" : number(limit)} (environment)</span>}
    {concurrency.override !== undefined && concurrency.override !== null && <> <em class="mini">overridden, {concurrency.base === null ? "none" : number(concurrency.base)} in code</em></>}
    {total !== null && <span title="All concurrency keys together">{own !== null && ", "}{number(total)} in total</span>}
    {ofTask && <>{(own !== null || total !== null) && ", "}<a href={limitAddress(place, inline ? nameOf(queue) : undefined)}>limits of the task</a></>}
  </>;
}

/** Pauses or resumes every queue of the page. Stops at the first failure, and reports it. */
function PauseAllDialog({ place, queues, isPause, onClose, onDone }) {
  const [isBusy, setBusy] = useState(false);
  async function apply() {
    setBusy(true);
    const done = await attempt(async () => {
      for (const queue of queues) await session.request(place, "POST", `${pathOf(queue)}/pause`, { body: { type: queue.type, action: isPause ? "pause" : "resume" } });
    }, isPause ? "All queues paused" : "All queues resumed");
    setBusy(false);
    onDone();
    if (done) onClose();
  }
  return (
    <Dialog title={isPause ? "Pause all queues" : "Resume all queues"} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind={isPause ? "danger" : "primary"} busy={isBusy} onClick={apply}>{isPause ? "Pause" : "Resume"} {queues.length.toLocaleString("en")} {queues.length === 1 ? "queue" : "queues"}</Button></>}>
      <p>{isPause ? `Queued runs of ${place.env} do not start until their queue is resumed. Executing runs continue.` : `Queued runs of ${place.env} start again.`}</p>
    </Dialog>
  );
}

function Summary({ now, paused }) {
  return (
    <section class="figures" aria-label="Environment">
      <Figure label="Executing" value={now.executing.toLocaleString("en")} note={`of ${now.concurrencyLimit.toLocaleString("en")} at a time`} tone={now.executing >= now.concurrencyLimit ? "wait" : ""} />
      <Figure label="Queued" value={now.queued.toLocaleString("en")} />
      <Figure label="Oldest queued" value={now.oldestQueuedMs === null ? undefined : duration(now.oldestQueuedMs)} />
      <Figure label="Paused queues" value={paused.toLocaleString("en")} tone={paused ? "wait" : ""} />
    </section>
  );
}

const runsOf = (place, name, status) => addressOf({ ...place, view: "runs", id: undefined, query: { queue: name, status } });
const toggle = (place, queue) => attempt(() => session.request(place, "POST", `${pathOf(queue)}/pause`, { body: { type: queue.type, action: queue.paused ? "resume" : "pause" } }), `${queue.name} ${queue.paused ? "resumed" : "paused"}`);

const PauseButton = ({ place, queue, reload, kind }) => <Button kind={kind} icon={queue.paused ? "test" : "pause"} onClick={() => toggle(place, queue).then(reload)} aria-label={`${queue.paused ? "Resume" : "Pause"} ${queue.name}`} title={queue.paused ? "Resume" : "Pause"}>{queue.paused ? "Resume" : "Pause"}</Button>;

/** The dialog that is open: { limit: queue } or { rate: queue }. */
function Dialogs({ place, dialog, setDialog, reload }) {
  const close = () => setDialog(), rated = dialog?.rate, limited = dialog?.limit;
  return <>
    {rated && <RateDialog place={place} name={rated.name} rate={rated.rate} path={pathOf(rated)} body={{ type: rated.type }} onClose={close} onDone={reload} />}
    {limited && <LimitDialog place={place} queue={limited} onRate={() => setDialog({ rate: limited })} onClose={close} onDone={reload} />}
  </>;
}

const Marks = ({ queue }) => <>{queue.type === "task" && <em class="mini">task</em>} {queue.singleton && <em class="mini" title="One run of each concurrency key">singleton: {queue.singleton}</em>} {queue.paused && <Status tone="wait" label="Paused" />}</>;

function QueueFigures({ queue, now }) {
  const { concurrencyLimit: own, combinedConcurrencyLimit: total, concurrency = {} } = queue, declared = concurrency.base ?? null;
  const note = (concurrency.override ?? null) !== null ? `overridden, ${declared === null ? "none" : number(declared)} in code` : own === null ? "no limit of its own" : "in code";
  return (
    <section class="figures" aria-label="Summary">
      <Figure label="Executing" value={number(queue.running)} note={total === null ? undefined : `of ${number(total)} in total`} />
      <Figure label="Queued" value={number(queue.queued)} />
      <Figure label="Oldest queued" value={queue.oldestQueuedAt ? age(now - new Date(queue.oldestQueuedAt)) : undefined} />
      <Figure label="For each key" value={own === null ? undefined : number(own)} note={queue.singleton ? `singleton: ${queue.singleton}` : note} />
    </section>
  );
}

/** One queue, by its whole name. */
function Queue({ place }) {
  const id = place.id, isTask = id.startsWith("task/"), type = isTask ? "task" : "custom", path = pathOf({ name: isTask ? id.slice("task/".length) : id });
  const [dialog, setDialog] = useState(), now = useNow(), back = addressOf({ ...place, id: undefined, query: {} });
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, id], async () => {
    const [queue, usage] = await Promise.all([path, `${path}/usage`].map((one) => session.request(place, "GET", `${one}?type=${type}`)));
    return { queue, usage };
  }, { everyMs });
  if (!data) return <Page title="Queue">{error?.status === 404 ? <Empty title="Queue not found"><p>{place.env} has no queue <code>{id}</code>: no version declares it, and no run is in it.</p><p><a href={back}>Show all queues</a></p></Empty> : error ? <Problem error={error} retry={reload} /> : <Loading />}</Page>;
  const { queue, usage } = data;
  return (
    <Page title={queue.name} subtitle={<span class="row"><a class="back" href={back}><Icon name="left" size={14} />Queues</a><Marks queue={queue} /><a href={runsOf(place, id)}>All runs</a></span>}
      actions={<><PauseButton place={place} queue={queue} reload={reload} /><Button icon="edit" onClick={() => setDialog({ limit: queue })} aria-label={`Limit of ${queue.name}`}>Limit…</Button><Button icon="schedules" onClick={() => setDialog({ rate: queue })}>Rate…</Button></>}>
      {error && <Problem error={error} retry={reload} />}
      <QueueFigures queue={queue} now={now} />
      <RateFigures rate={queue.rate} />
      <p class="dim note">Runs of other queues are listed if this queue is their gate.</p>
      <Usage place={place} what="queue" usage={usage} figures={queue} path={path} query={{ type }} addressOfKey={(key) => queueAddress(place, id, key)} />
      <Dialogs place={place} dialog={dialog} setDialog={setDialog} reload={reload} />
    </Page>
  );
}

export const Queues = ({ place }) => place.id ? <Queue key={place.id} place={place} /> : <List place={place} />;

function List({ place }) {
  const [page, setPage] = useState(1), [text, setText] = useState(""), [dialog, setDialog] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, page], () => session.request(place, "GET", `/api/v1/queues?page=${page}&perPage=100`), { everyMs });
  const stats = useQuery([place.ref, place.env, place.branch, "now"], () => session.request(place, "GET", "/api/v1/environments/stats?since=10s"), { everyMs }), limit = stats.data?.now.concurrencyLimit;
  const limits = useQuery([place.ref, place.env, place.branch, "limits"], () => session.request(place, "GET", "/api/v1/concurrency-limits?perPage=100"), { everyMs: limitsMs });
  const inline = new Set((limits.data?.data ?? []).map(({ name }) => name).filter((name) => name.startsWith("task/")));
  const [all, setAll] = useState(), paused = (data?.data ?? []).filter((queue) => queue.paused), open = (data?.data ?? []).filter((queue) => !queue.paused);
  const rows = (data?.data ?? []).filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  return (
    <Page title="Queues" actions={<>{open.length > 0 && <Button icon="pause" onClick={() => setAll("pause")}>Pause all…</Button>}{paused.length > 1 && <Button icon="test" onClick={() => setAll("resume")}>Resume all…</Button>}<input type="search" class="narrow" aria-label="Find a queue" placeholder="Find a queue" value={text} onInput={(event) => setText(event.currentTarget.value)} /></>}>
      {error && <Problem error={error} retry={reload} />}
      {stats.data && <Summary now={stats.data.now} paused={paused.length} />}
      {!data && !error && <Loading />}
      {data && !data.data.length && <Empty title="No queues yet"><p>Each task gets its own queue when it is first registered or run. Declare queues with a limit in code:</p><pre>{`export const payments = queue({ name: "payments", concurrencyLimit: 2 });`}</pre></Empty>}
      {data?.data.length > 0 && <Table label="Queues" rows={rows} columns={[
        ["Queue", (queue) => <><a href={queueAddress(place, nameOf(queue))} title={queue.name}>{queue.name}</a> <Marks queue={queue} /></>],
        ["Queued", (queue) => <a href={runsOf(place, nameOf(queue), "QUEUED")} class={queue.queued ? "" : "dim"}>{queue.queued.toLocaleString("en")}</a>, "number"],
        ["Oldest queued", (queue) => queue.oldestQueuedAt ? age(now - new Date(queue.oldestQueuedAt)) : <span class="dim">–</span>, "number"],
        ["Executing", (queue) => <a href={runsOf(place, nameOf(queue), "EXECUTING")} class={queue.running ? "" : "dim"}>{queue.running.toLocaleString("en")}</a>, "number"],
        ["Limit", (queue) => <span><Limits place={place} queue={queue} limit={limit} inline={inline.has(nameOf(queue))} /><Rates rate={queue.rate} now={now} /></span>, "number"],
        ["Actions", (queue) => <span class="row-end flat"><PauseButton place={place} queue={queue} reload={reload} kind="small" /><Button kind="small" onClick={() => setDialog({ limit: queue })} aria-label={`Limit of ${queue.name}`}>Limit…</Button></span>, "actions-cell"],
      ]} />}
      {data?.pagination.totalPages > 1 && <div class="row-end flat"><Button disabled={page === 1} onClick={() => setPage(page - 1)}>Previous</Button><span class="dim">{page} of {data.pagination.totalPages}</span><Button disabled={page >= data.pagination.totalPages} onClick={() => setPage(page + 1)}>Next</Button></div>}
      {all && <PauseAllDialog place={place} queues={all === "pause" ? open : paused} isPause={all === "pause"} onClose={() => setAll()} onDone={reload} />}
      <Dialogs place={place} dialog={dialog} setDialog={setDialog} reload={reload} />
    </Page>
  );
}
