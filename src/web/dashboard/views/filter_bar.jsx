// filter_bar.jsx - the filters of the table of runs. Their state is in the address bar.
import { useEffect, useState } from "preact/hooks";

import { listQuery, withTime, writeFilter } from "../lib/filter.js";
import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { cursorBefore, readBeginning } from "../lib/run_id.js";
import { session } from "../lib/session.js";
import { labelOf, statuses } from "../lib/status.js";
import { Button, Menu, MenuItem, Status } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { showToast } from "../ui/toast.jsx";
import { currentWorker } from "./test.jsx";

const ever = "2000-01-01T00:00:00.000Z";
const periods = [["5m", "5 minutes"], ["15m", "15 minutes"], ["1h", "1 hour"], ["6h", "6 hours"], ["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"]];
const defaultPeriod = "7d", barePart = /^\d[0-9a-z]{5,}$/; // matches the beginning of an id without "run_"
const named = { task: "Task", tag: "Tag", version: "Version", queue: "Queue", machine: "Machine", batch: "Batch", schedule: "Schedule", test: "Test runs", bulk: "Bulk action", period: "Last", from: "From", to: "To" };
const lists = ["task", "tag", "version", "queue", "machine"];

/** The text of a filter's chip. */
const chipText = (name, value) => name === "test" ? (value === "true" ? "only" : "excluded") : [value].flat().join(", ");

function TextFilter({ name, filter, change, suggestions = [], close }) {
  const [text, setText] = useState(""), isList = lists.includes(name);
  const value = [filter[name] ?? []].flat(), shown = suggestions.filter((one) => one.toLowerCase().includes(text.toLowerCase()));
  const add = (one) => {
    change(name, isList ? (value.includes(one) ? value.filter((other) => other !== one) : [...value, one]) : one);
    if (!isList) close();
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (text.trim()) add(text.trim()); close(); }}>
      <input type="text" aria-label={named[name]} placeholder={suggestions.length ? "Search or enter a value" : "Type, then press Enter"} value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
      <div class="options">{shown.slice(0, 50).map((one) => <MenuItem key={one} checked={value.includes(one)} onClick={() => add(one)}>{one}</MenuItem>)}</div>
    </form>
  );
}

