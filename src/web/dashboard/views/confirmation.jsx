// confirmation.jsx - lets the user sign in again before a call that cannot be undone or that creates a credential.
//
// The gateway refuses such a call with 403 if the sign-in is older than ten minutes. The user then pastes
// another link or token, and the call is repeated.
import { useState } from "preact/hooks";

import { session } from "../lib/session.js";
import { Button, Dialog, Empty, Field } from "../ui/basic.jsx";
import { codeOf } from "./sign_in.jsx";

function Confirm({ isSignIn, onDone, onClose }) {
  const [text, setText] = useState(""), [error, setError] = useState(), [isBusy, setBusy] = useState(false);
  async function confirm() {
    setBusy(true);
    setError(undefined);
    try {
      await session.confirm(codeOf(text.trim()), isSignIn);
      onDone();
    } catch (refusal) { setError(refusal); setBusy(false); }
  }
  return (
    <Dialog title="Confirm that it is you" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={isBusy} disabled={!text.trim()} onClick={confirm}>Confirm</Button></>}>
      <p>{session.isTabSignedIn ? "You signed in more than 10 minutes ago, and this needs a recent sign-in." : "This browser has stayed signed in, and this needs a recent sign-in."}</p>
      <Field label="Sign-in link or personal access token" type="password" autofocus value={text} onInput={(event) => setText(event.currentTarget.value)}
        error={error?.message} hint={<><code>runcast dashboard</code> on the gateway's machine prints a link</>} />
    </Dialog>
  );
}

/** Returns { guard, dialog }. guard(action) repeats an action that was refused, after the user has confirmed in the dialog. */
export function useConfirmation(isSignIn) {
  const [waiting, setWaiting] = useState();
  async function guard(action) {
    try { return await action(); } catch (error) {
      if (error.status !== 403) throw error;
      if (!await new Promise((resolve) => setWaiting({ resolve }))) return undefined;
      return await action();
    }
  }
  const finish = (isConfirmed) => { setWaiting(); waiting.resolve(isConfirmed); };
  return { guard, dialog: waiting && <Confirm isSignIn={isSignIn} onDone={() => finish(true)} onClose={() => finish(false)} /> };
}

/** Asks a user who has stayed signed in to sign in again, for data outside of environments. */
export function ConfirmFirst({ what }) {
  const [isOpen, setOpen] = useState(false);
  return <>
    <Empty title="Confirm that it is you"><p>This browser has stayed signed in. {what} need a recent sign-in.</p><p><Button kind="primary" onClick={() => setOpen(true)}>Confirm…</Button></p></Empty>
    {isOpen && <Confirm isSignIn onDone={() => setOpen(false)} onClose={() => setOpen(false)} />}
  </>;
}
