// toast.jsx - short messages about what has just happened, at the edge of the page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Emitter } from "../lib/emitter.js";

const said = new Emitter();
let ids = 0;

/** tone: "good", or "bad", which stays longer. */
export const say = (text, tone = "good") => said.emit("say", { id: ++ids, text, tone });

export function Toasts() {
  const [toasts, setToasts] = useState([]);
  useEffect(() => said.on("say", (toast) => {
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

/** Does something and reports the result. Returns true if it succeeded. */
export async function attempt(action, done) {
  try {
    const result = await action();
    if (done) say(typeof done === "function" ? done(result) : done);
    return true;
  } catch (error) {
    say(error.message, "bad");
    return false;
  }
}
