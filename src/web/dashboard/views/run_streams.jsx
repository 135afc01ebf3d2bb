// run_streams.jsx - a run's streams, live.
//
// Each open stream takes a connection, and a browser opens at most six to one address, for all tabs together. So a tab
// reads at most two streams at a time, all tabs together at most four, and a hidden tab none.
import { useEffect, useRef, useState } from "preact/hooks";

import { base } from "../lib/base.js";
import { session } from "../lib/session.js";
import { Button } from "../ui/basic.jsx";

const keptChunks = 500, retryMs = 2000, openMax = 2;

const slots = 4; // streams that all tabs together may read

/** Calls action once one of the slots is free, and holds the slot until action ends. The signal aborts the wait for a slot. */
async function inSlot(signal, action) {
  const { locks } = navigator, name = (slot) => `runcast.stream.${slot}`;
  if (!locks) return action(); // an insecure origin has no locks
  for (let slot = 0; slot < slots; slot++)
    if (await locks.request(name(slot), { ifAvailable: true }, async (lock) => { if (lock) await action(); return Boolean(lock); })) return undefined;
  return locks.request(name(Math.floor(Math.random() * slots)), { signal }, action);
}

/** Reads the chunks of a stream as server-sent events, and resumes if the connection breaks. */
async function read(place, run, name, from, onChunks, signal) {
  let last = from;
  while (!signal.aborted) {
    try {
      const token = await session.token(place);
      const response = await fetch(`${base}/realtime/v1/streams/${run}/${encodeURIComponent(name)}`, { signal, headers: { authorization: `Bearer ${token}`, accept: "text/event-stream", "timeout-seconds": "60", ...last && { "last-event-id": last } } });
      if (!response.ok) throw new Error(`${response.status}`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n"), chunks = [];
        text = events.pop();
        for (const event of events) {
          const lines = event.split("\n"), data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
          last = lines.find((line) => line.startsWith("id:"))?.slice(3).trim() ?? last;
          if (data) chunks.push(data);
        }
        if (chunks.length) onChunks(chunks, last);
      }
      return; // the stream has ended, or has sent nothing for a minute
    } catch (error) {
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

const textOf = (chunk) => {
  try { const value = JSON.parse(chunk); return typeof value === "string" ? value : `${JSON.stringify(value)}\n`; } catch { return chunk; }
};

function useIsVisible() {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  }, []);
  return isVisible;
}

function Stream({ place, run, name, isRead, onRead }) {
  const [chunks, setChunks] = useState([]), [hasEnded, setEnded] = useState(false), last = useRef(), box = useRef();
  useEffect(() => {
    if (!isRead || hasEnded) return undefined;
    const control = new AbortController();
    const take = (more, at) => {
      last.current = at;
      setChunks((old) => [...old, ...more].slice(-keptChunks));
    };
    inSlot(control.signal, () => read(place, run, name, last.current, take, control.signal)).then(() => { if (!control.signal.aborted) setEnded(true); }, () => { /* aborted while it waited */ });
    return () => control.abort();
  }, [run, name, isRead, hasEnded]);
  useEffect(() => { box.current.scrollTop = box.current.scrollHeight; }, [chunks]);
  const hint = hasEnded ? "No data kept" : isRead ? "No data yet" : "Not being read";
  return (
    <section class="stream" aria-label={`Stream ${name}`}>
      <h3><code>{name}</code> {!hasEnded && (isRead ? <span class="spinner" aria-hidden="true" /> : <Button kind="small ghost" onClick={onRead}>Read</Button>)}</h3>
      <div class="log" ref={box} tabIndex={0}>{chunks.length ? chunks.map(textOf).join("") : <span class="dim">{hint}</span>}</div>
    </section>
  );
}

export function Streams({ place, run, names }) {
  const [chosen, setChosen] = useState([]), isVisible = useIsVisible();
  const open = [...chosen, ...names.filter((name) => !chosen.includes(name))].slice(0, openMax);
  return names.map((name) => <Stream key={name} place={place} run={run} name={name} isRead={isVisible && open.includes(name)} onRead={() => setChosen([name, ...open].slice(0, openMax))} />);
}
