// variables.jsx - the variables of tasks. A secret can be written, but is never shown again.
import { useState } from "preact/hooks";

import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Button, Copy, Dialog, Empty, Field, IconButton, Loading, Page, Problem, Table } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";

const pathOf = ({ ref, env }, name) => `/api/v1/projects/${encodeURIComponent(ref)}/envvars/${encodeURIComponent(env)}${name ? `/${encodeURIComponent(name)}` : ""}`;

function VariableDialog({ place, variable, names, onClose, onDone }) {
  const [values, setValues] = useState({ name: variable?.name ?? "", value: variable && !variable.isSecret ? variable.value : "", isSecret: variable?.isSecret ?? true }), [isBusy, setBusy] = useState(false);
  const exists = !variable && names.includes(values.name);
  async function save() {
    setBusy(true);
    const body = variable ? { value: values.value } : values;
    if (await attempt(() => session.request(place, variable ? "PUT" : "POST", pathOf(place, variable?.name), { body }), variable ? "Variable saved: tasks get it with their next run" : "Variable added: tasks get it with their next run")) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={variable ? `Edit ${variable.name}` : "New variable"} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={!values.name || !values.value} onClick={save}>{variable ? "Save" : exists ? "Replace value" : "Add"}</Button></>}>
      {!variable && <Field label="Name" placeholder="DATABASE_URL" value={values.name} onInput={(event) => setValues({ ...values, name: event.currentTarget.value })} hint={exists ? "This variable exists. Its value will be replaced." : "Letters, digits, _ . and -"} />}
      <Field label="Value" as="textarea" rows={4} class="short" value={values.value} onInput={(event) => setValues({ ...values, value: event.currentTarget.value })} hint={variable?.isSecret ? "The current value is a secret and is not shown." : "At least one character"} />
      {!variable && <label class="check"><input type="checkbox" checked={values.isSecret} onChange={(event) => setValues({ ...values, isSecret: event.currentTarget.checked })} /> Secret: only tasks can read it, and it is never shown again</label>}
    </Dialog>
  );
}

function Value({ variable }) {
  const [isShown, setShown] = useState(false);
  if (variable.isSecret) return <span class="dim">Secret</span>;
  return <span class="row"><code class={isShown ? "value" : undefined}>{isShown ? variable.value : "••••••••"}</code><span class="key"><Button kind="small ghost" aria-label={`${isShown ? "Hide" : "Show"} ${variable.name}`} onClick={() => setShown(!isShown)}>{isShown ? "Hide" : "Show"}</Button>{isShown && <Copy text={variable.value} label={`Copy the value of ${variable.name}`} />}</span></span>;
}

export function Variables({ place }) {
  const [dialog, setDialog] = useState(), { data, error, reload } = useQuery([place.ref, place.env, place.branch], () => session.request(place, "GET", pathOf(place)));
  const remove = ({ name }) => attempt(() => session.request(place, "DELETE", pathOf(place, name)), `${name} deleted`).then((done) => { if (done) { reload(); setDialog(); } });
  return (
    <Page title="Variables" subtitle={`Environment variables of tasks in ${place.env}${place.branch ? `, branch ${place.branch}` : ""}`} actions={<Button kind="primary" icon="plus" onClick={() => setDialog({ edit: true })}>New variable</Button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !data.length && <Empty title="No variables"><p>Tasks find the variables that you add here in <code>process.env</code>, from their next run on. Values are stored encrypted.</p></Empty>}
      {data?.length > 0 && <Table label="Variables" rowKey="name" rows={[...data].sort((a, b) => a.name.localeCompare(b.name))} columns={[
        ["Name", (one) => <code>{one.name}</code>, "name-cell"], ["Value", (one) => <Value variable={one} />],
        ["Actions", (one) => <span class="row-end flat"><Button kind="small" aria-label={`Edit ${one.name}`} onClick={() => setDialog({ edit: true, variable: one })}>Edit…</Button><IconButton icon="trash" label={`Delete ${one.name}`} onClick={() => setDialog({ remove: one })} /></span>, "actions-cell"],
      ]} />}
      {dialog?.edit && <VariableDialog place={place} variable={dialog.variable} names={data.map(({ name }) => name)} onClose={() => setDialog()} onDone={reload} />}
      {dialog?.remove && <Dialog title={`Delete ${dialog.remove.name}`} onClose={() => setDialog()} actions={<><Button onClick={() => setDialog()}>Cancel</Button><Button kind="danger" onClick={() => remove(dialog.remove)}>Delete</Button></>}><p>Tasks no longer have this variable from their next run on. Its value cannot be recovered.</p></Dialog>}
    </Page>
  );
}
