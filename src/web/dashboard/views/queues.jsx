// queues.jsx - queues: how much waits and executes in each, and their limits.
import { useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { age, useNow } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Loading, Page, Problem, Table } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";

const everyMs = 2000;
const pathOf = ({ name }) => `/api/v1/queues/${encodeURIComponent(name)}`;
export const nameOf = ({ name, type }) => type === "task" ? `task/${name}` : name;

function LimitDialog({ place, queue, onClose, onDone }) {
  const { current, base, override } = queue.concurrency, [limit, setLimit] = useState(String(current ?? "")), [isBusy, setBusy] = useState(false);
  const number = Number(limit), isWrong = limit === "" || !Number.isInteger(number) || number < 0 || number > 100_000;
  async function change(path, body, text) {
    setBusy(true);
    if (await attempt(() => session.ask(place, "POST", `${pathOf(queue)}/${path}`, { body: { type: queue.type, ...body } }), text)) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={`Limit of ${queue.name}`} onClose={onClose} actions={<>
      {override !== null && <Button busy={isBusy} onClick={() => change("concurrency/reset", {}, "The limit is that of the code again")}>Take it back</Button>}
      <Button kind="primary" busy={isBusy} disabled={isWrong} onClick={() => change("concurrency/override", { concurrencyLimit: number }, `${queue.name} may execute ${number} at once`)}>Set the limit</Button></>}>
      <Field label="Runs at once" type="number" min="0" max="100000" value={limit} onInput={(event) => setLimit(event.currentTarget.value)} error={limit !== "" && isWrong ? "A whole number from 0 to 100000" : undefined}
        hint={base === null ? "The code names none: the limit of the environment holds." : `The code says ${base}. This overrides it until it is taken back.`} />
    </Dialog>
  );
}

export function Queues({ place }) {
  const [page, setPage] = useState(1), [text, setText] = useState(""), [limited, setLimited] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, page], () => session.ask(place, "GET", `/api/v1/queues?page=${page}&perPage=100`), { everyMs });
  const turn = (queue) => attempt(() => session.ask(place, "POST", `${pathOf(queue)}/pause`, { body: { type: queue.type, action: queue.paused ? "resume" : "pause" } }), `${queue.name} is ${queue.paused ? "resumed" : "paused"}`).then(reload);
  const rows = (data?.data ?? []).filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  const runs = (queue, status) => addressOf({ ...place, view: "runs", query: { queue: nameOf(queue), status } });
  return (
    <Page title="Queues" actions={<input type="search" class="narrow" aria-label="Find a queue" placeholder="Find a queue" value={text} onInput={(event) => setText(event.currentTarget.value)} />}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !data.data.length && <Empty title="No queues yet"><p>Each task has a queue of its own, from its first registration or run on. Queues with a limit are declared in code:</p><pre>{`export const payments = queue({ name: "payments", concurrencyLimit: 2 });`}</pre></Empty>}
      {data?.data.length > 0 && <Table label="Queues" rows={rows} columns={[
        ["Queue", (queue) => <><a href={runs(queue)}>{queue.name}</a> {queue.type === "task" && <em class="mini">task</em>} {queue.paused && <span class="status wait"><i />Paused</span>}</>],
        ["Queued", (queue) => <a href={runs(queue, "QUEUED")} class={queue.queued ? "" : "dim"}>{queue.queued.toLocaleString("en")}</a>, "number"],
        ["Oldest", (queue) => queue.oldestQueuedAt ? age(now - new Date(queue.oldestQueuedAt)) : <span class="dim">–</span>, "number"],
        ["Executing", (queue) => <a href={runs(queue, "EXECUTING")} class={queue.running ? "" : "dim"}>{queue.running.toLocaleString("en")}</a>, "number"],
        ["Limit", (queue) => queue.concurrency.current === null ? <span class="dim">environment's</span> : <>{queue.concurrency.current}{queue.concurrency.override !== null && <em class="mini" title={`The code says ${queue.concurrency.base ?? "nothing"}`}>overridden</em>}</>, "number"],
        ["Actions", (queue) => <span class="row-end flat"><Button kind="small" icon={queue.paused ? "test" : "pause"} onClick={() => turn(queue)} aria-label={`${queue.paused ? "Resume" : "Pause"} ${queue.name}`}>{queue.paused ? "Resume" : "Pause"}</Button><Button kind="small" onClick={() => setLimited(queue)} aria-label={`Limit of ${queue.name}`}>Limit…</Button></span>, "actions-cell"],
      ]} />}
      {data?.pagination.totalPages > 1 && <div class="row-end flat"><Button disabled={page === 1} onClick={() => setPage(page - 1)}>Previous</Button><span class="dim">{page} of {data.pagination.totalPages}</span><Button disabled={page >= data.pagination.totalPages} onClick={() => setPage(page + 1)}>Next</Button></div>}
      {limited && <LimitDialog place={place} queue={limited} onClose={() => setLimited()} onDone={reload} />}
    </Page>
  );
}
