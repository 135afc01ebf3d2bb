// sign_in.jsx - signs in with a one-time link of `runcast dashboard`, or a personal access token.
//
// The code of a link is removed from the address bar before anything else happens.
import { useEffect, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { way } from "../lib/lasting.js";
import { session } from "../lib/session.js";
import { Button, Field, Loading, Problem } from "../ui/basic.jsx";
import { showToast } from "../ui/toast.jsx";

const signInMark = "#signin=";

/** Signs in and shows as whom, since a link may come from another person. */
const signInBy = (code, stays) => async () => {
  const { user, problem } = await session.signIn(code, { stays });
  showToast(`Signed in as ${user.email}`);
  if (problem) showToast(`This browser does not stay signed in: ${problem.message}`, "bad");
};

/** Returns the code of a sign-in link that a user has pasted, or the pasted token. */
export function codeOf(text) {
  if (/^tr_(dev|stg|prod|preview)_/.test(text)) throw new Error("Secret keys are for programs. Enter a personal access token (tr_pat_…): runcast token create prints one.");
  return text.split(signInMark)[1] ?? text;
}

/** Returns the code of a one-time link and removes it from the address bar. */
export function takeCode() {
  const [, code] = location.hash.split(signInMark);
  if (code) history.replaceState({}, "", location.pathname + location.search);
  return code || undefined;
}

export function SignIn({ code }) {
  const [token, setToken] = useState(""), [stays, setStays] = useState(false), [error, setError] = useState(), [isBusy, setBusy] = useState(Boolean(code)), [isWaiting, setWaiting] = useState(!code);

  async function attempt(signIn) {
    setBusy(true);
    setError(undefined);
    try { await signIn(); } catch (refusal) { setError(refusal); setBusy(false); }
  }
  useEffect(() => {
    document.title = "Sign in · runcast";
    if (code) attempt(signInBy(code));
    else session.requestTokenFromTabs().then((has) => has || session.resume()).then((has) => { if (!has) setWaiting(false); }, (refusal) => { setError(refusal); setWaiting(false); });
  }, []);

  if ((isBusy && code) || isWaiting) return <main class="alone"><Loading what="Signing in" /></main>;
  return (
    <main class="sign-in">
      <img src={`${base}/dashboard/icon.svg`} alt="" width="44" height="44" />
      <h1>Sign in to runcast</h1>
      {session.wasRejected && !error && <Problem error={{ status: 401, message: "Your sign-in expired or was revoked. Sign in again." }} />}
      {code && error && <Problem error={error} />}
      <section>
        <p>On the gateway's machine, print a sign-in link that works once:</p>
        <pre>runcast dashboard</pre>
      </section>
      <div class="or"><span>or</span></div>
      <form onSubmit={(event) => { event.preventDefault(); attempt(() => signInBy(codeOf(token.trim()), stays)()); }}>
        <Field label="Personal access token" type="password" placeholder="tr_pat_…" value={token} onInput={(event) => setToken(event.currentTarget.value)}
          error={!code && error?.message} hint="It signs in this tab for 12 hours. The token itself is not kept" required />
        {way ? <label class="check"><input type="checkbox" checked={stays} onChange={(event) => setStays(event.currentTarget.checked)} />Stay signed in on this browser</label>
          : <p class="dim">To stay signed in after the tab is closed, open this page over https, or as localhost.</p>}
        <Button type="submit" kind="primary" busy={isBusy}>Sign in</Button>
      </form>
    </main>
  );
}
