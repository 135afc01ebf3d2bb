// limits.jsx - concurrency limits: how many runs hold each, which ones, and which wait; overrides, also of one key.
import { useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { useNow } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Figure, Loading, Page, Problem, Status, Table, Time } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { attempt } from "../ui/toast.jsx";
import { RateDialog, RateFigures, Rates } from "./rates.jsx";
import { Held, Usage } from "./usage.jsx";

const everyMs = 2000, most = 100_000;
const ttls = [["1h", "1 hour"], ["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"]];
const pathOf = (name) => `/api/v1/concurrency-limits/${encodeURIComponent(name)}`;
const number = (value) => value.toLocaleString("en");
const isBound = (text) => text === "" || Number.isInteger(Number(text)) && Number(text) >= 0 && Number(text) <= most;
const wrongBound = `Enter a whole number from 0 to ${most}`;

/** The bound that applies apart from the environment's; null: none. */
const effective = ({ base, override }) => override ?? base;
const isFull = ({ running, total }) => total.current !== null && running >= total.current;
const isOverridden = ({ total, perKey }) => total.override !== null || perKey.override !== null;

/** The address of a limit, or of one of its keys. */
export const limitAddress = (place, name, key) => addressOf({ ...place, view: "limits", id: name, query: { key } });

/** Why a bound is not the one in the code, or undefined. The limit of the environment caps each. */
function reasonOf(bound) {
  const declared = `${bound.base === null ? "none" : number(bound.base)} in code`, isCapped = bound.current < effective(bound);
  if (bound.override !== null) return `overridden${isCapped ? ` to ${number(bound.override)}` : ""}, ${declared}`;
  return isCapped ? `environment, ${declared}` : undefined;
}

/** The bound in effect, and the one in the code if that is another one. */
function Bound({ bound }) {
  if (bound.current === null) return <span class="dim">–</span>;
  return <>{reasonOf(bound) && <em class="mini">{reasonOf(bound)}</em>} {number(bound.current)}</>; // the numbers of a column end at one edge
}

const State = ({ limit }) => limit.paused ? <Status tone="wait" label="Paused" /> : isFull(limit) ? <Status tone="wait" label="Full" /> : null;

/** Sets the bounds of a limit that the user has changed, or removes both overrides. */
function LimitDialog({ place, limit, onClose, onDone }) {
  const texts = { total: String(effective(limit.total) ?? ""), perKey: String(effective(limit.perKey) ?? "") };
  const [values, setValues] = useState(texts), [isBusy, setBusy] = useState(false);
  const body = Object.fromEntries(Object.keys(texts).filter((name) => values[name] !== texts[name] && values[name] !== "").map((name) => [name, Number(values[name])]));
  const isWrong = !isBound(values.total) || !isBound(values.perKey) || !Object.keys(body).length;
  async function change(path, sent, text) {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `${pathOf(limit.name)}/${path}`, { body: sent }), text)) { onDone(); onClose(); }
    setBusy(false);
  }
  const field = (name, label) => (
    <Field label={label} type="number" min="0" max={most} value={values[name]} onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })} error={isBound(values[name]) ? undefined : wrongBound}
      hint={<>{limit[name].base === null ? "The code sets none." : `The code sets ${number(limit[name].base)}.`}{limit[name].override !== null && <> Overridden <Time at={limit[name].overriddenAt} relative />.</>}</>} />
  );
  return (
    <Dialog title={`Limit ${limit.name}`} onClose={onClose} actions={<>
      {isOverridden(limit) && <Button kind="plain aside" busy={isBusy} onClick={() => change("reset", {}, "Overrides removed")}>Remove overrides</Button>}
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" busy={isBusy} disabled={isWrong} onClick={() => change("override", body, `Limit ${limit.name} overridden`)}>Override</Button></>}>
      <p>An override applies until it is removed. 0 starts no run, and lowering a limit stops none.</p>
      {field("total", "In total")}
      {field("perKey", "For each concurrency key")}
    </Dialog>
  );
}

