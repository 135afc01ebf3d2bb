// emitter.js - registers listeners of events and calls them.
import { useLayoutEffect, useState } from "preact/hooks";

export class Emitter {
  #listeners = new Map();
  count = 0; // number of emitted events

  /** Returns a function that removes the listener. */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    const all = this.#listeners.get(event);
    all.add(listener);
    return () => all.delete(listener);
  }

  emit(event, value) {
    this.count++;
    for (const listener of [...this.#listeners.get(event) ?? []]) listener(value);
  }
}

/** Redraws a component after each event, also after one between its first drawing and its listening. */
export function useEvent(emitter, event) {
  const [, redraw] = useState(0), { count } = emitter;
  useLayoutEffect(() => {
    const draw = () => redraw((draws) => draws + 1);
    if (emitter.count !== count) draw();
    return emitter.on(event, draw);
  }, [emitter, event]);
}
