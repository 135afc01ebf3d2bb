// trace.jsx - spans and logs as a tree along a time axis.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { addressOf } from "../lib/place.js";
import { failedStatuses, isFinal, toneOf } from "../lib/status.js";
import { clockTime, duration, useNow } from "../lib/time.js";
import { hasNotStarted, isUnended, linesOf, lossesOf, roundText, ticksOf } from "../lib/spans.js";
import { Button, Facts, Status, Time } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { Json } from "../ui/json.jsx";

const shownLines = 300;
const isLog = (span) => span.level !== "TRACE";
const isLost = (span) => span.endsBy !== undefined && span.run.status !== "CANCELED";
const endedBadly = (span) => isLost(span) || (failedStatuses.includes(span.run.status) && isUnended(span));
const toneOfSpan = (span) => span.isRun ? toneOf(span.run.status) : span.isError || span.level === "ERROR" || endedBadly(span) ? "bad" : span.level === "WARN" ? "wait" : span.isCancelled ? "off" : span.isPartial && !span.run.finishedAt ? "run" : "plain";

/** The properties that the task set, without those that the SDK and the gateway add. */
const ownProperties = (properties) => Object.fromEntries(Object.entries(properties).filter(([name]) => !name.startsWith("$")));

const textOf = (value) => typeof value === "string" ? value : JSON.stringify(value, null, 2);

/** The stack trace of an exception; without one, its message or all of its properties. */
const stackOf = ({ properties = {} }) => textOf(properties.exception?.stacktrace ?? properties["exception.stacktrace"] ?? properties.exception?.message ?? properties);

function Detail({ span, place }) {
  const own = ownProperties(span.properties), exceptions = span.events.filter(({ name }) => name === "exception");
  return (
    <div class="span-detail">
      <Facts rows={[
        [isLog(span) ? "Message" : "Name", span.message], ["Level", isLog(span) && span.level], ["Run", span.isRun && <a href={addressOf({ ...place, view: "runs", id: span.run.id })}>{span.run.id}</a>],
        ["Started", <Time at={span.start} ms />], ["Duration", !isLog(span) && (span.isPartial && !span.run.finishedAt && !isLost(span) ? "in progress" : isUnended(span) ? "not ended by the worker" : duration(span.durationMs))],
      ]} />
      {Object.keys(own).length > 0 && <Json value={own} label="attributes" />}
      {exceptions.length > 0 && <pre class="stack-trace" tabIndex={0}>{exceptions.map(stackOf).join("\n\n")}</pre>}
    </div>
  );
}

/** Shows how many spans and logs are missing from the trace, and why. */
export function Missing({ root: { dropped, kept, removed, mayBeIncomplete } }) {
  return (
    <>
      {lossesOf(dropped, kept).map((text) => <p key={text} class="error pad" role="status">{text}</p>)}
      {removed && <p class="error pad" role="status">{removed.count.toLocaleString("en")} spans and logs were removed at <Time at={removed.at} /> to make room for newer runs.</p>}
      {mayBeIncomplete && <p class="error pad" role="status">The worker stopped responding. Its last logs may be missing.</p>}
    </>
  );
}

/** The bar of a line: first the time in the queue, then the span, if the run has started. */
function Bar({ span, queued, end, from, total }) {
  const at = (time) => Math.min((time - from) / total * 100, 99.7), left = at(span.start), width = Math.min(Math.max((end - span.start) / total * 100, .25), 100 - left);
  const isQueue = hasNotStarted(span), queueEnd = isQueue ? end : span.start;
  const title = [queued && `queued ${duration(queueEnd - queued)}`, !isQueue && clockTime(span.start, { ms: true }), !isQueue && !isLog(span) && duration(end - span.start)].filter(Boolean).join(" · ");
  return (
    <div class="trace-bar" title={title}>
      {queued && <i class="bar-queue" style={{ left: `${at(queued)}%`, width: `${Math.max(at(queueEnd) - at(queued), 0)}%` }} />}
      {isQueue ? null : isLog(span) ? <i class="point" style={{ left: `${left}%` }} /> : <i class="bar-line" style={{ left: `${left}%`, width: `${width}%` }} />}
    </div>
  );
}

/** Round times above the bars, as many as fit. */
function Axis({ total }) {
  const box = useRef(), [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(box.current.clientWidth), observer = new ResizeObserver(measure);
    measure();
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return <div class="trace-axis" aria-hidden="true"><span /><div ref={box}>{ticksOf(total, width).map((at) => <i key={at} style={{ left: `${at / total * 100}%` }}>{roundText(at)}</i>)}</div></div>;
}

export function Trace({ place, trace, isLive, tabs }) {
  const [closed, setClosed] = useState(() => new Set()), [chosen, setChosen] = useState(), [shown, setShown] = useState(shownLines);
  const now = useNow(isLive), { lines, from, to } = linesOf(trace.root, closed, now), total = to - from;
  const toggle = (id) => setClosed((old) => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next; });
  return (
    <section class="panel trace" aria-label="Timeline">
      <header>{tabs}<span class="dim">{duration(total)}</span></header>
      <Missing root={trace.root} />
      <Axis total={total} />
      <ol class="trace-lines">
        {lines.slice(0, shown).map(({ span, depth, isOpen, queued, end, hasChildren }) => {
          const key = `${span.run.id}/${span.id}`;
          return (
            <li key={key} class={`${toneOfSpan(span)} ${isLog(span) ? "log-line" : ""} ${chosen === key ? "chosen" : ""}`}>
              <div class="trace-line">
                <div class="trace-name" style={{ paddingLeft: `${Math.min(depth, 12) * 16}px` }}>
                  {hasChildren ? <button type="button" class="twist" aria-expanded={isOpen} aria-label={`${isOpen ? "Collapse" : "Expand"} ${span.message}`} onClick={() => toggle(span.id)}><Icon name={isOpen ? "chevron" : "right"} size={12} /></button> : <span class="twist" />}
                  <button type="button" class="span-name" aria-expanded={chosen === key} onClick={() => setChosen(chosen === key ? undefined : key)}>
                    {span.isRun ? <b>{span.message}</b> : span.message}
                    {isLog(span) && span.level !== "LOG" && span.level !== "INFO" && <> <em class="mini">{span.level.toLowerCase()}</em></>}
                  </button>
                  {span.isRun && depth > 0 && span.run.status !== "COMPLETED" && <Status status={span.run.status} />}
                  {span.isRun && depth > 0 && <a class="to-run" href={addressOf({ ...place, view: "runs", id: span.run.id })} aria-label={`Open run ${span.run.id}`}><Icon name="right" size={12} /></a>}
                </div>
                <Bar span={span} queued={queued} end={end} from={from} total={total} />
                <div class="trace-ms">{isLog(span) ? "" : duration(end - span.start)}</div>
              </div>
              {chosen === key && <Detail span={span} place={place} />}
            </li>
          );
        })}
      </ol>
      {lines.length === 1 && !trace.root.run.startedAt && <p class="dim pad">{isFinal(trace.root.run) ? "This run ended before a worker started it." : "Spans and logs appear here as the task executes."}</p>}
      {lines.length > shown && <div class="pad"><Button onClick={() => setShown(shown + 1000)}>Show {Math.min(lines.length - shown, 1000)} more lines</Button></div>}
      {trace.isCut && <p class="dim pad">This run has more descendants than the timeline shows. Family lists all children, and each has its own timeline.</p>}
    </section>
  );
}
