// schedules.jsx - schedules: lists, creates and edits them, with a preview of the next times.
import { useEffect, useState } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { until, useNow, wholeTime } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Loading, Page, Problem, Table, Time } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";
import { currentWorker } from "./test.jsx";

const typingMs = 250;

/** The next five times of the cron text that is being typed, or why there are none. */
function useNext(place, cron, timezone) {
  const [settled, setSettled] = useState({ cron, timezone });
  useEffect(() => { const timer = setTimeout(() => setSettled({ cron, timezone }), typingMs); return () => clearTimeout(timer); }, [cron, timezone]);
  return useQuery([settled], () => session.ask(place, "POST", "/api/v1/schedules/preview", { body: { cron: settled.cron, timezone: settled.timezone || undefined, count: 5 } }), { enabled: Boolean(settled.cron.trim()) });
}

function ScheduleDialog({ place, schedule, onClose, onDone }) {
  const [values, setValues] = useState({ task: schedule?.task ?? "", cron: schedule?.generator.expression ?? "0 9 * * 1-5", timezone: schedule?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC", externalId: schedule?.externalId ?? "", deduplicationKey: schedule?.deduplicationKey ?? "" });
  const [isBusy, setBusy] = useState(false), { data: worker } = useQuery([place], () => currentWorker(place)), { data: zones } = useQuery(["zones"], () => session.ask(place, "GET", "/api/v1/timezones"));
  const next = useNext(place, values.cron, values.timezone), set = (name) => (event) => setValues({ ...values, [name]: event.currentTarget.value });
  const isZone = /time ?zone/i.test(next.error?.message ?? ""), wrongZone = isZone && "Unknown time zone; use a name such as Europe/Berlin, or UTC";
  const tasks = (worker?.worker?.tasks ?? []).filter(({ triggerSource }) => triggerSource === "SCHEDULED");
  async function save() {
    setBusy(true);
    const body = { task: values.task, cron: values.cron, timezone: values.timezone || undefined, externalId: values.externalId || undefined };
    const done = await attempt(() => schedule
      ? session.ask(place, "PUT", `/api/v1/schedules/${schedule.id}`, { body })
      : session.ask(place, "POST", "/api/v1/schedules", { body: { ...body, deduplicationKey: values.deduplicationKey || crypto.randomUUID() } }), schedule ? "Schedule saved" : "Schedule created");
    setBusy(false);
    if (done) { onDone(); onClose(); }
  }
  return (
    <Dialog title={schedule ? "Edit schedule" : "New schedule"} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={!values.task || Boolean(next.error)} onClick={save}>{schedule ? "Save" : "Create schedule"}</Button></>}>
      <Field label="Task" list="scheduled-tasks" value={values.task} onInput={set("task")} hint={tasks.length ? undefined : "A task declared with schedules.task(). The current version has none."} />
      <datalist id="scheduled-tasks">{tasks.map(({ slug }) => <option key={slug} value={slug} />)}</datalist>
      <Field label="Cron" value={values.cron} onInput={set("cron")} error={!isZone && next.error?.message} hint={next.data?.description ?? "minute hour day month weekday"} />
      <Field label="Time zone" list="zones" value={values.timezone} onInput={set("timezone")} error={wrongZone} />
      <datalist id="zones">{(zones?.timezones ?? []).map((zone) => <option key={zone} value={zone} />)}</datalist>
      {next.data && <div><h3>Next five runs</h3><ol class="next">{next.data.next.map((time) => <li key={time} title={time}>{wholeTime(time)}</li>)}</ol></div>}
      <details><summary>More options</summary><div class="stack more-options">
        <Field label="External id" value={values.externalId} onInput={set("externalId")} hint="Passed to each run, for example the id of a customer." />
        {!schedule && <Field label="Deduplication key" value={values.deduplicationKey} onInput={set("deduplicationKey")} hint="A second schedule with the same key replaces the first." />}
      </div></details>
    </Dialog>
  );
}

function DeleteDialog({ place, schedule, onClose, onDone }) {
  const remove = () => attempt(() => session.ask(place, "DELETE", `/api/v1/schedules/${schedule.id}`), "Schedule deleted").then((done) => { if (done) { onDone(); onClose(); } });
  return <Dialog title="Delete schedule" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" onClick={remove}>Delete</Button></>}><p>The schedule {schedule.generator.expression} no longer triggers {schedule.task}. Its runs are kept.</p></Dialog>;
}

export function Schedules({ place }) {
  const [page, setPage] = useState(1), [dialog, setDialog] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, page], () => session.ask(place, "GET", `/api/v1/schedules?page=${page}&perPage=50`), { everyMs: 5000 });
  const turn = ({ id, active }) => attempt(() => session.ask(place, "POST", `/api/v1/schedules/${id}/${active ? "deactivate" : "activate"}`, { body: {} }), active ? "Schedule turned off" : "Schedule turned on").then(reload);
  const all = data?.data ?? [], rows = place.id ? [...all].sort((a, b) => (b.id === place.id) - (a.id === place.id)) : all;
  return (
    <Page title="Schedules" actions={<Button kind="primary" icon="plus" onClick={() => setDialog({ edit: true })}>New schedule</Button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !all.length && <Empty title="No schedules"><p>A schedule triggers a task at set times. Create one here, or declare it with the task:</p><pre>{`export const report = schedules.task({
  id: "daily-report",
  cron: { pattern: "0 6 * * *", timezone: "Europe/Berlin" },
  run: async ({ timestamp }) => { … },
});`}</pre></Empty>}
      {all.length > 0 && <Table label="Schedules" rows={rows} columns={[
        ["Task", (one) => <><a href={addressOf({ ...place, view: "runs", id: undefined, query: { schedule: one.id } })}>{one.task}</a> {one.id === place.id && <em class="mini">selected</em>}</>],
        ["Cron", (one) => <><code>{one.generator.expression}</code><br /><span class="dim">{one.generator.description}, {one.timezone}</span></>],
        ["Next run", (one) => one.active && one.nextRun ? <span title={wholeTime(one.nextRun)}><Time at={one.nextRun} /><br /><span class="dim">{until(one.nextRun, now)}</span></span> : <span class="dim">–</span>],
        ["External id", (one) => one.externalId ?? <span class="dim">–</span>],
        ["Source", (one) => one.type === "DECLARATIVE" ? "Code" : "API"],
        ["Actions", (one) => <span class="row-end flat">
          <label class="switch"><input type="checkbox" role="switch" checked={one.active} onChange={() => turn(one)} disabled={one.type === "DECLARATIVE"} aria-label={`${one.task} ${one.generator.expression} is on`} />{one.active ? "On" : "Off"}</label>
          {one.type !== "DECLARATIVE" && <><Button kind="small" onClick={() => setDialog({ edit: true, schedule: one })}>Edit…</Button><Button kind="small" aria-label="Delete" icon="trash" onClick={() => setDialog({ remove: one })} /></>}</span>, "actions-cell"],
      ]} />}
      {data?.pagination.totalPages > 1 && <div class="row-end flat"><Button disabled={page === 1} onClick={() => setPage(page - 1)}>Previous</Button><span class="dim">{page} of {data.pagination.totalPages}</span><Button disabled={page >= data.pagination.totalPages} onClick={() => setPage(page + 1)}>Next</Button></div>}
      {dialog?.edit && <ScheduleDialog place={place} schedule={dialog.schedule} onClose={() => setDialog()} onDone={reload} />}
      {dialog?.remove && <DeleteDialog place={place} schedule={dialog.remove} onClose={() => setDialog()} onDone={reload} />}
    </Page>
  );
}
