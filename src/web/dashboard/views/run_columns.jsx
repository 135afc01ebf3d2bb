// run_columns.jsx - the columns of the table of runs, and the menu that chooses among them.
import { summaryOf, useDetails } from "../lib/details.js";
import { addressOf } from "../lib/place.js";
import { choose, useSettings } from "../lib/settings.js";
import { age, clockTime, duration, runDuration, wholeTime } from "../lib/time.js";
import { Menu, MenuItem, Status } from "../ui/basic.jsx";

const shownTags = 2;

function Tags({ run, place }) {
  const { tags = [] } = run;
  return <>{tags.slice(0, shownTags).map((tag, at) => <a key={at} class="tag" tabIndex={-1} href={addressOf({ ...place, view: "runs", query: { tag } })}>{tag}</a>)}{tags.length > shownTags && <span class="dim" title={tags.join(", ")}>+{tags.length - shownTags}</span>}</>;
}

function Source({ run, place }) {
  const details = useDetails(place, run.id);
  return details?.parent ?? (details?.schedule ? "Schedule" : run.batchId ? "Batch" : details ? "API" : "");
}

function Payload({ run, place }) {
  const text = summaryOf(useDetails(place, run.id), 300);
  return <code title={text}>{text}</code>;
}

const cost = ({ costInCents = 0, baseCostInCents = 0 }) => costInCents + baseCostInCents > 0 ? `${(costInCents + baseCostInCents).toFixed(3)} ¢` : "";

/** id -> title, width in the grid, and cell; isWide: only on wide screens. */
export const columns = {
  state: { title: "Status", width: "clamp(132px, 12.6vw, 182px)", class: "state", cell: ({ run }) => <Status status={run.status} /> },
  tags: { title: "Tags", width: "minmax(72px, 1.5fr)", class: "tags", cell: Tags },
  source: { title: "Source", width: "minmax(0, 1fr)", class: "dim-cell", cell: Source },
  payload: { title: "Payload", width: "minmax(0, 2fr)", class: "dim-cell", cell: Payload },
  queue: { title: "Queue", width: "minmax(0, 1fr)", class: "dim-cell", cell: ({ run }) => run.queue },
  version: { title: "Version", width: "104px", class: "dim-cell", cell: ({ run }) => run.version ?? "–" },
  attempts: { title: "Attempts", width: "82px", class: "number", cell: ({ run }) => run.attemptCount || "" },
  cost: { title: "Cost", width: "84px", class: "number", cell: ({ run }) => cost(run) },
  duration: { title: "Duration", width: "100px", class: "number", cell: ({ run, now }) => duration(runDuration(run, now)) },
  created: { title: "Created", width: "134px", class: "number", cell: ({ run }) => clockTime(run.createdAt) },
  age: { title: "Age", width: "78px", class: "number age", cell: ({ run, now }) => <span onPointerEnter={(event) => { event.currentTarget.title = wholeTime(run.createdAt); }}>{age(now - new Date(run.createdAt))}</span> },
};
const optional = Object.keys(columns).filter((id) => id !== "state");

/** The chosen columns in their order, and the tracks of the grid. */
export function useColumns() {
  const { columns: chosen } = useSettings(), ids = ["state", ...optional.filter((id) => chosen.includes(id))];
  return { ids, tracks: `40px minmax(200px, 2fr) ${ids.map((id) => columns[id].width).join(" ")}` };
}

export function ColumnMenu() {
  const { columns: chosen } = useSettings();
  const toggle = (id) => choose("columns", chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return <Menu icon="columns" label="Columns" title="Columns" kind="ghost square wide-only" align="right">{() => <><p class="menu-title">Columns</p>{optional.map((id) => <MenuItem key={id} checked={chosen.includes(id)} onClick={() => toggle(id)}>{columns[id].title}</MenuItem>)}</>}</Menu>;
}
