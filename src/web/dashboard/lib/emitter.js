// emitter.js - who listens to what.
import { useLayoutEffect, useState } from "preact/hooks";

export class Emitter {
  #listeners = new Map();
  count = 0; // of what was emitted

  /** Gives the function that ends it. */
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

/** Draws a component anew after each event; also after one that came between its drawing and its listening. */
export function useEvent(emitter, event) {
  const [, turn] = useState(0), { count } = emitter;
  useLayoutEffect(() => {
    const draw = () => turn((turns) => turns + 1);
    if (emitter.count !== count) draw();
    return emitter.on(event, draw);
  }, [emitter, event]);
}
