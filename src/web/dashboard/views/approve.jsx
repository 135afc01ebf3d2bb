// approve.jsx - approves or denies a login of the CLI.
//
// An approval returns a code for the CLI. The page sends it to the CLI's port on this machine, or the user pastes it.
import { useEffect, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { home } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { until, useNow } from "../lib/time.js";
import { Button, Copy, Facts, Loading, Problem, Time } from "../ui/basic.jsx";
import { ConfirmFirst, useConfirmation } from "./confirmation.jsx";

export const Approve = (props) => session.isTabSignedIn ? <Approval {...props} /> : <main class="sign-in"><ConfirmFirst what="Logins of the CLI" /></main>;

function Approval({ code }) {
  const path = `/api/v1/authorization-code/${encodeURIComponent(code)}`, now = useNow();
  const { data, error } = useQuery([code], () => session.requestAsUser("GET", path)), user = useQuery(["who"], () => session.who());
  const [approved, setApproved] = useState(), [isRefused, setRefused] = useState(false), [problem, setProblem] = useState(), [isBusy, setBusy] = useState(false);
  const confirmation = useConfirmation(true);
  useEffect(() => { document.title = "Approve login · runcast"; }, []);

  async function answer(verb) {
    setBusy(true);
    setProblem(undefined);
    try {
      const answered = await confirmation.guard(() => session.requestAsUser("POST", `${path}/${verb}`, { body: {} }));
      if (!answered) return setBusy(false);
      if (verb === "refuse") setRefused(true);
      else if (answered.callbackPort) location.assign(`http://127.0.0.1:${answered.callbackPort}/callback?approval_code=${encodeURIComponent(answered.approvalCode)}`);
      else setApproved(answered.approvalCode);
    } catch (refusal) { setProblem(refusal); }
    setBusy(false);
  }

  return (
    <main class="sign-in">
      <img src={`${base}/dashboard/icon.svg`} alt="" width="44" height="44" />
      <h1>{isRefused ? "Login denied" : approved ? "Login approved" : data?.isApproved ? "Login already approved" : error?.status === 404 ? "Login not found" : "Allow the CLI to sign in as you?"}</h1>
      {isRefused ? <p>The login has ended. No token was issued.</p>
        : approved ? <>
          <p>Paste this code into the terminal that asks for it:</p>
          <p class="row approval"><code>{approved}</code><Copy text={approved} label="Copy code" /></p>
          <p class="dim">Do not share it: whoever started the login can use it to act as you.</p>
        </> : error?.status === 404 ? <>
          <p>The login was used or denied, or it has expired. Start again with <code>trigger.dev login</code>.</p>
          <p><a href={home}>Go to your runs</a></p>
        </> : error ? <Problem error={error} /> : data?.isApproved ? <>
          <p>This login was approved, and its code was shown once. If you no longer have the code, start again with <code>trigger.dev login</code>. If you did not approve the login, deny it.</p>
          {problem && <Problem error={problem} />}
          <div class="row-end flat"><Button busy={isBusy} onClick={() => answer("refuse")}>Deny</Button></div>
        </> : !data ? <Loading what="Loading the login" /> : <>
          <p><code>trigger.dev login</code> was started. It requests a personal access token{user.data && <> of <b>{user.data.email}</b></>}, with which the CLI can deploy, and read and change everything that you can.</p>
          <div class="panel"><div class="body"><Facts rows={[["Machine", !data.machine ? "unknown (behind a proxy that the gateway does not trust)" : data.machine === "127.0.0.1" || data.machine === "::1" ? `${data.machine} (the gateway's machine)` : data.machine], ["Started", <Time at={data.createdAt} />], ["Expires", until(data.expiresAt, now)], ["Next step", data.approval === "callback" ? "The CLI continues automatically, on this machine" : "Paste a code into the terminal"]]} /></div></div>
          <p class="warn">Approve only if you have just started this login yourself, on that machine.</p>
          {problem && <Problem error={problem} />}
          <div class="row-end flat"><Button kind="ghost" busy={isBusy} onClick={() => answer("refuse")}>Deny</Button><Button kind="primary" busy={isBusy} onClick={() => answer("approve")}>Approve</Button></div>
        </>}
      {confirmation.dialog}
    </main>
  );
}
