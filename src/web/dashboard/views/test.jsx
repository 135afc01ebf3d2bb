// test.jsx - triggers a task with a payload that the user types, and opens its run.
import { useEffect, useMemo, useState } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { exampleOf, problemsOf } from "../lib/schema.js";
import { session } from "../lib/session.js";
import { deployCommand } from "../lib/snippets.js";
import { Button, Empty, Field, Loading, Page, Problem, warningOf, Warnings } from "../ui/basic.jsx";
import { JsonEditor } from "../ui/editor.jsx";
import { Json } from "../ui/json.jsx";
import { attempt } from "../ui/toast.jsx";
import { parseJson } from "./run_dialogs.jsx";

const storagePrefix = "runcast.payload."; // the tab stores the payload that the user typed for each task

/** Loads the version for new runs, or the given one; {} if it does not exist. */
export const currentWorker = (place, version) => session.request(place, "GET", `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/workers/current${version ? `?version=${encodeURIComponent(version)}` : ""}`)
  .catch((error) => { if (error.status === 404) return {}; throw error; });

const isMac = /mac|iphone|ipad/i.test(navigator.platform);

/** Returns the payload of a task's newest run as text; undefined if there is no run, or its payload is stored elsewhere. */
async function lastPayload(place, slug) {
  const { data: [last] } = await session.request(place, "GET", `/api/v1/runs?${new URLSearchParams({ "filter[taskIdentifier]": slug, "filter[createdAt][period]": "30d", "page[size]": 1 })}`);
  const run = last && await session.request(place, "GET", `/api/v3/runs/${last.id}`);
  return run?.payload === undefined ? undefined : JSON.stringify(run.payload, null, 2);
}

function TaskForm({ place, task }) {
  const { payloadSchema: schema } = task, key = storagePrefix + task.slug;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? JSON.stringify(exampleOf(schema) ?? {}, null, 2));
  const [options, setOptions] = useState({ isTest: "true" }), [isBusy, setBusy] = useState(false);
  const { value, error } = parseJson(text), problems = useMemo(() => error || !schema ? [] : problemsOf(schema, value), [text, schema]);
  useEffect(() => { try { sessionStorage.setItem(key, text); } catch { /* storage is full or forbidden */ } }, [text]);
  const useLast = () => attempt(async () => {
    const last = await lastPayload(place, task.slug);
    if (last === undefined) throw new Error(`${task.slug} has no run with a payload in the last 30 days`);
    setText(last);
  });
  const press = (event) => { if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && !error && !isBusy) { event.preventDefault(); trigger(); } };
  const set = (name) => (event) => setOptions({ ...options, [name]: event.currentTarget.value });
  async function trigger() {
    setBusy(true);
    const named = {
      payloadType: "application/json", test: options.isTest === "true" || undefined, tags: options.tags?.split(/[,\s]+/).filter(Boolean), delay: options.delay || undefined, ttl: options.ttl || undefined,
      queue: options.queue ? { name: options.queue } : undefined, concurrencyKey: options.concurrencyKey || undefined, idempotencyKey: options.idempotencyKey || undefined, machine: options.machine || undefined, maxAttempts: options.maxAttempts ? Number(options.maxAttempts) : undefined, lockToVersion: options.version || undefined,
    };
    if (!named.tags?.length) delete named.tags;
    await attempt(async () => {
      const { id } = await session.request(place, "POST", `/api/v1/tasks/${encodeURIComponent(task.slug)}/trigger`, { body: { payload: JSON.stringify(value ?? null), options: named } });
      go(addressOf({ ...place, view: "runs", id, query: {} }));
    });
    setBusy(false);
  }
  return (
    <form class="columns" onKeyDown={press} onSubmit={(event) => { event.preventDefault(); trigger(); }}>
      <section class="panel" aria-label="Payload"><header><h2>Payload</h2><Button kind="small ghost" onClick={useLast}>Use last payload</Button><Button kind="small ghost" onClick={() => setText(JSON.stringify(exampleOf(schema) ?? {}, null, 2))}>{schema ? "Use example" : "Clear"}</Button></header>
        <div class="body stack">
          <Field as={JsonEditor} label="JSON" rows={16} value={text} onInput={(event) => setText(event.currentTarget.value)} error={error} hint={schema ? undefined : "The task declares no schema. Any JSON is accepted."} />
          {problems.length > 0 && <ul class="hints" aria-label="Schema problems">{problems.slice(0, 8).map((problem) => <li key={problem} class="warn">{problem}</li>)}</ul>}
          {schema && <details><summary>Schema</summary><Json value={schema} label="schema" /></details>}
        </div></section>
      <aside class="stack"><section class="panel" aria-label="Options"><header><h2>Options</h2></header><div class="body stack">
        <label class="check"><input type="checkbox" checked={options.isTest === "true"} onChange={(event) => setOptions({ ...options, isTest: String(event.currentTarget.checked) })} />Mark as a test run</label>
        <Field label="Tags" placeholder="eu, shop" value={options.tags ?? ""} onInput={set("tags")} />
        <Field label="Delay" placeholder="10s, 5m, 2026-12-01T08:00:00Z" value={options.delay ?? ""} onInput={set("delay")} />
        <Field label="Expires after" placeholder="10m" value={options.ttl ?? ""} onInput={set("ttl")} />
        <details><summary>More options</summary><div class="stack more-options">
          <Field label="Queue" value={options.queue ?? ""} onInput={set("queue")} />
          <Field label="Concurrency key" value={options.concurrencyKey ?? ""} onInput={set("concurrencyKey")} />
          <Field label="Idempotency key" value={options.idempotencyKey ?? ""} onInput={set("idempotencyKey")} />
          <Field label="Machine" placeholder="small-1x" value={options.machine ?? ""} onInput={set("machine")} />
          <Field label="Max attempts" type="number" min="1" value={options.maxAttempts ?? ""} onInput={set("maxAttempts")} />
          <Field label="Version" value={options.version ?? ""} onInput={set("version")} />
        </div></details>
        <Button type="submit" kind="primary" icon="test" busy={isBusy} disabled={Boolean(error)}>Trigger {task.slug}</Button>
        <p class="hint wide-only">or press <kbd>{isMac ? "⌘" : "Ctrl"}</kbd> <kbd>Enter</kbd></p>
      </div></section></aside>
    </form>
  );
}

export function Test({ place }) {
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch], () => currentWorker(place)), tasks = data?.worker?.tasks ?? [];
  const chosen = tasks.find(({ slug }) => slug === place.id) ?? tasks[0];
  return (
    <Page title="Test" subtitle={data?.worker && `Version ${data.worker.version} of ${place.env}`}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !tasks.length && <Empty title={`No tasks in ${place.env}`}>
        <p>{place.env === "dev" ? "Start a worker in your project:" : "Deploy your project:"}</p>
        <pre>{place.env === "dev" ? "npx trigger.dev@4.8.3 dev" : deployCommand(place)}</pre>
        <p><Button onClick={reload}>Check again</Button></p>
      </Empty>}
      {chosen && <>
        <Warnings warnings={[warningOf(data.worker.warnings, chosen.slug)].filter(Boolean)} />
        <div class="task-choice"><Field label="Task" as="select" value={chosen.slug} onChange={(event) => go(addressOf({ ...place, view: "test", id: event.currentTarget.value, query: {} }), { replace: true })}>{tasks.map(({ slug, filePath }) => <option key={slug} value={slug}>{slug}{filePath ? ` (${filePath})` : ""}</option>)}</Field></div>
        <TaskForm key={chosen.slug} place={place} task={chosen} />
      </>}
    </Page>
  );
}
