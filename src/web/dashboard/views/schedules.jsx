// schedules.jsx - schedules: lists, creates and edits them, with a preview of the next times.
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { clockTime, minuteTime, until, useNow, wholeTime } from "../lib/time.js";
import { Button, Dialog, Empty, Field, Loading, Page, Problem, Status, Table, Time } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";
import { currentWorker } from "./test.jsx";

const typingMs = 250;

/** Loads the next five times of the cron expression that the user types, or the reason why it is invalid. */
function useNext(place, cron, timezone) {
  const [settled, setSettled] = useState({ cron, timezone });
  useEffect(() => { const timer = setTimeout(() => setSettled({ cron, timezone }), typingMs); return () => clearTimeout(timer); }, [cron, timezone]);
  return useQuery([settled], () => session.request(place, "POST", "/api/v1/schedules/preview", { body: { cron: settled.cron, timezone: settled.timezone || undefined, count: 5 } }), { enabled: Boolean(settled.cron.trim()) });
}

function ScheduleDialog({ place, schedule, onClose, onDone }) {
  const [values, setValues] = useState({ task: schedule?.task ?? "", cron: schedule?.generator.expression ?? "0 9 * * 1-5", timezone: schedule?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC", externalId: schedule?.externalId ?? "", deduplicationKey: schedule?.deduplicationKey ?? "" });
  const [isBusy, setBusy] = useState(false), { data: worker } = useQuery([place], () => currentWorker(place)), { data: zones } = useQuery(["zones"], () => session.request(place, "GET", "/api/v1/timezones"));
  const next = useNext(place, values.cron, values.timezone), set = (name) => (event) => setValues({ ...values, [name]: event.currentTarget.value });
  const isZone = /time ?zone/i.test(next.error?.message ?? ""), wrongZone = isZone && "Unknown time zone; use a name such as Europe/Berlin, or UTC";
  const tasks = (worker?.worker?.tasks ?? []).filter(({ triggerSource }) => triggerSource === "SCHEDULED");
  async function save() {
    setBusy(true);
    const body = { task: values.task, cron: values.cron, timezone: values.timezone || undefined, externalId: values.externalId || undefined };
    const done = await attempt(() => schedule
      ? session.request(place, "PUT", `/api/v1/schedules/${schedule.id}`, { body })
      : session.request(place, "POST", "/api/v1/schedules", { body: { ...body, deduplicationKey: values.deduplicationKey || crypto.randomUUID() } }), schedule ? "Schedule saved" : "Schedule created");
    setBusy(false);
    if (done) { onDone(); onClose(); }
  }
  return (
    <Dialog title={schedule ? "Edit schedule" : "New schedule"} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={!values.task || Boolean(next.error)} onClick={save}>{schedule ? "Save" : "Create schedule"}</Button></>}>
      <Field label="Task" list="scheduled-tasks" value={values.task} onInput={set("task")} hint={tasks.length ? undefined : "A task declared with schedules.task(). The current version has none."} />
      <datalist id="scheduled-tasks">{tasks.map(({ slug }) => <option key={slug} value={slug} />)}</datalist>
      <Field label="Cron" value={values.cron} onInput={set("cron")} error={!isZone && next.error?.message} hint={next.data ? with24Hours(next.data.description) : "minute hour day month weekday"} />
      <Field label="Time zone" list="zones" value={values.timezone} onInput={set("timezone")} error={wrongZone} />
      <datalist id="zones">{(zones?.timezones ?? []).map((zone) => <option key={zone} value={zone} />)}</datalist>
      {next.data && <div><h3>Next five runs</h3><ol class="next">{next.data.next.map((time) => <li key={time} title={time}>{minuteTime(time)}</li>)}</ol></div>}
      <details><summary>More options</summary><div class="stack more-options">
        <Field label="External id" value={values.externalId} onInput={set("externalId")} hint="Passed to each run, for example the id of a customer." />
        {!schedule && <Field label="Deduplication key" value={values.deduplicationKey} onInput={set("deduplicationKey")} hint="A second schedule with the same key replaces the first." />}
      </div></details>
    </Dialog>
  );
}

function DeleteDialog({ place, schedule, onClose, onDone }) {
  const remove = () => attempt(() => session.request(place, "DELETE", `/api/v1/schedules/${schedule.id}`), "Schedule deleted").then((done) => { if (done) { onDone(); onClose(); } });
  return <Dialog title="Delete schedule" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" onClick={remove}>Delete</Button></>}><p>The schedule {schedule.generator.expression} no longer triggers {schedule.task}. Its runs are kept.</p></Dialog>;
}

/** Converts the hours in a description of a cron expression: "At 06:00 PM" becomes "At 18:00". */
const with24Hours = (text) => text.replace(/(\d{1,2}):(\d\d) (AM|PM)/g, (_, hour, minute, half) => `${String(hour % 12 + (half === "PM" ? 12 : 0)).padStart(2, "0")}:${minute}`);

/** The name of a time zone, which may be broken after each slash. */
const Zone = ({ name }) => <span class="zone">{name.split("/").map((part, at) => <Fragment key={at}>{at > 0 && <>/<wbr /></>}{part}</Fragment>)}</span>;

/** Returns a time in the schedule's zone; undefined if the viewer's clock shows the same time. */
function zonedTime(time, timeZone) {
  try {
    const text = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit", timeZone }).format(new Date(time));
    return clockTime(time).includes(text.slice(-5)) ? undefined : text;
  } catch { return undefined; }
}

/** The newest run of each schedule, by the schedule's id. */
async function lastRuns(place, schedules) {
  const found = await Promise.all(schedules.map(async ({ id }) => {
    const { data: [run] } = await session.request(place, "GET", `/api/v1/runs?${new URLSearchParams({ "filter[schedule]": id, "filter[createdAt][period]": "30d", "page[size]": 1 })}`);
    return [id, run ?? null];
  }));
  return Object.fromEntries(found);
}

/** Returns the payload that a schedule would give its task now, as SuperJSON. */
async function payloadOf(place, { id, type, timezone, externalId, generator }) {
  const { next } = await session.request(place, "POST", "/api/v1/schedules/preview", { body: { cron: generator.expression, timezone, count: 10 } });
  const dates = { timestamp: ["Date"], ...Object.fromEntries(next.map((_, at) => [`upcoming.${at}`, ["Date"]])) };
  return JSON.stringify({ json: { type, timestamp: new Date().toISOString(), timezone, scheduleId: id, externalId, upcoming: next }, meta: { values: dates } });
}

export function Schedules({ place }) {
  const [page, setPage] = useState(1), [dialog, setDialog] = useState(), now = useNow();
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, page], () => session.request(place, "GET", `/api/v1/schedules?page=${page}&perPage=50`), { everyMs: 5000 });
  const ids = (data?.data ?? []).map(({ id }) => id), last = useQuery([place.ref, place.env, place.branch, ids, "last"], () => lastRuns(place, data.data), { enabled: ids.length > 0, everyMs: 10_000 });
  const start = (schedule) => attempt(async () => {
    const { id } = await session.request(place, "POST", `/api/v1/tasks/${encodeURIComponent(schedule.task)}/trigger`, { body: { payload: await payloadOf(place, schedule), options: { payloadType: "application/super+json" } } });
    go(addressOf({ ...place, view: "runs", id, query: {} }));
  });
  const toggle = ({ id, active }) => attempt(() => session.request(place, "POST", `/api/v1/schedules/${id}/${active ? "deactivate" : "activate"}`, { body: {} }), active ? "Schedule turned off" : "Schedule turned on").then(reload);
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
      {all.length > 0 && <Table label="Schedules" rows={rows} chosen={place.id} columns={[
        ["Task", (one) => <><a href={addressOf({ ...place, view: "runs", id: undefined, query: { schedule: one.id } })}>{one.task}</a>{one.id === place.id && <span class="hidden"> selected</span>}</>],
        ["Schedule", (one) => <span>{with24Hours(one.generator.description)}<br /><span class="dim"><code>{one.generator.expression}</code> <Zone name={one.timezone} /></span></span>],
        ["Last run", (one) => { const run = last.data?.[one.id]; return run ? <a class="row" href={addressOf({ ...place, view: "runs", id: run.id, query: {} })}><Status status={run.status} /><Time at={run.createdAt} relative /></a> : <span class="dim">{last.data ? "Never" : "–"}</span>; }],
        ["Next run", (one) => one.active && one.nextRun ? <span class="next-run" title={wholeTime(one.nextRun)}><Time at={one.nextRun} /> <span class="dim">{until(one.nextRun, now)}</span>{zonedTime(one.nextRun, one.timezone) && <><br /><span class="dim">{zonedTime(one.nextRun, one.timezone)} <Zone name={one.timezone} /></span></>}</span> : <span class="dim">–</span>],
        ["Source", (one) => <span>{one.type === "DECLARATIVE" ? <span title="Declared with the task. To change it, deploy another version.">Code</span> : "API"}{one.externalId && <><br /><span class="dim external" title={one.externalId}>{one.externalId}</span></>}</span>, "wide-cell-only"],
        ["Actions", (one) => <span class="row-end flat schedule-actions">
          <Button kind="small" icon="test" aria-label={`Run ${one.task} now`} title="Run now" onClick={() => start(one)}>Run now</Button>
          <label class="switch" title={one.type === "DECLARATIVE" ? "Declared in code: deploy another version to turn it off" : undefined}><input type="checkbox" role="switch" checked={one.active} onChange={() => toggle(one)} disabled={one.type === "DECLARATIVE"} aria-label={`${one.task} ${one.generator.expression} is on`} />{one.active ? "On" : "Off"}</label>
          {one.type !== "DECLARATIVE" && <><Button kind="small" icon="edit" aria-label="Edit…" title="Edit…" onClick={() => setDialog({ edit: true, schedule: one })} /><Button kind="small" aria-label="Delete" title="Delete" icon="trash" onClick={() => setDialog({ remove: one })} /></>}</span>, "actions-cell"],
      ]} />}
      {data?.pagination.totalPages > 1 && <div class="row-end flat"><Button disabled={page === 1} onClick={() => setPage(page - 1)}>Previous</Button><span class="dim">{page} of {data.pagination.totalPages}</span><Button disabled={page >= data.pagination.totalPages} onClick={() => setPage(page + 1)}>Next</Button></div>}
      {dialog?.edit && <ScheduleDialog place={place} schedule={dialog.schedule} onClose={() => setDialog()} onDone={reload} />}
      {dialog?.remove && <DeleteDialog place={place} schedule={dialog.remove} onClose={() => setDialog()} onDone={reload} />}
    </Page>
  );
}
