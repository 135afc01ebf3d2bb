// runs.jsx - the live table of runs, its filters, and bulk actions.
import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { useEvent } from "../lib/emitter.js";
import { readFilter, writeFilter } from "../lib/filter.js";
import { useConnection } from "../lib/live.js";
import { addressOf, go } from "../lib/place.js";
import { RunList } from "../lib/run_list.js";
import { session } from "../lib/session.js";
import { deployCommand } from "../lib/snippets.js";
import { statuses } from "../lib/status.js";
import { useNow } from "../lib/time.js";
import { Button, Empty, IconButton, Loading, Menu, MenuItem, Page, Problem, Status } from "../ui/basic.jsx";
import { BulkDialog } from "./bulk.jsx";
import { FilterBar } from "./filter_bar.jsx";
import { KeyHelp } from "./key_help.jsx";
import { ColumnMenu, columns, useColumns } from "./run_columns.jsx";

const overscan = 4; // rows that are drawn above and below the visible ones
const loadAhead = 60; // older rows are loaded when fewer than this many rows follow the visible ones
const restMs = 150; // time without scrolling after which visible rows are followed
const headHeight = 36; // px

/** The last list and the position in it, for a user who returns from a run. */
let lastShown = {};

function showList(place, filter) {
  const key = JSON.stringify([place.ref, place.env, place.branch, filter]);
  if (lastShown.key === key && lastShown.list.state !== "closed") return lastShown;
  lastShown.list?.close();
  lastShown = { key, list: new RunList(place, filter), cursor: undefined, selection: new Set(), isAll: false, top: 0 };
  return lastShown;
}

/** The list of a place and filter; redraws when it changes. */
function useRunList(place, filter) {
  const shown = useMemo(() => showList(place, filter), [place.ref, place.env, place.branch, JSON.stringify(filter)]);
  useEvent(shown.list, "change");
  return shown;
}

function StatusTabs({ place, filter, counts }) {
  const byStatus = counts?.byStatus, chosen = filter.status ?? [];
  const shown = Object.keys(statuses).filter((status) => byStatus?.[status] || chosen.includes(status));
  const addressWith = (status) => addressOf({ ...place, view: "runs", id: undefined, query: writeFilter({ ...filter, status }) });
  return (
    <nav class="tabs" aria-label="Runs by status">
      <a href={addressWith(undefined)} aria-current={!chosen.length ? "true" : undefined}>All{!chosen.length && byStatus && <b>{counts.total.toLocaleString("en")}</b>}</a>
      {shown.map((status) => (
        <a key={status} href={addressWith([status])} aria-current={chosen.includes(status) ? "true" : undefined}>
          <Status status={status} />{byStatus?.[status] !== undefined && <b>{byStatus[status].toLocaleString("en")}</b>}
        </a>
      ))}
    </nav>
  );
}

/** Redraws only if its own content has changed, since most changes of a list concern other rows. */
class Row extends Component {
  shouldComponentUpdate(next) { return ["run", "index", "height", "place", "now", "query", "ids", "isCursor", "isSelected"].some((name) => next[name] !== this.props[name]); }

  render({ run, index, height, place, now, ids, isCursor, isSelected, query }) {
    const address = addressOf({ ...place, view: "runs", id: run.id, query });
    return (
      <div role="row" id={`row-${run.id}`} class={`run-row ${isCursor ? "cursor" : ""} ${isSelected ? "selected" : ""}`} style={{ transform: `translateY(${index * height}px)`, height: `${height}px` }}
        aria-rowindex={index + 2} aria-selected={isSelected} onClick={(event) => { if (!event.target.closest("a, input, label")) go(address); }}>
        <span role="gridcell" class="pick"><label><input type="checkbox" tabIndex={-1} checked={isSelected} aria-label={`Select ${run.id}`} onClick={(event) => this.props.onSelect(run.id, event.shiftKey)} /></label></span>
        <span role="gridcell" class="what"><a href={address} tabIndex={-1}>{run.taskIdentifier}</a>{run.isTest && <em class="mini">test</em>}<code title={run.id}>{`…${run.id.slice(-8)}`}</code></span>
        {ids.map((id) => { const { cell: Cell, class: name } = columns[id]; return <span key={id} role="gridcell" class={name}><Cell run={run} place={place} now={now} /></span>; })}
      </div>
    );
  }
}

/** Returns the key of each run's row. A row that enters the screen gets the key, and thereby the elements, of a row that has
 * left it, since creating elements is most of the cost of scrolling. */
function useRowKeys(ids) {
  const { taken, free } = useRef({ taken: new Map(), free: [] }).current, shown = new Set(ids);
  for (const [id, key] of taken) {
    if (shown.has(id)) continue;
    taken.delete(id);
    free.push(key);
  }
  for (const id of ids) if (!taken.has(id)) taken.set(id, free.shift() ?? taken.size);
  return taken;
}

