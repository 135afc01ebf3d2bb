// run_id.js - ids of runs as positions in their list.
//
// Ids begin with the time of creation, and lists are sorted by id; a cursor is an id in base64url.
const prefix = "run_", highest = "z", length = 21;

export const cursorOf = (id) => btoa(id).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** Reads "run_217d", or without "run_"; undefined if it cannot be the beginning of an id. */
export function readBeginning(text) {
  const rest = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return /^[0-9a-z]{1,21}$/.test(rest) ? prefix + rest : undefined;
}

/** A cursor before all runs whose ids begin like this: the next run begins so, or none does. */
export const cursorBefore = (beginning) => cursorOf(`${beginning.padEnd(prefix.length + length, highest)}${highest}`);
