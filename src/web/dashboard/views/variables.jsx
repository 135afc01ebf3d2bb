// variables.jsx - the variables of tasks. A secret can be written, but is never shown again.
import { useState } from "preact/hooks";

import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Button, Copy, Dialog, Empty, Field, IconButton, Loading, Page, Problem, Table } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";

const pathOf = ({ ref, env }, name) => `/api/v1/projects/${encodeURIComponent(ref)}/envvars/${encodeURIComponent(env)}${name ? `/${encodeURIComponent(name)}` : ""}`;

function VariableDialog({ place, variable, names, onClose, onDone }) {
  const [values, setValues] = useState({ name: variable?.name ?? "", value: variable && !variable.isSecret ? variable.value : "", isSecret: variable?.isSecret ?? true }), [isBusy, setBusy] = useState(false);
  const isThere = !variable && names.includes(values.name);
  async function save() {
    setBusy(true);
    const body = variable ? { value: values.value } : values;
    if (await attempt(() => session.ask(place, variable ? "PUT" : "POST", pathOf(place, variable?.name), { body }), variable ? "Saved: tasks get it with their next run" : "Added: tasks get it with their next run")) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={variable ? `Another value of ${variable.name}` : "New variable"} onClose={onClose} actions={<><Button onClick={onClose}>Close</Button><Button kind="primary" busy={isBusy} disabled={!values.name || !values.value} onClick={save}>{variable ? "Save" : isThere ? "Replace its value" : "Add"}</Button></>}>
      {!variable && <Field label="Name" placeholder="DATABASE_URL" value={values.name} onInput={(event) => setValues({ ...values, name: event.currentTarget.value })} hint={isThere ? "This variable is there: its value would be replaced." : "Letters, digits, _ . and -"} />}
      <Field label="Value" as="textarea" rows={4} class="short" value={values.value} onInput={(event) => setValues({ ...values, value: event.currentTarget.value })} hint={variable?.isSecret ? "The value that it has is a secret, and is not shown." : "At least one character"} />
      {!variable && <label class="check"><input type="checkbox" checked={values.isSecret} onChange={(event) => setValues({ ...values, isSecret: event.currentTarget.checked })} /> A secret: only tasks read it, and nobody sees it again</label>}
    </Dialog>
  );
}

function Value({ variable }) {
  const [isShown, setShown] = useState(false);
  if (variable.isSecret) return <span class="dim">secret</span>;
  return <span class="row"><code class="value">{isShown ? variable.value : "••••••••"}</code><Button kind="small ghost" aria-pressed={isShown} aria-label={`${isShown ? "Hide" : "Show"} ${variable.name}`} onClick={() => setShown(!isShown)}>{isShown ? "Hide" : "Show"}</Button>{isShown && <Copy text={variable.value} label={`Copy the value of ${variable.name}`} />}</span>;
}

export function Variables({ place }) {
  const [dialog, setDialog] = useState(), { data, error, reload } = useQuery([place.ref, place.env, place.branch], () => session.ask(place, "GET", pathOf(place)));
  const remove = ({ name }) => attempt(() => session.ask(place, "DELETE", pathOf(place, name)), `${name} is deleted`).then((done) => { if (done) { reload(); setDialog(); } });
  return (
    <Page title="Variables" subtitle={`What tasks of ${place.env}${place.branch ? `, branch ${place.branch},` : ""} find in their environment`} actions={<Button kind="primary" icon="plus" onClick={() => setDialog({ edit: true })}>New variable</Button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !data.length && <Empty title="No variables"><p>What is added here a task finds in <code>process.env</code> with its next run. Values are stored sealed.</p></Empty>}
      {data?.length > 0 && <Table label="Variables" rowKey="name" rows={[...data].sort((a, b) => a.name.localeCompare(b.name))} columns={[
        ["Name", (one) => <code>{one.name}</code>], ["Value", (one) => <Value variable={one} />],
        ["Actions", (one) => <span class="row-end flat"><Button kind="small" aria-label={`Another value of ${one.name}`} onClick={() => setDialog({ edit: true, variable: one })}>Edit…</Button><IconButton icon="trash" label={`Delete ${one.name}`} onClick={() => setDialog({ remove: one })} /></span>, "actions-cell"],
      ]} />}
      {dialog?.edit && <VariableDialog place={place} variable={dialog.variable} names={data.map(({ name }) => name)} onClose={() => setDialog()} onDone={reload} />}
      {dialog?.remove && <Dialog title={`Delete ${dialog.remove.name}`} onClose={() => setDialog()} actions={<><Button onClick={() => setDialog()}>Keep it</Button><Button kind="danger" onClick={() => remove(dialog.remove)}>Delete</Button></>}><p>Tasks do not find it any more from their next run on. Its value is gone.</p></Dialog>}
    </Page>
  );
}
