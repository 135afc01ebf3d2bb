// logs.jsx - the logs of a run and its descendants: search, levels, follow, copy and download.
//
// There may be ten thousand lines of any height, so they are drawn in chunks. A chunk far from the screen is an empty box
// with the height that the chunk had, or is expected to have.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { clockTime, wholeTime } from "../lib/time.js";
import { logsOf } from "../lib/spans.js";
import { Button, Menu, MenuItem } from "../ui/basic.jsx";
import { Json } from "../ui/json.jsx";
import { attempt } from "../ui/toast.jsx";
import { Missing } from "./trace.jsx";

const chunkLines = 100, lineHeight = 26, marginPx = 800, nearEnd = 40;
const levels = { ERROR: ["Error", "bad"], WARN: ["Warn", "wait"], INFO: ["Info", "run"], LOG: ["Log", "plain"], DEBUG: ["Debug", "off"] };
const levelOf = ({ level }) => Object.hasOwn(levels, level) ? level : "LOG";

const valueText = (value) => typeof value === "string" ? value : JSON.stringify(value);
const isStack = (name) => name === "stack";

/** A log as one line of text, for search, copy and download. */
const textOf = ({ at, level, message, data, run }, hasDescendants) => [new Date(at).toISOString(), level.padEnd(5), hasDescendants && run.taskIdentifier, message, Object.keys(data).length > 0 && JSON.stringify(data)].filter(Boolean).join(" ");

/** Text with the found parts marked. */
function Marked({ text, found }) {
  if (!found) return text;
  const parts = [], lower = text.toLowerCase();
  let from = 0;
  for (let at; (at = lower.indexOf(found, from)) >= 0 && parts.length < 100; from = at + found.length) parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + found.length)}</mark>);
  return [...parts, text.slice(from)];
}

function Line({ log, found, hasDescendants, place }) {
  const [isOpen, setOpen] = useState(false), members = Object.entries(log.data), [label, tone] = levels[levelOf(log)];
  return (
    <li class={`log-row ${tone}`}>
      <button type="button" class="log-main" aria-expanded={members.length ? isOpen : undefined} onClick={() => members.length && setOpen(!isOpen)}>
        <time title={wholeTime(log.at)}>{clockTime(log.at, { ms: true })}</time>
        <span class="level">{label}</span>
        {hasDescendants && <span class="task">{log.run.taskIdentifier}</span>}
        <span class="text"><Marked text={log.message} found={found} />{members.filter(([name]) => !isStack(name)).map(([name, value]) => <span key={name} class="member"> <Marked text={name} found={found} />=<i><Marked text={valueText(value).slice(0, 500)} found={found} /></i></span>)}</span>
      </button>
      {isOpen && <div class="log-open">{typeof log.data.stack === "string" && members.length === 1 ? <pre class="stack-trace" tabIndex={0}>{log.data.stack}</pre> : <Json value={log.data} label="data" />}
        {hasDescendants && <a href={addressOf({ ...place, view: "runs", id: log.run.id, query: {} })}>Open run {log.run.id}</a>}</div>}
    </li>
  );
}

/** Draws its lines only while they are near the screen. The first and the last chunk are drawn at once, since one of them is
 * shown first. */
function Chunk({ lines, scroller, isAtEdge, ...rest }) {
  const box = useRef(), [isNear, setNear] = useState(isAtEdge), height = useRef();
  useEffect(() => {
    const observer = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting && box.current) height.current = box.current.getBoundingClientRect().height;
      setNear(isIntersecting);
    }, { root: scroller.current, rootMargin: `${marginPx}px 0px` });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return <li class="log-chunk" ref={box} style={isNear ? undefined : { height: `${height.current ?? lines.length * lineHeight}px` }}>{isNear && <ol>{lines.map((log) => <Line key={log.key} log={log} {...rest} />)}</ol>}</li>;
}

