// basic.jsx - small components that all views use.
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { labelOf, toneOf } from "../lib/status.js";
import { useSettings } from "../lib/settings.js";
import { ago, clockTime, useNow, wholeTime } from "../lib/time.js";
import { Icon } from "./icons.jsx";
import { showToast } from "./toast.jsx";

export function Button({ icon, kind = "plain", children, busy, ...rest }) {
  return (
    <button type="button" class={`button ${kind}`} disabled={busy} {...rest}>
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

/** A button with an icon only; its label is for screen readers and the tooltip. */
export function IconButton({ icon, label, ...rest }) {
  return <button type="button" class="button ghost square" aria-label={label} title={label} {...rest}><Icon name={icon} /></button>;
}

export function Status({ status, label = labelOf(status), tone = toneOf(status) }) {
  return <span class={`status ${tone}`}><i aria-hidden="true" />{label}</span>;
}

export function Tag({ children, href }) {
  return href ? <a class="tag" href={href}>{children}</a> : <span class="tag">{children}</span>;
}

/** A time, with the complete time as its title. */
export function Time({ at, relative = false, ms = false }) {
  useSettings();
  const now = useNow(relative && Boolean(at));
  if (!at) return <span class="dim">–</span>;
  return <time dateTime={new Date(at).toISOString()} title={wholeTime(at)}>{relative ? ago(at, now) : clockTime(at, { ms })}</time>;
}

export function Copy({ text, label = "Copy" }) {
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); showToast("Copied"); }
    catch { showToast("Copy failed: the browser denied access to the clipboard", "bad"); }
  };
  return <IconButton icon="copy" label={label} onClick={copy} />;
}

/** An id, with a button that copies it. isShort: only its end is shown. */
export function Id({ children, isShort = false }) {
  return <span class="id"><code class={isShort ? "nowrap" : undefined} title={isShort ? children : undefined}>{isShort ? `…${children.slice(-8)}` : children}</code><Copy text={children} label={`Copy ${children}`} /></span>;
}

/** Stands in place of missing content and names the next step. isPage: its title is the only heading of the page. */
export function Empty({ title, children, isPage = false }) {
  const Heading = isPage ? "h1" : "h2";
  return <div class="empty"><Heading>{title}</Heading><div>{children}</div></div>;
}

export function Problem({ error, retry }) {
  if (!error) return null;
  return (
    <div class="problem" role="alert">
      <strong>{error.status === 404 ? "Not found" : error.status === 403 || error.status === 401 ? "Access denied" : error.status ? "Request failed" : "Gateway unreachable"}</strong>
      <span>{error.message}</span>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

export function Loading({ what = "Loading" }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => { const timer = setTimeout(() => setSlow(true), 250); return () => clearTimeout(timer); }, []);
  return <div class="loading" role="status">{isSlow && <><span class="spinner" aria-hidden="true" /> {what}…</>}</div>;
}

/** A labeled input; hint: what is expected; error: what is wrong. */
export function Field({ label, hint, error, children, as: As = "input", ...rest }) {
  const id = useId(), hintId = `${id}-hint`;
  return (
    <div class={`field ${error ? "wrong" : ""}`}>
      <label for={id}>{label}</label>
      {As === "select"
        ? <select id={id} aria-describedby={hintId} {...rest}>{children}</select>
        : <As id={id} aria-describedby={hintId} aria-invalid={error ? "true" : undefined} autocomplete="off" spellcheck={false} {...rest} />}
      <p id={hintId} class={error ? "error" : "hint"}>{error ?? hint}</p>
    </div>
  );
}

/** A modal dialog; Esc and a click outside close it, and the focus returns. */
export function Dialog({ title, onClose, children, actions, wide = false }) {
  const dialog = useRef(), titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={dialog} class={wide ? "wide" : ""} aria-labelledby={titleId} onCancel={(event) => { event.preventDefault(); onClose(); }}
      onClick={(event) => { if (event.target === dialog.current) onClose(); }}>
      <form method="dialog" onSubmit={(event) => event.preventDefault()}>
        <header><h2 id={titleId}>{title}</h2><IconButton icon="close" label="Close" onClick={onClose} /></header>
        <div class="body">{children}</div>
        {actions && <footer>{actions}</footer>}
      </form>
    </dialog>
  );
}

