// emitter.js - who listens to what.
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