function TimeFilter({ filter, change, close }) {
  const local = (name) => filter[name] ? new Date(new Date(filter[name]) - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
  const set = (name) => (event) => change({ period: undefined, [name]: event.currentTarget.value ? new Date(event.currentTarget.value).toISOString() : undefined });
  return (
    <>
      {periods.map(([value, label]) => <MenuItem key={value} checked={(withTime(filter).period ?? "") === value} onClick={() => { change({ period: value === defaultPeriod ? undefined : value, from: undefined, to: undefined }); close(); }}>Last {label}</MenuItem>)}
      <MenuItem checked={filter.from === ever && !filter.to} onClick={() => { change({ period: undefined, from: ever, to: undefined }); close(); }}>Any time</MenuItem>
      <label class="inline">From <input type="datetime-local" value={local("from")} onChange={set("from")} /></label>
      <label class="inline">To <input type="datetime-local" value={local("to")} onChange={set("to")} /></label>
    </>
  );
}

/** Returns the id of the newest run whose id has this beginning; undefined if no run has it. */
async function find(place, beginning) {
  const query = listQuery({ from: ever }, { size: 1, after: cursorBefore(beginning) });
  const { data: [run] } = await session.request(place, "GET", `/api/v1/runs?${query}`);
  return run?.id.startsWith(beginning) ? run.id : undefined;
}

export function FilterBar({ place, filter, search }) {
  const [text, setText] = useState("");
  const { data: names } = useQuery([place.ref, place.env, place.branch], async () => {
    const [queues, worker] = await Promise.all([
      session.request(place, "GET", "/api/v1/queues?perPage=100").catch(() => ({ data: [] })),
      currentWorker(place).catch(() => undefined),
    ]);
    return { task: (worker?.worker?.tasks ?? []).map(({ slug }) => slug), queue: queues.data.map(({ name, type }) => type === "task" ? `task/${name}` : name), version: worker?.worker ? [worker.worker.version] : [] };
  });
  const show = (next) => go(addressOf({ ...place, view: "runs", id: undefined, query: writeFilter(next) }));
  const change = (name, value) => {
    const next = { ...filter, ...typeof name === "string" ? { [name]: value } : name };
    for (const key in next) if (next[key] === undefined || next[key].length === 0) delete next[key];
    show(next);
  };
  async function submit(event) {
    event.preventDefault();
    const typed = text.trim(), wanted = /^(run|batch|sched)_/i.test(typed) ? typed.toLowerCase() : typed;
    if (!wanted) return;
    if (wanted.startsWith("batch_")) change("batch", wanted);
    else if (wanted.startsWith("sched_")) change("schedule", wanted);
    else if (wanted.startsWith("run_") || barePart.test(wanted)) {
      try {
        const beginning = readBeginning(wanted), id = beginning && await find(place, beginning);
        if (id) go(addressOf({ ...place, view: "runs", id }));
        else { showToast(`No run in ${place.env} has an id that starts with ${wanted}`, "bad"); return; }
      } catch (error) { showToast(error.message, "bad"); return; }
    } else if (names?.task.includes(wanted)) change("task", [wanted]);
    else change("tag", [...filter.tag ?? [], wanted]);
    setText("");
    search.current?.blur();
  }
  const chips = Object.entries(filter).filter(([name, value]) => name !== "status" && name !== "period" && name !== "root" && value !== ever);
  const timeLabel = filter.period ? `Last ${periods.find(([value]) => value === filter.period)?.[1] ?? filter.period}` : filter.from === ever && !filter.to ? "Any time" : filter.from || filter.to ? "Custom range" : "Last 7 days";
  return (
    <div class="filters">
      <form class="search" role="search" onSubmit={submit}>
        <Icon name="search" />
        <input ref={search} type="text" aria-label="Find runs by id, tag, task or batch" placeholder="Run id, tag, task or batch" value={text} autocomplete="off" spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Escape") { setText(""); event.currentTarget.blur(); } }} />
        <kbd>/</kbd>
      </form>
      <Menu text="Status">{() => Object.keys(statuses).map((status) => {
        const chosen = filter.status ?? [];
        return <MenuItem key={status} checked={chosen.includes(status)} onClick={() => change("status", chosen.includes(status) ? chosen.filter((one) => one !== status) : [...chosen, status])}><Status status={status} /></MenuItem>;
      })}</Menu>
      <Menu text="Task">{(close) => <TextFilter name="task" filter={filter} change={change} suggestions={names?.task} close={close} />}</Menu>
      <Menu text={timeLabel}>{(close) => <TimeFilter filter={filter} change={change} close={close} />}</Menu>
      <Menu text="More">{(close) => <MoreFilters filter={filter} change={change} names={names} close={close} />}</Menu>
      <Button aria-pressed={filter.root === "true"} title="Leave out runs that other runs have triggered" onClick={() => change("root", filter.root === "true" ? undefined : "true")}>Root runs only</Button>
      {chips.map(([name, value]) => (
        <span key={name} class="chip"><span class="dim">{named[name] ?? name}</span> {chipText(name, value)}<button type="button" aria-label={`Remove filter ${named[name] ?? name}`} onClick={() => change(name, undefined)}><Icon name="close" size={12} /></button></span>
      ))}
      {(Object.keys(filter).length > 0) && <Button kind="ghost" onClick={() => show({})}>Clear filters</Button>}
    </div>
  );
}

function MoreFilters({ filter, change, names, close }) {
  const [chosen, setChosen] = useState();
  if (chosen) return <TextFilter name={chosen} filter={filter} change={change} suggestions={names?.[chosen]} close={close} />;
  return (
    <>
      {["tag", "version", "queue", "machine", "batch", "schedule"].map((name) => <MenuItem key={name} checked={Boolean(filter[name])} onClick={() => setChosen(name)}>{named[name]}…</MenuItem>)}
      <MenuItem checked={filter.test === "true"} onClick={() => { change("test", filter.test === "true" ? undefined : "true"); close(); }}>Only test runs</MenuItem>
      <MenuItem checked={filter.test === "false"} onClick={() => { change("test", filter.test === "false" ? undefined : "false"); close(); }}>Exclude test runs</MenuItem>
    </>
  );
}
