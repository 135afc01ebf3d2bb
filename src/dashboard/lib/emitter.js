// emitter.js - who listens to what.
import { useLayoutEffect, useState } from "preact/hooks";

export class Emitter {
  #listeners = new Map();

  /** Gives the function that ends it. */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    const all = this.#listeners.get(event);
    all.add(listener);
    return () => all.delete(listener);
  }

  emit(event, value) {
    for (const listener of [...this.#listeners.get(event) ?? []]) listener(value);
  }
}

/** What read gives, drawn anew after each event; also after one that came before the component listened. */
export function useEvent(emitter, event, read) {
  const [value, setValue] = useState(read);
  useLayoutEffect(() => {
    const look = () => setValue(read());
    look();
    return emitter.on(event, look);
  }, [emitter, event]);
  return value;
}
