// failure.jsx - an error with its stack and a button that copies it. Frames of packages are folded.
import { useState } from "preact/hooks";

import { framesOf, headlineOf, introOf } from "../lib/errors.js";
import { Copy } from "./basic.jsx";

/** A frame: its function and its file, whose path begins at src or node_modules. */
function Frame({ line }) {
  const [, name, place] = /^at (?:(.*) \()?([^()]*)\)?$/.exec(line) ?? [, , line.replace(/^at /, "")];
  const at = Math.max(place.lastIndexOf("/src/"), place.lastIndexOf("/node_modules/")), short = at < 0 ? place : place.slice(at + 1);
  return <li title={place}>{name && <b>{name}</b>} <span>{short}</span></li>;
}

function Foreign({ lines }) {
  const [isOpen, setOpen] = useState(false);
  return <>
    <li class="fold"><button type="button" class="more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{isOpen ? "Hide" : "Show"} {lines.length} {lines.length === 1 ? "frame" : "frames"} of packages</button></li>
    {isOpen && lines.map((line, at) => <Frame key={at} line={line} />)}
  </>;
}

/** limit: the task's maxDuration, as text. */
export function Failure({ error, limit }) {
  const { text, code, detail, isOutput } = headlineOf(error, limit), stack = error.stackTrace ?? "";
  const intro = isOutput ? stack.trim() : stack && introOf(stack, error), groups = isOutput ? [] : framesOf(stack);
  return (
    <section class="failure" aria-label="Error">
      <header><h2>{text}</h2>{code && <code class="mini" title="Internal error code">{code}</code>}<Copy text={code ? [text, detail, stack].filter(Boolean).join("\n") : stack || text} label="Copy error" /></header>
      {detail && <p>{detail}</p>}
      {intro && <pre class="stack-trace" tabIndex={0}>{intro}</pre>}
      {groups.length > 0 && <ol class="frames" tabIndex={0} aria-label="Stack trace">{groups.map(({ isForeign, lines }, at) => isForeign ? <Foreign key={at} lines={lines} /> : lines.map((line, index) => <Frame key={`${at}/${index}`} line={line} />))}</ol>}
    </section>
  );
}
