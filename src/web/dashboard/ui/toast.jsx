// toast.jsx - short messages about what has just happened, at the edge of the page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Emitter } from "../lib/emitter.js";

const toastEvents = new Emitter();
let ids = 0;

/** Shows a short message. tone: "good", or "bad", which is shown for longer. */
export const showToast = (text, tone = "good") => toastEvents.emit("toast", { id: ++ids, text, tone });

export function Toasts() {
  const [toasts, setToasts] = useState([]);
  useEffect(() => toastEvents.on("toast", (toast) => {
    setToasts((all) => [...all.slice(-3), toast]);
    setTimeout(() => setToasts((all) => all.filter(({ id }) => id !== toast.id)), toast.tone === "bad" ? 8000 : 3500);
  }), []);
  // A dialog covers everything except what is shown after it.
  const box = useRef(), newest = toasts.at(-1)?.id;
  useLayoutEffect(() => {
    if (!box.current.showPopover) return;
    if (box.current.matches(":popover-open")) box.current.hidePopover();
    if (newest) box.current.showPopover();
  }, [newest]);
  return <div class="toasts" ref={box} popover="manual" role="status" aria-live="polite">{toasts.map(({ id, text, tone }) => <div key={id} class={`toast ${tone}`}>{text}</div>)}</div>;
}

/** Executes an action and shows a toast with its result. Returns true if it succeeded. */
export async function attempt(action, done) {
  try {
    const result = await action();
    if (done) showToast(typeof done === "function" ? done(result) : done);
    return true;
  } catch (error) {
    showToast(error.message, "bad");
    return false;
  }
}
