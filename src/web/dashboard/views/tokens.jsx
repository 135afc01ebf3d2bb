// tokens.jsx - keys of the environment, and tokens and sign-ins of the user: shown, created, rotated and revoked.
import { useState } from "preact/hooks";

import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { until, useNow, wholeTime } from "../lib/time.js";
import { Button, Empty, IconButton, Loading, Page, Problem, Table, Time } from "../ui/basic.jsx";
import { attempt, showToast } from "../ui/toast.jsx";
import { ConfirmFirst, useConfirmation } from "./confirmation.jsx";
import { NewSecret, Revoke, Rotate } from "./token_dialogs.jsx";

function End({ at }) {
  const now = useNow();
  return at ? <time dateTime={at} title={wholeTime(at)}>{until(at, now)}</time> : <span class="dim">Never</span>;
}

const times = [
  ["Created", ({ createdAt }) => <Time at={createdAt} relative />],
  ["Expires", ({ expiresAt }) => <End at={expiresAt} />],
  ["Last used", ({ lastUsedAt }) => lastUsedAt ? <Time at={lastUsedAt} relative /> : <span class="dim" title="No use is known">–</span>],
];
const newestFirst = (rows) => [...rows].sort((a, b) => (b.createdAt ?? "").localeCompare(a.createdAt ?? ""));

/** A key, masked until the user shows it. The gateway logs which user was shown it. */
function Key({ path, one }) {
  const [shown, setShown] = useState(), title = one.label ?? "main key";
  const reveal = async () => (await session.requestAsUser("POST", `${path}/${one.id}/reveal`)).key;
  const show = () => shown ? setShown() : attempt(async () => setShown(await reveal()));
  const copy = () => attempt(async () => {
    const key = shown ?? await reveal();
    try { await navigator.clipboard.writeText(key); } catch { throw new Error("Copy failed: the browser denied access to the clipboard"); }
    showToast("Copied");
  });
  return <span class={shown ? "key shown" : "key"}><code>{shown ?? one.name}</code><Button kind="small ghost" aria-label={`${shown ? "Hide" : "Show"} ${title}`} onClick={show}>{shown ? "Hide" : "Show"}</Button><IconButton icon="copy" label={`Copy ${title}`} onClick={copy} /></span>;
}

function Keys({ place, project, path, keys, guard, setDialog }) {
  const name = (one) => <>{one.label ?? "Main key"} {one.isReplaced && <em class="mini">replaced</em>}</>;
  const actions = (one) => (
    <span class="row-end flat">
      {!one.isReplaced && <Button kind="small" aria-label={`Rotate ${one.label ?? "main key"}`} onClick={() => setDialog({ rotate: one })}>Rotate…</Button>}
      {(one.isReplaced || !one.isMain) && <IconButton icon="trash" label={`Revoke ${one.label ?? "main key"}`} onClick={() => setDialog({ revoke: one })} />}
    </span>
  );
  return (
    <section class="panel" aria-label="Secret keys"><header><div><h2>Secret keys of {place.env}</h2><p class="subtitle">Each key gives access to everything in {place.env} of {project.name}. Tasks and the CLI use the main key.</p></div>
      <Button icon="plus" onClick={() => setDialog({ create: "key" })}>New key</Button></header>
      {keys.error ? <Problem error={keys.error} retry={keys.reload} /> : !keys.data ? <Loading /> : <Table label="Keys" rows={[...keys.data.data].sort((a, b) => b.isMain - a.isMain || a.isReplaced - b.isReplaced || (a.label ?? "").localeCompare(b.label ?? ""))} columns={[
        ["Name", name], ["Key", (one) => <Key key={one.id} path={path} one={one} />], ...times, ["Actions", actions, "actions-cell"],
      ]} />}</section>
  );
}

