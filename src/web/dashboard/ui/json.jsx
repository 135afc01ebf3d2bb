// json.jsx - a JSON value as a collapsible tree; long parts are truncated.
import { useState } from "preact/hooks";

import { Copy } from "./basic.jsx";

const openDepth = 2, shownMembers = 100, shownText = 2000;

/** Characters that are invisible or change the text direction; shown as JSON escapes. */
const invisible = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, short = { "\n": "\\n\n", "\t": "\\t", "\r": "\\r" };
const visible = (text) => text.replace(invisible, (c) => short[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const kindOf = (value) => value === null ? "null" : JSON.isRawJSON?.(value) ? "number" : Array.isArray(value) ? "array" : typeof value;

function Leaf({ value }) {
  const [isWhole, setWhole] = useState(false), kind = kindOf(value);
  if (kind !== "string") return <span class={`json-${kind}`}>{JSON.stringify(value)}</span>;
  const isLong = value.length > shownText && !isWhole;
  return (
    <span class="json-string">"{visible(isLong ? value.slice(0, shownText) : value)}"
      {isLong && <button type="button" class="more" onClick={() => setWhole(true)}>… {value.length.toLocaleString("en")} characters</button>}
    </span>
  );
}

function Node({ name, value, depth }) {
  const kind = kindOf(value), isTree = kind === "object" || kind === "array";
  const [isOpen, setOpen] = useState(depth < openDepth), [shown, setShown] = useState(shownMembers);
  const label = name !== undefined && <span class="json-name">{visible(name)}: </span>;
  if (!isTree) return <li>{label}<Leaf value={value} /></li>;
  const entries = Object.entries(value), [begin, end] = kind === "array" ? "[]" : "{}";
  if (!entries.length) return <li>{label}{begin}{end}</li>;
  return (
    <li>
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}{begin}{!isOpen && <span class="dim"> {entries.length} {entries.length === 1 ? "item" : "items"} {end}</span>}
      </button>
      {isOpen && <ul>{entries.slice(0, shown).map(([key, member]) => <Node key={key} name={kind === "array" ? undefined : key} value={member} depth={depth + 1} />)}
        {entries.length > shown && <li><button type="button" class="more" onClick={() => setShown(shown + 1000)}>… {entries.length - shown} more</button></li>}
      </ul>}
      {isOpen && end}
    </li>
  );
}

export function Json({ value, label }) {
  if (value === undefined) return <p class="dim">No {label ?? "value"}</p>;
  return (
    <div class="json" role="group" aria-label={label}>
      <Copy text={JSON.stringify(value, null, 2)} label={`Copy ${label ?? "value"}`} />
      <ul class="json-root"><Node value={value} depth={0} /></ul>
    </div>
  );
}
