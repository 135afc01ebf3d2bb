// editor.jsx - a text field for JSON with colors: a textarea without color above its highlighted text.
//
// Both are in one cell of a grid and have the same font and lines, so the text sets the height of both, and neither scrolls.
import { useMemo } from "preact/hooks";

const coloredMax = 50_000; // characters; longer text has no colors
const token = /("(?:[^"\\\n]|\\.)*"?)(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|\b(true|false|null)\b|([^"\d\w-]+|.)/gs;

function colored(text) {
  if (text.length > coloredMax) return text;
  return [...text.matchAll(token)].map(([all, string, colon, number, word], at) => {
    if (string !== undefined) return <span key={at}><span class={colon ? "json-name" : "json-string"}>{string}</span>{colon}</span>;
    if (number !== undefined) return <span key={at} class="json-number">{number}</span>;
    if (word !== undefined) return <span key={at} class={word === "null" ? "json-null" : "json-boolean"}>{word}</span>;
    return all;
  });
}

/** Enter keeps the indentation. Tab is not handled, so that it still leaves the field. */
function indent(event, onInput) {
  if (event.key !== "Enter" || event.shiftKey || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  const { currentTarget: field } = event, { selectionStart: at, value } = field, line = value.slice(value.lastIndexOf("\n", at - 1) + 1, at);
  const more = /[[{]\s*$/.test(line) ? "  " : "", spaces = /^\s*/.exec(line)[0] + more;
  if (!spaces) return;
  event.preventDefault();
  field.setRangeText(`\n${spaces}`, at, field.selectionEnd, "end");
  onInput({ currentTarget: field });
}

/** Like a textarea; use it as the `as` of a Field. */
export function JsonEditor({ value, onInput, rows = 12, ...rest }) {
  const text = useMemo(() => colored(value), [value]);
  return (
    <div class="editor" style={{ "--rows": rows }}>
      <pre aria-hidden="true">{text}{"\n"}</pre>
      <textarea {...rest} value={value} onInput={onInput} onKeyDown={(event) => indent(event, onInput)} />
    </div>
  );
}
