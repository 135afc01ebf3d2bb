// waitpoints.jsx - lists tokens that runs wait for, and completes one by hand.
import { useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { age, until, useNow } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Id, Loading, Page, Problem, Table, Tag, Time } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";
import { parseJson } from "./run_dialogs.jsx";

const tones = { WAITING: ["Waiting", "pause"], COMPLETED: ["Completed", "good"], TIMED_OUT: ["Timed out", "bad"] };
const choices = [["WAITING", "Waiting"], ["COMPLETED", "Completed"], ["TIMED_OUT", "Timed out"], ["", "All"]];

export function CompleteDialog({ place, token, onClose, onDone }) {
  const [text, setText] = useState(""), [isBusy, setBusy] = useState(false), { value, error } = parseJson(text);
  async function complete() {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `/api/v1/waitpoints/tokens/${token.id}/complete`, { body: value === undefined ? {} : { data: value } }), "Token completed: waiting runs continue")) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title="Complete token" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={Boolean(error)} onClick={complete}>Complete</Button></>}>
      <p class="dim">Runs that wait for <code>{token.id}</code> continue with this output. A token can be completed only once.</p>
      <Field as="textarea" label="Output" rows={8} value={text} onInput={(event) => setText(event.currentTarget.value)} error={error} placeholder={'{ "approved": true }'} hint="JSON, or empty" />
    </Dialog>
  );
}

export function Waitpoints({ place }) {
  const [status, setStatus] = useState("WAITING"), [before, setBefore] = useState([]), [token, setToken] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, status, before], () => session.request(place, "GET", `/api/v1/waitpoints/tokens?${new URLSearchParams({ "page[size]": 50, ...status && { "filter[status]": status }, ...before.length && { "page[after]": before.at(-1) } })}`), { everyMs: 3000 });
  const rows = data?.data ?? [];
  return (
    <Page title="Waitpoints" actions={<div class="segments" role="group" aria-label="Token status">{choices.map(([value, label]) => <Button key={value} kind="small" aria-pressed={value === status} onClick={() => { setStatus(value); setBefore([]); }}>{label}</Button>)}</div>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !rows.length && (status === "COMPLETED" || status === "TIMED_OUT") && <Empty title={status === "COMPLETED" ? "No completed tokens" : "No timed out tokens"} />}
      {data && !rows.length && (!status || status === "WAITING") && <Empty title={status ? "No waiting tokens" : "No tokens"}><p>A run uses a token to wait for someone. Complete the token here, by its URL, or with an API call:</p><pre>{`const token = await wait.createToken({ timeout: "1d" });
const answer = await wait.forToken<{ approved: boolean }>(token);`}</pre></Empty>}
      {rows.length > 0 && <Table label="Waitpoints" rows={rows} columns={[
        ["Waiting run", (one) => one.waitingRun ? <a class="batch-name" title={`${one.waitingRun.taskIdentifier} ${one.waitingRun.id}`} href={addressOf({ ...place, view: "runs", id: one.waitingRun.id, query: {} })}><b>{one.waitingRun.taskIdentifier}</b> <code class="dim">…{one.waitingRun.id.slice(-8)}</code></a> : <span class="dim">{one.status === "WAITING" ? "None yet" : "–"}</span>],
        ["Waiting for", (one) => one.waitingRun ? age(now - new Date(one.waitingRun.since)) : <span class="dim">–</span>, "number"],
        ["Token", (one) => <Id isShort>{one.id}</Id>],
        !status && ["Status", (one) => <span class={`status ${tones[one.status]?.[1] ?? "off"}`}><i />{tones[one.status]?.[0] ?? one.status}</span>],
        ["Tags", (one) => <span class="row">{(one.tags ?? []).map((tag) => <Tag key={tag}>{tag}</Tag>)}</span>],
        ["Created", (one) => <Time at={one.createdAt} relative />, "number wide-cell-only"],
        [status === "COMPLETED" ? "Completed" : status === "WAITING" ? "Times out" : "Ends", (one) => one.completedAt ? <Time at={one.completedAt} relative /> : until(one.timeoutAt, now), "number"],
        ["Actions", (one) => one.status === "WAITING" && <Button kind="small" onClick={() => setToken(one)}>Complete…</Button>, "actions-cell"],
      ].filter(Boolean)} />}
      {(before.length > 0 || data?.pagination?.next) && <div class="row-end flat"><Button disabled={!before.length} onClick={() => setBefore(before.slice(0, -1))}>Previous</Button><Button disabled={!data?.pagination?.next} onClick={() => setBefore([...before, data.pagination.next])}>Next</Button></div>}
      {token && <CompleteDialog place={place} token={token} onClose={() => setToken()} onDone={reload} />}
    </Page>
  );
}