function RunTable({ place, shown, list, filter, cursor, setCursor, isSelected, isWholeSelected, select, selectAll }) {
  const scroller = useRef(), [view, setView] = useState({ top: shown.top, height: 600 }), now = useNow();
  const rowHeight = useRowHeight(), { ids, tracks } = useColumns(), count = list.length, query = useMemo(() => writeFilter(filter), [filter]);
  const first = Math.max(Math.floor(view.top / rowHeight) - overscan, 0), last = Math.min(Math.ceil((view.top + view.height) / rowHeight) + overscan, count);

  useLayoutEffect(() => {
    const measure = () => setView({ top: scroller.current.scrollTop, height: scroller.current.clientHeight - headHeight });
    scroller.current.scrollTop = shown.top;
    const observer = new ResizeObserver(measure);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => { if (list.isHeld && count - last < loadAhead && !list.tailError) list.loadOlder(); });
  useEffect(() => {
    const rest = setTimeout(() => list.follow(list.isHeld ? runs : []), restMs);
    return () => clearTimeout(rest);
  }, [first, last, list.isHeld, count]);
  useLayoutEffect(() => {
    const at = cursor ? list.indexOf(cursor) : -1, box = scroller.current;
    if (at < 0) return;
    if (at * rowHeight < box.scrollTop) box.scrollTop = at * rowHeight;
    else if ((at + 1) * rowHeight > box.scrollTop + box.clientHeight - headHeight) box.scrollTop = (at + 1) * rowHeight - box.clientHeight + headHeight;
  }, [cursor]);

  const scrolled = () => {
    const { scrollTop, clientHeight } = scroller.current;
    shown.top = scrollTop;
    setView({ top: scrollTop, height: clientHeight - headHeight });
    list.hold(scrollTop > 0);
  };
  const runs = Array.from({ length: Math.max(last - first, 0) }, (_, i) => list.at(first + i)), keys = useRowKeys(runs.map(({ id }) => id));
  const pick = (id, isRange) => { select(id, isRange); setCursor(id); };
  const rows = runs.map((run, i) => <Row key={keys.get(run.id)} run={run} index={first + i} height={rowHeight} place={place} now={now} query={query} ids={ids} isCursor={cursor === run.id} isSelected={isSelected(run.id)} onSelect={pick} />);
  return (
    <div class="run-table" style={{ "--tracks": tracks }}>
      <div class="run-scroll" role="grid" aria-label="Runs" aria-rowcount={list.hasAllRows ? count + 1 : -1} aria-multiselectable="true" tabIndex={0} ref={scroller} onScroll={scrolled}
        aria-activedescendant={cursor && list.indexOf(cursor) >= first && list.indexOf(cursor) < last ? `row-${cursor}` : undefined}>
        <div role="rowgroup" class="run-head"><div role="row" aria-rowindex={1}>
          <span role="columnheader" class="pick"><label><input type="checkbox" tabIndex={-1} aria-label="Select all loaded runs" checked={isWholeSelected} onClick={selectAll} /></label></span>
          <span role="columnheader" class="what">Task</span>
          {ids.map((id) => <span key={id} role="columnheader" class={columns[id].class}>{columns[id].title}</span>)}</div></div>
        <div role="rowgroup" class="run-rows" style={{ height: `${count * rowHeight}px` }}>{rows}</div>
      </div>
      {list.newCount > 0 && <button type="button" class="new-runs" onClick={() => { scroller.current.scrollTop = 0; }}>{list.newCount >= 200 ? "200+" : list.newCount} new {list.newCount === 1 ? "run" : "runs"}</button>}
      {list.isLoading && <div class="more-rows">Loading older runs…</div>}
      {list.tailError && <Problem error={list.tailError} retry={() => list.loadOlder()} />}
    </div>
  );
}

function useRowHeight() {
  const [narrow] = useState(() => matchMedia("(max-width: 760px)")), [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const update = () => setNarrow(narrow.matches);
    narrow.addEventListener("change", update);
    return () => narrow.removeEventListener("change", update);
  }, []);
  return isNarrow ? 64 : 40;
}

/** Actions on the selected runs. onAll extends the selection from the loaded runs to the whole list of `total` runs. It is
 * missing if only some loaded runs are selected, or all runs are. */
function SelectionBar({ count, total, isAll, onAll, onBulk, onClear }) {
  const all = total?.toLocaleString("en") ?? "", some = count.toLocaleString("en");
  return (
    <div class="selection" role="toolbar" aria-label="Selected runs">
      <span role="status">{isAll ? `All ${all} selected` : onAll && all ? `${some} of ${all} selected` : onAll ? `${some} loaded runs selected` : `${some} selected`}</span>
      {onAll && <Button kind="small" onClick={onAll}>Select all {all}</Button>}
      <Button icon="replay" kind="small" onClick={() => onBulk("replay")}>Replay…</Button>
      <Button icon="stop" kind="small" onClick={() => onBulk("cancel")}>Cancel…</Button>
      <IconButton icon="close" label="Clear selection" onClick={onClear} />
    </div>
  );
}