/** Overrides a limit for one key, for a time. */
function KeyDialog({ place, limit, item, onClose, onDone }) {
  const { concurrencyKey, perKey } = item, [text, setText] = useState(String(effective(perKey) ?? "")), [ttl, setTtl] = useState("7d"), [isBusy, setBusy] = useState(false);
  async function change(path, body, done) {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `${pathOf(limit.name)}/${path}`, { body: { concurrencyKey, ...body } }), done)) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={`${limit.name} for ${concurrencyKey}`} onClose={onClose} actions={<>
      {perKey.override !== null && <Button kind="plain aside" busy={isBusy} onClick={() => change("reset", {}, "Override removed")}>Remove override</Button>}
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" busy={isBusy} disabled={text === "" || !isBound(text)} onClick={() => change("override", { perKey: Number(text), ttl }, `${concurrencyKey} is allowed ${text}`)}>Override</Button></>}>
      <Field label="Concurrent runs of this key" type="number" min="0" max={most} value={text} onInput={(event) => setText(event.currentTarget.value)} error={isBound(text) ? undefined : wrongBound}
        hint={perKey.base === null ? "Keys have no limit of their own." : `Each key is allowed ${number(perKey.base)}.`} />
      <Field as="select" label="For" value={ttl} onChange={(event) => setTtl(event.currentTarget.value)}>{ttls.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</Field>
    </Dialog>
  );
}

const pauseOf = (place, limit) => attempt(() => session.request(place, "POST", `${pathOf(limit.name)}/pause`, { body: { action: limit.paused ? "resume" : "pause" } }), `${limit.name} ${limit.paused ? "resumed" : "paused"}`);

const PauseButton = ({ place, limit, reload, kind }) => <Button kind={kind} icon={limit.paused ? "test" : "pause"} onClick={() => pauseOf(place, limit).then(reload)} aria-label={`${limit.paused ? "Resume" : "Pause"} ${limit.name}`} title={limit.paused ? "Resume" : "Pause"}>{limit.paused ? "Resume" : "Pause"}</Button>;

function Summary({ limit }) {
  const { total, perKey, reserved } = limit, note = (bound) => reasonOf(bound) ?? (bound.base === null ? undefined : "in code");
  const shown = ({ current }) => current === null ? undefined : number(current);
  return (
    <section class="figures" aria-label="Summary">
      <Figure label="Executing" value={number(limit.running)} note={total.current !== null ? `of ${number(total.current)} in total` : "no total"} tone={isFull(limit) ? "wait" : ""} />
      <Figure label="Queued" value={number(limit.queued)} note={reserved ? `${number(reserved)} reserved for the oldest` : undefined} />
      <Figure label="In total" value={shown(total)} note={note(total)} />
      <Figure label="For each key" value={shown(perKey)} note={note(perKey)} />
    </section>
  );
}

function Limit({ place }) {
  const name = place.id, keys = [place.ref, place.env, place.branch, name], [dialog, setDialog] = useState(), back = addressOf({ ...place, id: undefined, query: {} });
  const { data, error, reload } = useQuery(keys, async () => {
    const [limit, usage] = await Promise.all([session.request(place, "GET", pathOf(name)), session.request(place, "GET", `${pathOf(name)}/usage`)]);
    return { limit, usage };
  }, { everyMs });
  if (!data) return <Page title="Concurrency limit">{error?.status === 404 ? <Empty title="Limit not found"><p>{place.env} has no concurrency limit <code>{name}</code>: no version declares it, and no run needs it.</p><p><a href={back}>Show all limits</a></p></Empty> : error ? <Problem error={error} retry={reload} /> : <Loading />}</Page>;
  const { limit, usage } = data, close = () => setDialog();
  return (
    <Page title={limit.name} subtitle={<span class="row"><a class="back" href={back}><Icon name="left" size={14} />Limits</a>{name.startsWith("task/") && <em class="mini">inline</em>}<State limit={limit} /></span>}
      actions={<><PauseButton place={place} limit={limit} reload={reload} /><Button icon="edit" onClick={() => setDialog("limit")}>Override…</Button><Button icon="schedules" onClick={() => setDialog("rate")}>Rate…</Button></>}>
      {error && <Problem error={error} retry={reload} />}
      {limit.paused && <div class="waiting" role="status"><Icon name="pause" /><span>Runs that need this limit do not start until it is resumed. Executing runs continue.</span></div>}
      <Summary limit={limit} />
      <RateFigures rate={limit.rate} />
      <Usage place={place} what="limit" usage={usage} figures={limit} path={pathOf(name)} addressOfKey={(key) => limitAddress(place, name, key)} onEdit={(item) => setDialog({ item })} />
      {dialog === "limit" && <LimitDialog place={place} limit={limit} onClose={close} onDone={reload} />}
      {dialog === "rate" && <RateDialog place={place} name={limit.name} rate={limit.rate} path={pathOf(limit.name)} onClose={close} onDone={reload} />}
      {dialog?.item && <KeyDialog place={place} limit={limit} item={dialog.item} onClose={close} onDone={reload} />}
    </Page>
  );
}

