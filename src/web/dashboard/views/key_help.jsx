// key_help.jsx - the list of keys for the table of runs.
import { Dialog } from "../ui/basic.jsx";

const keys = [["j  ↓", "next run"], ["k  ↑", "previous run"], ["Enter", "open the run"], ["x", "select it; a click with Shift selects up to there"], ["/", "search"], ["Esc", "let go of everything; in a run: back"], ["?", "this list"]];

export function KeyHelp({ onClose }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">{keys.map(([key, text]) => <div key={key}><dt>{key.split("  ").map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{text}</dd></div>)}</dl>
    </Dialog>
  );
}
