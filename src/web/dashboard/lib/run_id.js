// run_id.js - makes cursors of the list of runs from run ids.
//
// Ids begin with the time of creation, and lists are sorted by id; a cursor is an id in base64url.
const prefix = "run_", highest = "z", length = 21;

export const cursorOf = (id) => btoa(id).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** Returns the beginning of an id, such as "run_217d", from a text with or without "run_"; undefined if no id begins so. */
export function readBeginning(text) {
  const rest = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return /^[0-9a-z]{1,21}$/.test(rest) ? prefix + rest : undefined;
}

/** A cursor before all runs whose ids have this beginning. If the next run in the list does not have it, no run has it. */
export const cursorBefore = (beginning) => cursorOf(`${beginning.padEnd(prefix.length + length, highest)}${highest}`);
