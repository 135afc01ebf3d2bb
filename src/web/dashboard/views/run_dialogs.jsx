// run_dialogs.jsx - dialogs for a run: replay with another payload, cancel, reschedule, snippets.
import { useState } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { parseExactly, session } from "../lib/session.js";
import { snippetsOf } from "../lib/snippets.js";
import { Button, Copy, Dialog, Field } from "../ui/basic.jsx";
import { JsonEditor } from "../ui/editor.jsx";
import { attempt, showToast } from "../ui/toast.jsx";

/** Returns { value } of a JSON text, or { error } if it is invalid. */
export function parseJson(text) {
  try { return { value: text.trim() ? parseExactly(text) : undefined }; }
  catch (error) { return { error: `Invalid JSON: ${error.message}` }; }
}

export function ReplayDialog({ place, run, onClose }) {
  const [text, setText] = useState(() => JSON.stringify(run.payload, null, 2) ?? ""), [isBusy, setBusy] = useState(false), { value, error } = parseJson(text);
  const isSame = text === (JSON.stringify(run.payload, null, 2) ?? "");
  async function replay() {
    setBusy(true);
    const path = `/api/v1/runs/${run.id}/replay`, body = isSame ? {} : { payload: value, payloadType: "application/json" };
    await attempt(async () => {
      const { id } = await session.request(place, "POST", path, { body });
      onClose();
      go(addressOf({ ...place, view: "runs", id }));
      showToast("Run replayed");
    });
    setBusy(false);
  }
  return (
    <Dialog title={`Replay ${run.taskIdentifier}`} wide onClose={onClose} actions={<>
      <Button onClick={onClose}>Cancel</Button><Button kind="primary" icon="replay" busy={isBusy} disabled={Boolean(error)} onClick={replay}>Replay</Button></>}>
      <Field as={JsonEditor} label="Payload" rows={14} value={text} onInput={(event) => setText(event.currentTarget.value)} error={error}
        hint={isSame ? "Unchanged. The new run has the same options as this run." : "Changed. The new run has the same options as this run."} />
    </Dialog>
  );
}

export function CancelDialog({ place, run, onClose, onDone }) {
  const [isBusy, setBusy] = useState(false);
  async function cancel() {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `/api/v2/runs/${run.id}/cancel`, { body: {} }), "Run canceled")) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title="Cancel run" onClose={onClose} actions={<><Button onClick={onClose}>Keep run</Button><Button kind="danger" busy={isBusy} onClick={cancel}>Cancel run</Button></>}>
      <p>{run.taskIdentifier} is asked to stop{run.startedAt ? ", at whatever point it has reached" : " before it starts"}, and so are the runs that it has triggered and waits for. This cannot be undone.</p>
    </Dialog>
  );
}

export function RescheduleDialog({ place, run, onClose, onDone }) {
  const local = new Date(new Date(run.delayedUntil) - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const [time, setTime] = useState(local), [isBusy, setBusy] = useState(false);
  async function save() {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `/api/v1/runs/${run.id}/reschedule`, { body: { delay: new Date(time).toISOString() } }), "Run rescheduled")) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title="Reschedule run" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={!time} onClick={save}>Save</Button></>}>
      <Field label="Start time" type="datetime-local" value={time} onInput={(event) => setTime(event.currentTarget.value)} hint="Local time" />
    </Dialog>
  );
}

export function SnippetDialog({ place, run, onClose }) {
  const all = snippetsOf(run), [chosen, setChosen] = useState(0);
  return (
    <Dialog title="Trigger the same run from elsewhere" wide onClose={onClose}>
      <div class="row" role="group" aria-label="Language">{all.map(([name], at) => <Button key={name} kind={`small ${at === chosen ? "primary" : ""}`} aria-pressed={at === chosen} onClick={() => setChosen(at)}>{name}</Button>)}<span class="gap" /><Copy text={all[chosen][1]} label={`Copy ${all[chosen][0]}`} /></div>
      <pre class="log" tabIndex={0}>{all[chosen][1]}</pre>
      <p class="dim"><code>TRIGGER_SECRET_KEY</code> is a key of {place.env}: see <a href={addressOf({ ...place, view: "tokens", id: undefined, query: {} })}>Keys and tokens</a>.</p>
    </Dialog>
  );
}
