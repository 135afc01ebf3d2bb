// shell.jsx - the frame around every view: current place, navigation, and connection state.
import { useEffect, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { clientOf, useConnection } from "../lib/live.js";
import { addressOf, environments, go, home } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { way } from "../lib/lasting.js";
import { choose, useSettings } from "../lib/settings.js";
import { Button, IconButton, Menu, MenuItem, Time } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { attempt, showToast } from "../ui/toast.jsx";
import { useConfirmation } from "./confirmation.jsx";
import { useGateways } from "./gateways.jsx";
import { useBranches } from "./preview.jsx";
import { views } from "./views.js";

const states = {
  live: ["live", "Live", "Connected: changes appear as they happen"],
  connecting: ["connecting", "Connecting", "Connection lost or not yet established; this page may be out of date"],
  paused: ["paused", "Paused", "Paused while the tab was hidden; it catches up when the tab is shown"],
  closed: ["closed", "Not connected", "The gateway closed the connection"],
};

function Connection({ place }) {
  const { state, error, lostAt } = useConnection(), [name, label, title] = states[state];
  return (
    <span class={`connection ${name}`} role="status" title={`${title}${error?.message ? `: ${error.message}` : ""}`}>
      <i aria-hidden="true" />{label}
      {state === "closed" && !lostAt && <Button kind="ghost" onClick={() => location.reload()}>Reconnect</Button>}
    </span>
  );
}

const lossNoticeMs = 1500; // a shorter loss of the connection, as during a restart, is not reported

/** Returns { lostAt, isClosed }: since when the connection is lost, once the loss has lasted for lossNoticeMs, and whether it reconnects. */
function useLoss() {
  const { lostAt, state } = useConnection(), [isLong, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (!lostAt) return undefined;
    const timer = setTimeout(() => setLong(true), lossNoticeMs);
    return () => clearTimeout(timer);
  }, [lostAt]);
  return { lostAt: isLong && lostAt ? lostAt : undefined, isClosed: state === "closed" };
}

function Branch({ place }) {
  const { branches = [] } = useBranches(place.ref);
  return (
    <Menu text={place.branch ?? "Branch"} label={`Branch ${place.branch ?? ""}`} kind="ghost branch">{(close) => branches.length ? branches.map((branch) => (
      <MenuItem key={branch} checked={branch === place.branch} onClick={() => { close(); go(addressOf({ ...place, branch, id: undefined, query: {} })); }}>{branch}</MenuItem>
    )) : <p class="menu-title">No branches yet</p>}</Menu>
  );
}

function AccountMenu() {
  const { theme, clock } = useSettings(), { data: user } = useQuery(["who"], () => session.who()), { guard, dialog } = useConfirmation(true);
  const stay = () => attempt(() => guard(async () => { await session.stay(); showToast("This browser stays signed in"); }));
  const signOutEverywhere = () => attempt(() => guard(() => session.signOutEverywhere()));
  return (<>
    <Menu icon="user" label="Appearance and account" title="Appearance and account" kind="ghost square" align="right">{(close) => (
      <>
        <p class="menu-title">{user?.email ?? "Account"}</p>
        {way && !session.stays && <MenuItem onClick={() => { close(); stay(); }}>Stay signed in</MenuItem>}
        <MenuItem onClick={() => { close(); session.signOut(); }}>Sign out</MenuItem>
        <MenuItem onClick={() => { close(); signOutEverywhere(); }}>Sign out everywhere</MenuItem>
        <p class="menu-title">Theme</p>
        {[["system", "System"], ["light", "Light"], ["dark", "Dark"]].map(([value, label]) => <MenuItem key={value} checked={theme === value} onClick={() => choose("theme", value)}>{label}</MenuItem>)}
        <p class="menu-title">Time zone</p>
        {[["local", "Local time"], ["utc", "UTC"]].map(([value, label]) => <MenuItem key={value} checked={clock === value} onClick={() => choose("clock", value)}>{label}</MenuItem>)}
      </>
    )}</Menu>
    {dialog}
  </>);
}

export function Shell({ place, project, projects, children }) {
  const [isOpen, setOpen] = useState(false), at = { ...place, id: undefined, query: {} };
  useEffect(() => setOpen(false), [location.pathname, location.search]);
  const { lostAt, isClosed } = useLoss(), isShown = environments.includes(place.env) && (place.env !== "preview" || place.branch);
  useEffect(() => { if (project && isShown) clientOf(place); }, [project, place.env, place.branch]);
  const { data: known } = useGateways(place, { enabled: Boolean(project && isShown), everyMs: 60_000 });
  const isListed = (view) => view !== "gateways" || view === place.view || known?.gateways.length > 1;
  return (
    <div class="shell">
      <a class="skip" href="#view" onClick={(event) => { event.preventDefault(); document.getElementById("view").focus(); }}>Skip to content</a>
      <header class="bar">
        <IconButton icon="menu" label="Navigation" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
        <a class="brand" href={home} aria-label="runcast: go to runs"><img src={`${base}/dashboard/icon.svg`} alt="" width="22" height="22" /><span>runcast</span></a>
        <Menu text={project?.name ?? "Projects"} label={`Project ${project?.name ?? ""}`} kind="ghost">{(close) => projects.map((one) => (
          <MenuItem key={one.externalRef} checked={one === project} onClick={() => { close(); go(addressOf({ ref: one.externalRef, view: "runs" })); }}><span>{one.name}<br /><span class="dim">{one.organization.title}</span></span></MenuItem>
        ))}</Menu>
        {project && place.env && <>
          <Menu text={place.env} label={`Environment ${place.env}`} kind={`ghost env ${place.env}`}>{(close) => environments.map((env) => (
            <MenuItem key={env} checked={env === place.env} onClick={() => { close(); go(addressOf({ ...at, env, branch: undefined })); }}>{env}</MenuItem>
          ))}</Menu>
          {place.env === "preview" && <Branch place={place} />}
        </>}
        <span class="gap" />
        {project && isShown && <Connection place={place} />}
        <AccountMenu />
      </header>
      <nav class={`side ${isOpen ? "open" : ""}`} aria-label="Views">
        {project && place.env && Object.entries(views).filter(([view]) => isListed(view)).map(([view, { label, icon }]) => (
          <a key={view} href={addressOf({ ...at, view })} aria-current={place.view === view ? "page" : undefined}><Icon name={icon} />{label}</a>
        ))}
      </nav>
      <main id="view" tabIndex={-1} class={lostAt ? "stale" : ""}>
        {lostAt && <div class="lost" role="status">{isClosed ? <><span>The gateway closed the connection at <Time at={lostAt} />. This page is out of date.</span><Button kind="small" onClick={() => location.reload()}>Reconnect</Button></>
          : <><span class="spinner" aria-hidden="true" /><span>The gateway has not responded since <Time at={lostAt} />. This page may be out of date; it reconnects by itself.</span></>}</div>}
        {children}
      </main>
    </div>
  );
}
