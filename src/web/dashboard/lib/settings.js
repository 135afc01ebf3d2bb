// settings.js - the user's choices for this browser: colors, how times are written, and the columns of runs.
import { Emitter, useEvent } from "./emitter.js";

const changes = new Emitter();
const defaults = { theme: "system", clock: "local", columns: ["tags", "version", "duration", "age"] };

/** If storage is forbidden, the choice applies to this page only. */
const chosen = { ...defaults };
try { Object.assign(chosen, JSON.parse(localStorage.getItem("runcast.settings"))); } catch { /* none */ }

export const settings = () => chosen;

function showTheme() {
  const { theme } = chosen;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
showTheme();

export function choose(name, value) {
  chosen[name] = value;
  try { localStorage.setItem("runcast.settings", JSON.stringify(chosen)); } catch { /* not kept */ }
  showTheme();
  changes.emit("change");
}

export function useSettings() {
  useEvent(changes, "change");
  return chosen;
}
