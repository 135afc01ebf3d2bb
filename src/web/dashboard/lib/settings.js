// settings.js - the user's choices in this browser: theme, time zone, and columns of the table of runs.
import { Emitter, useEvent } from "./emitter.js";

const changes = new Emitter();
const defaults = { theme: "system", clock: "local", columns: ["tags", "version", "duration", "age"] };

/** The current choices. If storage is forbidden, they last as long as the page. */
const chosen = { ...defaults };
try { Object.assign(chosen, JSON.parse(localStorage.getItem("runcast.settings"))); } catch { /* no valid settings are stored */ }

export const settings = () => chosen;

function showTheme() {
  const { theme } = chosen;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
showTheme();

export function choose(name, value) {
  chosen[name] = value;
  try { localStorage.setItem("runcast.settings", JSON.stringify(chosen)); } catch { /* storage is full or forbidden */ }
  showTheme();
  changes.emit("change");
}

export function useSettings() {
  useEvent(changes, "change");
  return chosen;
}