function NoRuns({ place, filter }) {
  const isOpen = !Object.keys(filter).length;
  if (!isOpen) return <Empty title="No runs match"><p>New runs that match the filter appear here. <a href={addressOf({ ...place, view: "runs" })}>Show all runs</a></p></Empty>;
  return (
    <Empty title={`No runs in ${place.env} yet`}>
      <p>{place.env === "dev" ? "Start a worker in your project:" : "Deploy your project:"}</p>
      <pre>{place.env === "dev" ? "npx trigger.dev@4.8.3 dev" : deployCommand(place)}</pre>
      <p>Then trigger a task:</p>
      <pre>{`await tasks.trigger("hello-world", { name: "Ada" });`}</pre>
      <p>or <a href={addressOf({ ...place, view: "test" })}>trigger one here</a>. The run appears immediately.</p>
    </Empty>
  );
}

export function Runs({ place }) {
  const filter = useMemo(() => readFilter(place.query), [place.query.toString()]);
  const shown = useRunList(place, filter), { list, cursor, selection, isAll } = shown, search = useRef();
  const { lostAt } = useConnection(), [, draw] = useState(0), [bulk, setBulk] = useState(), [isHelpOpen, setHelpOpen] = useState(false);
  const anchor = useRef(), rowHeight = useRowHeight(), change = (what) => { Object.assign(shown, what); draw((version) => version + 1); };
  const setCursor = (id) => change({ cursor: id }), setSelection = (ids, isAllNow = false) => change({ selection: ids, isAll: isAllNow }); // set at once, since key presses may come faster than frames

  function select(id, isRange) {
    const next = new Set(shown.isAll ? list.ids() : shown.selection), from = anchor.current && isRange ? list.indexOf(anchor.current) : -1, to = list.indexOf(id);
    if (from >= 0) for (let at = Math.min(from, to); at <= Math.max(from, to); at++) next.add(list.at(at).id);
    else if (next.has(id)) next.delete(id);
    else next.add(id);
    setSelection(next);
    anchor.current = id;
  }

  const total = list.counts?.total, isLoadedSelected = selection.size > 0 && selection.size >= list.length, hasMore = total === undefined ? !list.hasAllRows : total > selection.size;
  const selectAll = () => setSelection(isAll || isLoadedSelected ? new Set() : new Set(list.ids()));

  useEffect(() => {
    const move = (step) => {
      if (!list.length) return;
      const firstSeen = Math.ceil(shown.top / rowHeight), index = shown.cursor ? list.indexOf(shown.cursor) : step > 0 ? firstSeen - 1 : firstSeen + 1;
      setCursor(list.at(Math.min(Math.max(index + step, 0), list.length - 1))?.id);
    };
    const keys = {
      j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
      x: () => shown.cursor && select(shown.cursor), Enter: () => shown.cursor && go(addressOf({ ...place, view: "runs", id: shown.cursor, query: writeFilter(filter) })),
      "/": () => search.current?.focus(), "?": () => setHelpOpen(true),
      Escape: () => { setSelection(new Set()); setCursor(undefined); },
    };
    const press = (event) => {
      if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open], .menu")) return;
      if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
      if ((event.key === "Enter" || event.key.startsWith("Arrow")) && event.target.closest("a, button")) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });

  const isEmpty = list.state === "live" && !list.length;
  // Memoized, as rows may be redrawn in each frame.
  const bar = useMemo(() => <FilterBar place={place} filter={filter} search={search} />, [place, filter]);
  const tabs = useMemo(() => <StatusTabs place={place} filter={filter} counts={list.counts} />, [place, filter, list.counts]);
  return (
    <Page title="Runs" kind="fill" actions={<>
      <ColumnMenu />
      <IconButton icon="keyboard" label="Keyboard shortcuts" onClick={() => setHelpOpen(true)} />
      <Menu icon="more" label="Bulk actions" title="Bulk actions" kind="ghost square" align="right">{(close) => <>
        <MenuItem onClick={() => { close(); setBulk({ action: "replay", ids: [] }); }}>Replay all runs of this list…</MenuItem>
        <MenuItem onClick={() => { close(); setBulk({ action: "cancel", ids: [] }); }}>Cancel all runs of this list…</MenuItem>
      </>}</Menu>
    </>}>
      {bar}
      {tabs}
      {list.error && list.state === "closed" && !lostAt && <Problem error={{ status: 400, message: list.error.message }} />}
      {isEmpty ? <NoRuns place={place} filter={filter} />
        : list.length > 0 || list.state === "live" ? <RunTable key={shown.key} place={place} shown={shown} list={list} filter={filter} cursor={cursor} setCursor={setCursor} isSelected={(id) => isAll || selection.has(id)} isWholeSelected={isAll || isLoadedSelected} select={select} selectAll={selectAll} />
          : list.state !== "closed" && <Loading what="Loading runs" />}
      {selection.size > 0 && <SelectionBar count={selection.size} total={total} isAll={isAll} onAll={!isAll && isLoadedSelected && hasMore ? () => setSelection(selection, true) : undefined} onBulk={(action) => setBulk({ action, ids: isAll ? [] : [...selection] })} onClear={() => setSelection(new Set())} />}
      {bulk && <BulkDialog place={place} {...bulk} filter={filter} onClose={() => setBulk(undefined)} onDone={() => setSelection(new Set())} />}
      {isHelpOpen && <KeyHelp onClose={() => setHelpOpen(false)} />}
    </Page>
  );
}