function Tokens({ project, tokens, setDialog }) {
  const rows = newestFirst(tokens.data?.data ?? []), plain = rows.filter(({ isSignIn }) => !isSignIn), signIns = rows.filter(({ isSignIn }) => isSignIn);
  const name = (one) => <>{one.name || <span class="dim">unnamed</span>} {one.isThis && <em class="mini current">this tab</em>}</>;
  const revoke = (one) => <span class="row-end flat"><IconButton icon="trash" label={`Revoke ${one.name || one.id}`} onClick={() => setDialog({ revokeToken: one })} /></span>;
  const signOut = (one) => <span class="row-end flat"><Button kind="small" aria-label={one.isThis ? "Sign out of this tab" : `Sign out ${one.id}`} onClick={() => one.isThis ? session.signOut() : setDialog({ signOut: one })}>Sign out</Button></span>;
  const id = ["Id", (one) => <code class="dim">{one.id}</code>];
  return <>
    <section class="panel" aria-label="Personal access tokens"><header><div><h2>Your personal access tokens</h2><p class="subtitle">Each token gives access to every project of your organizations, such as {project.organization.title}.</p></div>
      <Button icon="plus" onClick={() => setDialog({ create: "token" })}>New token</Button></header>
      {tokens.error ? <Problem error={tokens.error} retry={tokens.reload} /> : !tokens.data ? <Loading /> : !plain.length ? <Empty title="No tokens"><p>The CLI and your scripts sign in with a token.</p></Empty> : <Table label="Tokens" rows={plain} columns={[["Name", name], id, ...times, ["Actions", revoke, "actions-cell"]]} />}</section>
    {signIns.length > 0 && <section class="panel" aria-label="Sign-ins"><header><div><h2>Your sign-ins</h2><p class="subtitle">Browsers that are signed in to this dashboard, for 12 hours each. Browsers that stay signed in have 12 hours after each use, up to 30 days.</p></div></header>
      <Table label="Sign-ins of the dashboard" rows={signIns} columns={[["Name", name], id, ...times, ["Actions", signOut, "actions-cell"]]} /></section>}
  </>;
}

export const TokensView = (props) => session.isTabSignedIn ? <Credentials {...props} /> : <Page title="Keys and tokens" kind="credentials"><ConfirmFirst what="Keys and tokens" /></Page>;

function Credentials({ place, project }) {
  const [dialog, setDialog] = useState(), close = () => setDialog();
  const path = `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/keys`;
  const tokens = useQuery(["tokens"], () => session.requestAsUser("GET", "/api/v1/tokens")), keys = useQuery([place.ref, place.env, "keys"], () => session.requestAsUser("GET", path));
  const confirmation = useConfirmation(tokens.data?.data.find(({ isThis }) => isThis)?.isSignIn ?? true), { guard } = confirmation;
  const ofKeys = { path, guard, onClose: close, onDone: keys.reload }, ofTokens = { path: "/api/v1/tokens", guard, onClose: close, onDone: tokens.reload };
  return (
    <Page title="Keys and tokens" kind="credentials">
      <Keys {...{ place, project, path, keys, setDialog }} />
      <Tokens {...{ project, tokens, setDialog }} />
      {dialog?.create === "key" && <NewSecret {...ofKeys} env={place.env} />}
      {dialog?.create === "token" && <NewSecret {...ofTokens} path={undefined} />}
      {dialog?.rotate && <Rotate {...ofKeys} one={dialog.rotate} />}
      {dialog?.revoke && <Revoke {...ofKeys} one={dialog.revoke} title={`Revoke ${dialog.revoke.label ?? "replaced key"}`} verb="Revoke key" done="Key revoked">Programs that use <code>{dialog.revoke.name}</code> are refused immediately, and so are the public tokens that it signed.</Revoke>}
      {dialog?.revokeToken && <Revoke {...ofTokens} one={dialog.revokeToken} title={`Revoke ${dialog.revokeToken.name || "token"}`} verb="Revoke token" done="Token revoked">Programs that use this token are refused immediately. Sign-ins that were made with it end, too.</Revoke>}
      {dialog?.signOut && <Revoke {...ofTokens} one={dialog.signOut} title="Sign out" verb="Sign out" done="Signed out">That browser must sign in again.</Revoke>}
      {confirmation.dialog}
    </Page>
  );
}