/** A button with a menu below it. children(close) are the items. */
export function Menu({ label, icon, text, kind = "plain", align = "left", children, title }) {
  const [isOpen, setOpen] = useState(false), box = useRef();
  useEffect(() => {
    if (!isOpen) return undefined;
    const outside = (event) => { if (!box.current.contains(event.target)) setOpen(false); };
    const key = (event) => {
      if (event.key === "Escape") { event.stopPropagation(); setOpen(false); box.current.querySelector("button").focus(); }
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const items = [...box.current.querySelectorAll(".menu :is(button, input, a)")], at = items.indexOf(document.activeElement);
      event.preventDefault();
      items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
    };
    document.addEventListener("pointerdown", outside);
    box.current.addEventListener("keydown", key);
    box.current.querySelector(".menu :is(input, button, a)")?.focus();
    const element = box.current;
    return () => { document.removeEventListener("pointerdown", outside); element.removeEventListener("keydown", key); };
  }, [isOpen]);
  return (
    <div class="menu-box" ref={box}>
      <button type="button" class={`button ${kind}`} aria-expanded={isOpen} aria-haspopup="true" aria-label={label} title={title} onClick={() => setOpen(!isOpen)}>
        {icon && <Icon name={icon} />}{text && <span>{text}</span>}{text && <Icon name="chevron" size={12} />}
      </button>
      {isOpen && <div class={`menu ${align}`}>{children(() => { setOpen(false); box.current?.querySelector("button").focus(); })}</div>}
    </div>
  );
}

export function MenuItem({ checked, children, ...rest }) {
  return (
    <button type="button" class="item" aria-pressed={checked} {...rest}>
      {checked !== undefined && <span class="mark">{checked && <Icon name="check" size={14} />}</span>}<span>{children}</span>
    </button>
  );
}

/** A table whose columns are [title, cell(row), class]. chosen: the key of a row to emphasize. */
export function Table({ label, columns, rows, rowKey = "id", chosen }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr>{columns.map(([title, , name]) => <th key={title} scope="col" class={name}>{name === "actions-cell" ? <span class="hidden">{title}</span> : title}</th>)}</tr></thead>
        <tbody>{rows.map((row) => (
          <tr key={row[rowKey]} class={chosen !== undefined && row[rowKey] === chosen ? "chosen" : undefined}>
            {columns.map(([title, cell, name]) => <td key={title} class={name} data-title={name === "actions-cell" ? undefined : title}>{cell(row)}</td>)}
          </tr>
        ))}</tbody>
      </table>
    </div>
  );
}

/** Features that a version declares and the gateway lacks. */
export function Warnings({ warnings = [] }) {
  return warnings.map(({ feature, names, message }) => (
    <div key={feature} class="problem" role="note" aria-label="Warning"><strong>Not supported</strong><span>{message}{names.some(Boolean) && <>: {names.filter(Boolean).join(", ")}</>}</span></div>
  ));
}

/** The warning about one task. */
export const warningOf = (warnings = [], slug) => warnings.find(({ feature, names }) => feature !== "prompts" && names.includes(slug));

/** Names and values in two columns. Rows without a value are left out. */
export function Facts({ rows }) {
  return (
    <dl class="facts">
      {rows.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

/** A number with its name above and a note below; a link if it has an address. */
export function Figure({ label, value, note, tone = "", href }) {
  const content = <><span>{label}</span><b>{value ?? "–"}</b><small>{note ?? "\u00a0"}</small></>;
  return href ? <a class={`figure ${tone}`} href={href}>{content}</a> : <div class={`figure ${tone}`}>{content}</div>;
}

export function Page({ title, actions, children, subtitle, kind = "" }) {
  useEffect(() => { document.title = typeof title === "string" ? `${title} · runcast` : document.title; }, [title]);
  return (
    <div class={`page ${kind}`}>
      <header class="page-head"><div><h1>{title}</h1>{subtitle && <p class="subtitle">{subtitle}</p>}</div>{actions && <div class="actions">{actions}</div>}</header>
      {children}
    </div>
  );
}
