// bulk.jsx - cancels or replays many runs: counts them, starts the bulk action, and shows its progress.
import { useEffect, useState } from "preact/hooks";

import { isOpenFilter, listQuery, watchFilter } from "../lib/filter.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { finalStatuses, labelOf, statuses } from "../lib/status.js";
import { Button, Dialog, Loading, Problem, Status } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";

const words = {
  cancel: { title: "Cancel runs", verb: "Cancel", done: "canceled" },
  replay: { title: "Replay runs", verb: "Replay", done: "replayed" },
};
const unfinished = Object.keys(statuses).filter((status) => !finalStatuses.has(status));

function Progress({ place, id, action, onClose }) {
  const { data, error, reload } = useQuery([id], () => session.request(place, "GET", `/api/v1/bulk-actions/${id}`), { everyMs: 500 });
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  const { success, failure, total } = data.counts, hasEnded = data.status !== "PENDING", done = success + failure;
  return (
    <>
      <p role="status">{hasEnded ? (data.status === "ABORTED" ? "Aborted. " : "Done. ") : ""}{success.toLocaleString("en")} {words[action].done}{failure ? `, ${failure.toLocaleString("en")} not ${words[action].done} (already finished, or rejected)` : ""}{!hasEnded && total ? ` of ${total.toLocaleString("en")}` : ""}.</p>
      <progress aria-label="Progress" max={Math.max(total, done, 1)} value={hasEnded ? Math.max(total, done, 1) : done} />
      <div class="row-end">
        {!hasEnded && <Button onClick={() => attempt(() => session.request(place, "POST", `/api/v1/bulk-actions/${id}/abort`, { body: {} })).then(reload)}>Stop</Button>}
        <Button kind="primary" onClick={onClose}>{hasEnded ? "Close" : "Continue in background"}</Button>
      </div>
    </>
  );
}

export function BulkDialog({ place, action, filter, ids, onClose, onDone }) {
  const [started, setStarted] = useState(), [isBusy, setBusy] = useState(false), byIds = ids.length > 0;
  const wanted = { ...filter };
  if (!byIds && action === "cancel") wanted.status = filter.status?.filter((status) => unfinished.includes(status)) ?? unfinished;
  const matchesNone = !byIds && wanted.status && !wanted.status.length;
  const { data, error } = useQuery([wanted, byIds], () => byIds || matchesNone ? { total: ids.length, byStatus: {} }
    : session.request(place, "GET", `/api/v1/runs/counts?${listQuery(wanted)}`));
  const { title, verb } = words[action];

  async function start() {
    setBusy(true);
    const body = byIds ? { action, runIds: ids } : { action, filter: watchFilter(wanted) };
    await attempt(async () => {
      setStarted((await session.request(place, "POST", "/api/v1/bulk-actions", { body })).id);
      onDone();
    });
    setBusy(false);
  }

  const count = data?.total, isUnfiltered = !byIds && isOpenFilter(filter) && action === "replay";
  return (
    <Dialog title={title} onClose={onClose}>
      {started ? <Progress place={place} id={started} action={action} onClose={onClose} /> : error ? <Problem error={error} /> : !data ? <Loading what="Counting" /> : (
        <>
          {count === 0 ? <p>{byIds || matchesNone || action === "cancel" ? "No unfinished runs in this list." : "No runs match."}</p> : (
            <>
              <p>{verb} <b>{count.toLocaleString("en")} {count === 1 ? "run" : "runs"}</b> {byIds ? "that you selected" : isOpenFilter(filter) ? `in ${place.env}, all from the last 7 days${action === "cancel" ? " that have not finished" : ""}` : `that match the filter${action === "cancel" ? " and have not finished" : ""}`}?</p>
              {!byIds && <ul class="plain">{Object.entries(data.byStatus).filter(([, n]) => n).map(([status, n]) => <li key={status}><Status status={status} /> {n.toLocaleString("en")}</li>)}</ul>}
              {isUnfiltered && <p class="warn">No filter is set: each of these runs is replayed as a new run.</p>}
              {action === "cancel" ? <p class="dim">Executing runs are asked to stop. This cannot be undone.</p> : <p class="dim">Each run is replayed as a new run with the same payload and options.</p>}
            </>
          )}
          <div class="row-end"><Button onClick={onClose}>{count === 0 ? "Close" : action === "cancel" ? "Keep runs" : "Cancel"}</Button>
            {count > 0 && <Button kind={action === "cancel" ? "danger" : "primary"} busy={isBusy} onClick={start}>{verb} {count.toLocaleString("en")} {count === 1 ? "run" : "runs"}</Button>}</div>
        </>
      )}
    </Dialog>
  );
}
