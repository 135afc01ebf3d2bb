// Random numbers from a seed, so that a failure can be reproduced.

export class Random {
  constructor(seed) { this.state = seed >>> 0; }

  /** A number from 0 to 1, without 1 (mulberry32). */
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 to count - 1. */
  below(count) { return Math.floor(this.next() * count); }
  chance(probability) { return this.next() < probability; }
  pick(array) { return array[this.below(array.length)]; }

  /** At least one, and at most count, different elements. */
  some(array, count) { return [...new Set(Array.from({ length: count }, () => this.pick(array)))]; }

  /** Returns one of the names of { name: weight, … }. */
  weighted(weights) {
    let at = this.next() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
    return Object.entries(weights).find(([, weight]) => (at -= weight) < 0)[0];
  }
}

/** Returns the variable SEED, or a new seed, and logs it. */
export function chooseSeed(t) {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`SEED=${seed}`);
  return seed;
}
