// plot.jsx - a plot of values over time, drawn by uPlot in the page's colors, with a text alternative.
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";

import { useSettings } from "../lib/settings.js";

const height = 160, leastWidth = 200;
const widthOf = (element) => Math.max(element.getBoundingClientRect().width, leastWidth);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** times: seconds; series: [{ label, tone, values, isStacked }]; unit: formats a value. */
export function Plot({ title, times, series, unit = (value) => value.toLocaleString("en"), from, to }) {
  const box = useRef(), { theme, clock } = useSettings(), plot = useRef();
  const shape = JSON.stringify([series.map(({ label }) => label), theme, clock]);
  const data = [times, ...series.map(({ values }) => values)], latest = useRef(data), range = useRef([from, to]);
  latest.current = data;
  range.current = [from, to];

  useEffect(() => {
    const dim = colour("dim"), line = colour("line"), axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui", labelFont: "11px system-ui" };
    const create = () => {
      plot.current?.destroy();
      plot.current = new UPlot({
        width: widthOf(box.current), height, padding: [10, 8, 0, 0], legend: { show: false }, cursor: { y: false, points: { size: 6 } },
        tzDate: (ts) => clock === "utc" ? UPlot.tzDate(new Date(ts * 1000), "Etc/UTC") : new Date(ts * 1000),
        scales: { x: { range: () => range.current }, y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
        axes: [{ ...axis, size: 26, values: "{HH}:{mm}" }, { ...axis, size: 56, values: (_, ticks) => ticks.map(unit) }],
        series: [{}, ...series.map(({ label, tone, values }) => ({ label, stroke: colour(tone), fill: `color-mix(in srgb, ${colour(tone)} 12%, transparent)`, width: 1.5, points: { show: values.includes(null), size: 4 }, spanGaps: false }))],
      }, latest.current, box.current);
    };
    create();
    const observer = new ResizeObserver(() => plot.current.setSize({ width: widthOf(box.current), height }));
    observer.observe(box.current);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", create);
    return () => { observer.disconnect(); dark.removeEventListener("change", create); plot.current.destroy(); plot.current = undefined; };
  }, [shape]);
  useEffect(() => { plot.current?.setData(data); }, [times, series]);

  const last = series.map(({ label, values }) => `${label} ${values.at(-1) === null || values.at(-1) === undefined ? "no data" : unit(values.at(-1))}`).join(", ");
  return (
    <section class="panel plot" aria-label={title}>
      <header><h2>{title}</h2><ul class="legend">{series.map(({ label, tone, values }) => <li key={label}><i class={`dot-${tone}`} />{label} <b>{values.at(-1) === null || values.at(-1) === undefined ? "–" : unit(values.at(-1))}</b></li>)}</ul></header>
      <div class="body"><div role="img" aria-label={`${title}: ${last}`} ref={box} /></div>
    </section>
  );
}
