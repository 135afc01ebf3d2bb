// run_id.js - ids of runs as places in their list: ids begin with the time of creation, the list is in
// their order, and a cursor of the list is an id in base64url.
const prefix = "run_", highest = "z", length = 21;

export const cursorOf = (id) => btoa(id).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** "run_217d", or without "run_"; undefined when it cannot be the beginning of an id. */
export function readBeginning(text) {
  const rest = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return /^[0-9a-z]{1,21}$/.test(rest) ? prefix + rest : undefined;
}

/** The cursor in front of all runs whose ids begin so: what follows it begins so, or none does. */
export const cursorBefore = (beginning) => cursorOf(`${beginning.padEnd(prefix.length + length, highest)}${highest}`);
