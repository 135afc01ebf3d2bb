// usage.jsx - the runs that hold or need a slot of a concurrency limit or a queue, and its keys: parts of the pages of both.
import { useState } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { until, useNow, wholeTime } from "../lib/time.js";
import { Button, Problem, Status, Table, Time } from "../ui/basic.jsx";
import { rateText } from "./rates.jsx";

const everyMs = 2000, shownMax = 100;
const number = (value) => value.toLocaleString("en");

/** The address of a queue by its whole name, such as task/hello, or of one of its keys. */
export const queueAddress = (place, name, key) => addressOf({ ...place, view: "queues", id: name, query: { key } });

/** How many hold a limit of how many; bound: the one in effect, or null. */
export function Held({ running, bound }) {
  return <><span class="nowrap">{number(running)}{bound !== null && <span class="dim"> of {number(bound)}</span>}</span>{bound > 0 && <span class="meter held" aria-hidden="true">{running > 0 && <i style={{ width: `${Math.min(running / bound, 1) * 100}%` }} />}</span>}</>;
}

/** Runs that hold a slot, or need one. addressOfKey: the page's address with that key. */
function Runs({ place, title, runs, count, empty, time, addressOfKey }) {
  return (
    <section class="panel usage" aria-label={title}>
      <header><h2>{title}</h2><span class="dim">{runs.length < count ? `${number(runs.length)} of ${number(count)}` : number(runs.length)}</span></header>
      {!runs.length ? <p class="pad dim">{empty}</p> : <Table label={`${title}: runs`} rows={runs} columns={[
        ["Run", (run) => <a href={addressOf({ ...place, view: "runs", id: run.id, query: {} })}>{run.taskIdentifier} <code class="dim">…{run.id.slice(-5)}</code></a>],
        ["Status", (run) => <Status status={run.status} />],
        ["Key", (run) => run.concurrencyKey ? <a href={addressOfKey(run.concurrencyKey)}><code>{run.concurrencyKey}</code></a> : <span class="dim">–</span>],
        ["Queue", (run) => <a href={queueAddress(place, run.queue)}>{run.queue}</a>],
        [time, (run) => <Time at={time === "Started" ? run.startedAt : run.createdAt} relative />, "number"],
      ]} />}
    </section>
  );
}

/** path: of the call that returns one key; query: its parameters apart from the key. onEdit: absent if keys have no override. */
function Keys({ place, path, query, keys, addressOfKey, onEdit }) {
  const now = useNow(), chosen = place.query.get("key") ?? "", [text, setText] = useState(chosen);
  const { data: found, error, reload } = useQuery([place.ref, place.env, place.branch, path, chosen], () => session.request(place, "GET", `${path}?${new URLSearchParams({ ...query, concurrencyKey: chosen })}`), { everyMs, enabled: Boolean(chosen) });
  const others = keys.filter(({ concurrencyKey }) => !chosen || concurrencyKey !== chosen).sort((a, b) => b.queued - a.queued || b.running - a.running || (a.concurrencyKey < b.concurrencyKey ? -1 : 1));
  const rows = [...chosen && found ? [found] : [], ...others];
  const show = (event) => { event.preventDefault(); go(addressOfKey(text.trim()), { replace: true }); };
  const clear = () => { setText(""); go(addressOfKey(), { replace: true }); };
  return (
    <section class="panel" aria-label="Keys">
      <header><h2>Keys</h2><form class="row" role="search" onSubmit={show}><input type="search" class="narrow" aria-label="Look up a key" placeholder="Look up a key" value={text} maxlength="128" onInput={(event) => setText(event.currentTarget.value)} />{chosen && <Button kind="small" onClick={clear}>Show all</Button>}</form></header>
      {error && chosen && <Problem error={error} retry={reload} />}
      {!rows.length ? <p class="pad dim">No key is executing{onEdit && " or overridden"}. Runs with the same <code>concurrencyKey</code> count together, and so do runs without one.</p> : <Table label="Keys in use" rowKey="concurrencyKey" rows={rows} columns={[
        ["Key", (one) => <>{one.concurrencyKey ? <code>{one.concurrencyKey}</code> : <span class="dim">without a key</span>} {one.concurrencyKey && one.concurrencyKey === chosen && <em class="mini">selected</em>}</>],
        ["Executing", (one) => <Held running={one.running} bound={one.perKey.current} />, "number"],
        ["Queued", (one) => <span class={one.queued ? "" : "dim"}>{number(one.queued)}</span>, "number"],
        ...rows.some(({ rate }) => rate) ? [["Starts left", ({ rate }) => rate ? <span class="nowrap">{number(rate.available)} <span class="dim">of {rateText(rate)}</span></span> : <span class="dim">–</span>]] : [],
        ...onEdit ? [
          ["Override", (one) => one.perKey.override === null ? <span class="dim">–</span> : <span class="nowrap" title={wholeTime(one.perKey.expiresAt)}>{number(one.perKey.override)} <span class="dim">ends {until(one.perKey.expiresAt, now)}</span></span>],
          ["Actions", (one) => one.concurrencyKey && <span class="row-end flat"><Button kind="small" onClick={() => onEdit(one)} aria-label={`Override for ${one.concurrencyKey}`}>Override…</Button></span>, "actions-cell"],
        ] : [],
      ]} />}
    </section>
  );
}

/** All three parts. what: the noun of what is used, "limit" or "queue"; figures: { running, queued } of all runs; others as in Keys. */
export function Usage({ place, what, usage, figures, addressOfKey, ...keys }) {
  return <>
    <Runs place={place} title="Holders" runs={usage.running} count={figures.running} empty={`No run holds ${what === "queue" ? "a slot of this queue" : "this limit"}.`} time="Started" addressOfKey={addressOfKey} />
    <Runs place={place} title="Waiting" runs={usage.queued} count={figures.queued} empty={`No run waits for this ${what}.`} time="Triggered" addressOfKey={addressOfKey} />
    <Keys place={place} keys={usage.keys} addressOfKey={addressOfKey} {...keys} />
    {usage.keys.length >= shownMax && <p class="dim note">Only {shownMax} keys are listed. Look up the others.</p>}
  </>;
}
