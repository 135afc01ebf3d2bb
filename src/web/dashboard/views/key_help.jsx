// key_help.jsx - the list of keys for the table of runs.
import { Dialog } from "../ui/basic.jsx";

const keys = [["j  ↓", "Next run"], ["k  ↑", "Previous run"], ["Enter", "Open run"], ["x", "Select run; Shift+click selects a range"], ["/", "Search"], ["Esc", "Clear selection; in a run: go back"], ["?", "Show shortcuts"]];

export function KeyHelp({ onClose }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">{keys.map(([key, text]) => <div key={key}><dt>{key.split("  ").map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{text}</dd></div>)}</dl>
    </Dialog>
  );
}
