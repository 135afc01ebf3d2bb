// approve.jsx - approves or refuses a login of the CLI.
//
// The code that an approval yields goes to the CLI only: to its port on this machine, or by hand.
import { useEffect, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { until, useNow } from "../lib/time.js";
import { Button, Copy, Facts, Loading, Problem, Time } from "../ui/basic.jsx";

export function Approve({ code }) {
  const path = `/api/v1/authorization-code/${encodeURIComponent(code)}`, now = useNow();
  const { data, error } = useQuery([code], () => session.personal("GET", path)), who = useQuery(["who"], () => session.personal("GET", "/api/v2/whoami"));
  const [approved, setApproved] = useState(), [isRefused, setRefused] = useState(false), [problem, setProblem] = useState(), [isBusy, setBusy] = useState(false);
  useEffect(() => { document.title = "Approve a login · runcast"; }, []);

  async function answer(verb) {
    setBusy(true);
    setProblem(undefined);
    try {
      const answered = await session.personal("POST", `${path}/${verb}`, { body: {} });
      if (verb === "refuse") setRefused(true);
      else if (answered.callbackPort) location.assign(`http://127.0.0.1:${answered.callbackPort}/callback?approval_code=${encodeURIComponent(answered.approvalCode)}`);
      else setApproved(answered.approvalCode);
    } catch (refusal) { setProblem(refusal); }
    setBusy(false);
  }

  return (
    <main class="sign-in">
      <img src={`${base}/dashboard/icon.svg`} alt="" width="44" height="44" />
      <h1>{isRefused ? "Refused" : approved ? "Approved" : data?.isApproved ? "Approved already" : "Let the CLI sign in as you?"}</h1>
      {isRefused ? <p>The login is over. Nobody got a token.</p>
        : approved ? <>
          <p>Paste this code into the terminal that asks for it:</p>
          <p class="row approval"><code>{approved}</code><Copy text={approved} label="Copy the code" /></p>
          <p class="dim">Tell it nobody: who has it and began the login acts as you.</p>
        </> : error ? <Problem error={error} /> : data?.isApproved ? <>
          <p>This login was approved, and its code was shown once. If you have it no more, begin again with <code>trigger.dev login</code>. If it was not you, refuse it.</p>
          {problem && <Problem error={problem} />}
          <div class="row-end flat"><Button busy={isBusy} onClick={() => answer("refuse")}>Refuse</Button></div>
        </> : !data ? <Loading what="Looking for the login" /> : <>
          <p><code>trigger.dev login</code> was started, and asks for a personal access token{who.data && <> of <b>{who.data.email}</b></>}. With it the CLI deploys, and reads and changes everything that you may.</p>
          <div class="panel"><div class="body"><Facts rows={[["Machine", !data.machine ? "not known: it is behind a proxy that the gateway is not told of" : data.machine === "127.0.0.1" || data.machine === "::1" ? `${data.machine}, the gateway's own` : data.machine], ["Begun", <Time at={data.createdAt} />], ["Ends", until(data.expiresAt, now)], ["Then", data.approval === "callback" ? "it goes on by itself, on this machine" : "you paste a code"]]} /></div></div>
          <p class="warn">Approve it only if you have just started it yourself, on that machine.</p>
          {problem && <Problem error={problem} />}
          <div class="row-end flat"><Button kind="ghost" busy={isBusy} onClick={() => answer("refuse")}>Refuse</Button><Button kind="primary" busy={isBusy} onClick={() => answer("approve")}>Approve</Button></div>
        </>}
    </main>
  );
}