/** Returns the logs that match, and their chunks, which stay the same objects until the logs or the search change. */
function useFound(logs, text, hidden) {
  return useMemo(() => {
    const found = text.trim().toLowerCase();
    const lines = logs.filter((log) => !hidden.includes(levelOf(log)) && (!found || textOf(log, true).toLowerCase().includes(found)));
    return { found, lines, chunks: Array.from({ length: Math.ceil(lines.length / chunkLines) }, (_, at) => lines.slice(at * chunkLines, (at + 1) * chunkLines)) };
  }, [logs, text, hidden.join()]);
}

/** Keeps the last line in view as new lines arrive, until the user scrolls up. */
function useFollow(isLive, lines) {
  const scroller = useRef(), [isFollowing, setFollowing] = useState(isLive);
  useLayoutEffect(() => { if (isFollowing && isLive) scroller.current.scrollTop = scroller.current.scrollHeight; }, [lines, isFollowing]);
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = scroller.current;
    if (isLive) setFollowing(scrollTop + clientHeight > scrollHeight - nearEnd);
  };
  return { scroller, isFollowing, setFollowing, onScroll };
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" })), link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function Logs({ place, trace, isLive, tabs }) {
  const [text, setText] = useState(""), [hidden, setHidden] = useState([]), [isWrapped, setWrapped] = useState(true);
  const logs = useMemo(() => logsOf(trace.root), [trace.root]), { found, lines, chunks } = useFound(logs, text, hidden);
  const hasDescendants = useMemo(() => logs.some(({ run }) => run.id !== trace.root.run.id), [logs]), { scroller, isFollowing, setFollowing, onScroll } = useFollow(isLive, lines);
  const count = (level) => logs.filter((log) => levelOf(log) === level).length, all = () => lines.map((log) => textOf(log, hasDescendants)).join("\n");
  const toggle = (level) => setHidden(hidden.includes(level) ? hidden.filter((one) => one !== level) : [...hidden, level]);
  return (
    <section class="panel logs" aria-label="Logs">
      <header>{tabs}<span class="dim" role="status">{lines.length === logs.length ? `${logs.length.toLocaleString("en")} ${logs.length === 1 ? "line" : "lines"}` : `${lines.length.toLocaleString("en")} of ${logs.length.toLocaleString("en")} lines`}</span></header>
      <Missing root={trace.root} />
      <div class="log-tools">
        <input type="search" aria-label="Search logs" placeholder="Search logs" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Menu text={hidden.length ? `${Object.keys(levels).length - hidden.length} levels` : "All levels"} label="Levels">{() => Object.entries(levels).map(([level, [label]]) => <MenuItem key={level} checked={!hidden.includes(level)} onClick={() => toggle(level)}>{label} <span class="dim">{count(level).toLocaleString("en")}</span></MenuItem>)}</Menu>
        <Button aria-pressed={isWrapped} onClick={() => setWrapped(!isWrapped)}>Wrap</Button>
        {isLive && <Button aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>Follow</Button>}
        <span class="gap" />
        <Button icon="copy" disabled={!lines.length} onClick={() => attempt(() => navigator.clipboard.writeText(all()), `Copied ${lines.length.toLocaleString("en")} ${lines.length === 1 ? "line" : "lines"}`)}>Copy</Button>
        <Button icon="down" disabled={!lines.length} onClick={() => download(`${trace.root.run.id}.log`, `${all()}\n`)}>Download</Button>
      </div>
      <div class={`log-scroll ${isWrapped ? "wrapped" : ""} ${hasDescendants ? "family" : ""}`} ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label="Lines">
        {lines.length > 0 ? <ol class="log-lines">{chunks.map((chunk, at) => <Chunk key={`${found}/${hidden.join()}/${at}`} lines={chunk} isAtEdge={at === 0 || at === chunks.length - 1} scroller={scroller} found={found} hasDescendants={hasDescendants} place={place} />)}</ol>
          : <p class="dim pad">{logs.length ? "No lines match" : isLive ? "Logs appear here as the task executes." : "No logs"}</p>}
      </div>
      {trace.isCut && <p class="dim pad">This run has more descendants than are shown here. Each has its own logs.</p>}
    </section>
  );
}
