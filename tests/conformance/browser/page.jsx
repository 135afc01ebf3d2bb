// The content of the page: one hook at a time, as an application would use it. The tests read the current state from the
// page, and all states so far from window.seen.
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import {
  useRealtimeBatch, useRealtimeRun, useRealtimeRunsWithTag, useRealtimeRunWithStreams, useRealtimeStream,
  useRealtimeTaskTrigger,
} from "@trigger.dev/react-hooks";

window.seen = [];
window.completed = [];
const onComplete = (run, error) => window.completed.push([run.id, run.status, error ?? null]);

function Shown({ value = null, error }) {
  const text = JSON.stringify(value);
  useEffect(() => { window.seen.push(JSON.parse(text)); }, [text]);
  return (
    <>
      <pre id="value">{text}</pre>
      <pre id="error">{error ? `${error.status ?? ""} ${error.message}` : ""}</pre>
    </>
  );
}

function Run({ id, ...options }) {
  const { run, error } = useRealtimeRun(id, { ...options, onComplete });
  return <Shown value={run} error={error} />;
}

function Tag({ tag, ...options }) {
  const { runs, error } = useRealtimeRunsWithTag(tag, options);
  return <Shown value={runs} error={error} />;
}

function Batch({ id, ...options }) {
  const { runs, error } = useRealtimeBatch(id, options);
  return <Shown value={runs} error={error} />;
}

function Trigger({ task, payload, tags, ...options }) {
  const { submit, handle, run, error } = useRealtimeTaskTrigger(task, { ...options, onComplete });
  return (
    <>
      <button onClick={() => submit(payload, { tags })}>Start</button>
      <pre id="handle">{handle?.id}</pre>
      <Shown value={run} error={error} />
    </>
  );
}

function RunWithStreams({ id, ...options }) {
  const { run, streams, error } = useRealtimeRunWithStreams(id, { ...options, onComplete });
  return (
    <>
      <pre id="streams">{JSON.stringify(streams)}</pre>
      <Shown value={run} error={error} />
    </>
  );
}

function Stream({ id, name, ...options }) {
  const { parts, error } = useRealtimeStream(id, name, options);
  return <Shown value={parts} error={error} />;
}

const hooks = { Run, Tag, Batch, Trigger, RunWithStreams, Stream };
const root = createRoot(document.getElementById("root"));
window.show = (name, options) => {
  const Hook = hooks[name];
  root.render(<Hook {...options} />);
};
