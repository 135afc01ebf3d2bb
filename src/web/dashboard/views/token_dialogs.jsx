// token_dialogs.jsx - creates, rotates and revokes keys and tokens.
import { useState } from "preact/hooks";

import { session } from "../lib/session.js";
import { Button, Copy, Dialog, Field } from "../ui/basic.jsx";
import { attempt, showToast } from "../ui/toast.jsx";

const lifetimes = [["", "Never"], ["7d", "In 7 days"], ["30d", "In 30 days"], ["90d", "In 90 days"], ["365d", "In a year"]];
const gracePeriods = [["1h", "For another hour"], ["24h", "For another 24 hours"], ["7d", "For another 7 days"], ["0", "Not at all: it ends immediately"]];
const Options = ({ of }) => of.map(([value, label]) => <option key={value} value={value}>{label}</option>);

/** Shows a new key or token in clear. */
function SecretDialog({ title, secret, children, onClose }) {
  return (
    <Dialog title={title} onClose={onClose} actions={<Button kind="primary" onClick={onClose}>Done</Button>}>
      <p class="secret"><code>{secret}</code><Copy text={secret} label={`Copy ${title.toLowerCase()}`} /></p>
      <p class="dim">{children}</p>
    </Dialog>
  );
}

/** Creates a key if `path`, the path of an environment's keys, is given; otherwise a token. */
export function NewSecret({ path, env, guard, onClose, onDone }) {
  const [name, setName] = useState(""), [expiresIn, setExpiresIn] = useState(path ? "" : "90d"), [made, setMade] = useState(), [isBusy, setBusy] = useState(false);
  const kind = path ? "key" : "token";
  async function create() {
    setBusy(true);
    await attempt(async () => {
      const made = await guard(() => session.requestAsUser("POST", path ?? "/api/v1/tokens", { body: { name, expiresIn: expiresIn || undefined } }));
      if (!made) return;
      setMade(made.key ?? made.token);
      onDone();
    });
    setBusy(false);
  }
  if (made) return <SecretDialog title={`New ${kind}`} secret={made} onClose={onClose}>{path ? "You can show this key again on this page." : "Copy the token now: it is not shown again."}</SecretDialog>;
  return (
    <Dialog title={path ? `New key of ${env}` : "New personal access token"} onClose={onClose}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={isBusy} disabled={!name.trim()} onClick={create}>Create {kind}</Button></>}>
      <p class="dim">{path ? `It gives access to everything in ${env}, like the main key.` : "It gives access to every project of your organizations, like your sign-in."}</p>
      <Field label="Name" placeholder={path ? "Web app" : "CI"} maxLength={100} autofocus value={name} onInput={(event) => setName(event.currentTarget.value)} hint="The program or machine that uses it" />
      <Field label="Expires" as="select" value={expiresIn} onChange={(event) => setExpiresIn(event.currentTarget.value)}><Options of={lifetimes} /></Field>
    </Dialog>
  );
}

export function Rotate({ path, one, guard, onClose, onDone }) {
  const [grace, setGrace] = useState("24h"), [made, setMade] = useState(), [isBusy, setBusy] = useState(false);
  async function rotate() {
    setBusy(true);
    await attempt(() => guard(async () => {
      setMade((await session.requestAsUser("POST", `${path}/${one.id}/rotate`, { body: { grace } })).key);
      onDone();
    }));
    setBusy(false);
  }
  if (made) return <SecretDialog title="New key" secret={made} onClose={onClose}>{grace === "0" ? "The old key has ended." : "Replace the old key before it ends."} You can show this key again on this page.</SecretDialog>;
  return (
    <Dialog title={`Rotate ${one.label ?? "main key"}`} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" busy={isBusy} onClick={rotate}>Rotate key</Button></>}>
      <p>A new key replaces <code>{one.name}</code>. {one.isMain ? "Tasks and the CLI receive it by themselves; replace it in your own programs." : "Replace it in your programs."}</p>
      <Field label="The old key stays valid" as="select" value={grace} onChange={(event) => setGrace(event.currentTarget.value)} hint="Public tokens that it signed end with it."><Options of={gracePeriods} /></Field>
    </Dialog>
  );
}

/** Revokes a key, a token or a sign-in. done: the message that is then shown. */
export function Revoke({ path, one, title, verb, done, children, guard, onClose, onDone }) {
  const [isBusy, setBusy] = useState(false);
  async function revoke() {
    setBusy(true);
    await attempt(() => guard(async () => {
      await session.requestAsUser("DELETE", `${path}/${one.id}`);
      showToast(done);
      onDone();
      onClose();
    }));
    setBusy(false);
  }
  return <Dialog title={title} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" busy={isBusy} onClick={revoke}>{verb}</Button></>}><p>{children}</p></Dialog>;
}
