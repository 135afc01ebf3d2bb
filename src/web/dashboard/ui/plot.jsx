// plot.jsx - a plot of values over time, drawn by uPlot in the page's colors, with a text alternative.
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";

import { useSettings } from "../lib/settings.js";

const height = 148, minWidth = 200, font = "11px system-ui", edge = 22; // px; edge: half of the last time label
const widthOf = (element) => Math.max(element.getBoundingClientRect().width, minWidth);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isMissing = (value) => value === null || value === undefined;

/** The indexes of values without a neighbor, to which no line leads. */
const lonely = (values) => [...values.keys()].filter((at) => !isMissing(values[at]) && isMissing(values[at - 1]) && isMissing(values[at + 1]));

let ruler;
/** Returns the px that the labels of the value axis need. */
function widthOfLabels(labels) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = font;
  return Math.ceil(Math.max(0, ...(labels ?? []).map((label) => ruler.measureText(label).width))) + 14;
}

/** times: seconds; series: [{ label, tone, values, now }]; now: the value in the legend, if it is not the last value;
 * unit: formats a value; isWhole: values are counts, so no tick is between two of them; steps: possible distances between ticks; per: follows the title; none: shown
 * if there is no value above 0. The first series is drawn above the others. */
export function Plot({ title, per, none, times, series, unit = (value) => value.toLocaleString("en"), from, to, isWhole = false, steps }) {
  const box = useRef(), { theme, clock } = useSettings(), plot = useRef();
  const drawn = [...series].reverse(), data = [times, ...drawn.map(({ values }) => values)], latest = useRef(data), range = useRef([from, to]);
  const isEmpty = none && series.every(({ values }) => !values.some(Boolean));
  latest.current = data;
  range.current = [from, to];
  const shape = JSON.stringify([series.map(({ label }) => label), theme, clock, isEmpty]);

  useEffect(() => {
    const axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font, labelFont: font };
    const create = () => {
      plot.current?.destroy();
      plot.current = new UPlot({
        width: widthOf(box.current), height, padding: [10, edge, 0, 0], legend: { show: false }, cursor: { y: false, points: { size: 6 } },
        tzDate: (ts) => clock === "utc" ? UPlot.tzDate(new Date(ts * 1000), "Etc/UTC") : new Date(ts * 1000),
        scales: { x: { range: () => range.current }, y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
        axes: [{ ...axis, size: 26, space: 64, values: "{HH}:{mm}" }, { ...axis, size: (_, labels) => widthOfLabels(labels), space: 32, ...steps && { incrs: steps }, values: (_, ticks) => ticks.map((tick) => (isWhole && tick % 1) || (isEmpty && tick) ? "" : tick ? unit(tick) : "0") }],
        series: [{}, ...drawn.map(({ label, tone }) => ({ label, stroke: color(tone), fill: `color-mix(in srgb, ${color(tone)} 12%, transparent)`, width: 1.5, points: { show: true, size: 4, fill: color(tone), filter: (self, at) => lonely(self.data[at]) }, spanGaps: false }))],
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

  const shown = series.map(({ label, tone, values, now = values.at(-1) }) => ({ label, tone, text: isMissing(now) ? undefined : unit(now) }));
  return (
    <section class="panel plot" aria-label={title}>
      <header><h2>{title}{per && <small class="dim"> {per}</small>}</h2><ul class="legend">{shown.map(({ label, tone, text }) => <li key={label}><i class={`dot-${tone}`} />{label} <b>{text ?? "–"}</b></li>)}</ul></header>
      <div class="body">{isEmpty && <p class="plot-none">{none}</p>}<div role="img" aria-label={`${title}: ${shown.map(({ label, text }) => `${label} ${text ?? "no data"}`).join(", ")}`} ref={box} /></div>
    </section>
  );
}