const example = `const openai = concurrencyLimit({ name: "openai", total: 10, perKey: 2 });
export const ask = task({ id: "ask", concurrency: [openai], run: … });`;

function List({ place }) {
  const [page, setPage] = useState(1), [text, setText] = useState(""), [edited, setEdited] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, page], () => session.request(place, "GET", `/api/v1/concurrency-limits?page=${page}&perPage=100`), { everyMs });
  const all = data?.data ?? [], rows = all.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())), count = (is) => number(all.filter(is).length);
  return (
    <Page title="Concurrency limits" actions={all.length > 0 && <input type="search" class="narrow" aria-label="Find a limit" placeholder="Find a limit" value={text} onInput={(event) => setText(event.currentTarget.value)} />}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !all.length && <Empty title="No concurrency limits"><p>A limit is shared by all tasks that name it. A run executes only while it holds a slot of each of its limits. Declare one in code:</p><pre>{example}</pre></Empty>}
      {all.length > 0 && <section class="figures" aria-label="Limits">
        <Figure label="Limits" value={number(data.pagination.count)} />
        <Figure label="Full" value={count(isFull)} tone={all.some(isFull) ? "wait" : ""} />
        <Figure label="Paused" value={count(({ paused }) => paused)} tone={all.some(({ paused }) => paused) ? "wait" : ""} />
        <Figure label="Overridden" value={count(isOverridden)} />
      </section>}
      {all.length > 0 && <Table label="Concurrency limits" rows={rows} columns={[
        ["Limit", (limit) => <><a href={limitAddress(place, limit.name)}>{limit.name}</a> {limit.name.startsWith("task/") && <em class="mini">inline</em>} <State limit={limit} /></>],
        ["Queued", (limit) => <span class={limit.queued ? "" : "dim"}>{number(limit.queued)}</span>, "number"],
        ["Executing", (limit) => <Held running={limit.running} bound={limit.total.current} />, "number"],
        ["In total", (limit) => <Bound bound={limit.total} />, "number"],
        ["For each key", (limit) => <Bound bound={limit.perKey} />, "number"],
        ...all.some(({ rate }) => rate) ? [["Starts", (limit) => <Rates rate={limit.rate} now={now} />]] : [],
        ["Actions", (limit) => <span class="row-end flat"><PauseButton place={place} limit={limit} reload={reload} kind="small" /><Button kind="small" onClick={() => setEdited(limit)} aria-label={`Override ${limit.name}`}>Override…</Button></span>, "actions-cell"],
      ]} />}
      {data?.pagination.totalPages > 1 && <div class="row-end flat"><Button disabled={page === 1} onClick={() => setPage(page - 1)}>Previous</Button><span class="dim">{page} of {data.pagination.totalPages}</span><Button disabled={page >= data.pagination.totalPages} onClick={() => setPage(page + 1)}>Next</Button></div>}
      {edited && <LimitDialog place={place} limit={edited} onClose={() => setEdited()} onDone={reload} />}
    </Page>
  );
}

export const Limits = ({ place }) => place.id ? <Limit key={place.id} place={place} /> : <List place={place} />;
