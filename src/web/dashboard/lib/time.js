// time.js - formats times and durations.
import { useEffect, useState } from "preact/hooks";

import { settings } from "./settings.js";

const formats = new Map();
function format(options) {
  const timeZone = settings().clock === "utc" ? "UTC" : undefined, key = JSON.stringify([options, timeZone]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", timeZone, ...options }));
  return formats.get(key);
}

const dayOf = (time) => format({ year: "numeric", month: "2-digit", day: "2-digit" }).format(time);

/** 14:03:22; with the date if that is not today. */
export function clockTime(time, { ms = false, now = Date.now() } = {}) {
  if (!time) return "–";
  const date = new Date(time), clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", ...ms && { fractionalSecondDigits: 3 } };
  const isToday = dayOf(date) === dayOf(now);
  return format(isToday ? clock : { day: "numeric", month: "short", ...clock }).format(date);
}

/** The complete time, for titles: 2026-11-25 14:03:22.123 UTC. */
export function wholeTime(time) {
  if (!time) return "";
  const date = new Date(time);
  return settings().clock === "utc" ? date.toISOString().replace("T", " ").replace("Z", " UTC")
    : format({ dateStyle: "full", timeStyle: "long" }).format(date);
}

/** Mon, 30 Nov 2026, 07:15 UTC. */
export const minuteTime = (time) => format({ weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" }).format(new Date(time));

/** 412 ms, 3.1 s, 2 min 05 s, 3 h 12 min, 4 d 2 h. */
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "–";
  const s = Math.max(ms, 0) / 1000, twoDigits = (value) => String(Math.floor(value)).padStart(2, "0");
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${(Math.floor(s * 10) / 10).toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${twoDigits(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${twoDigits(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/** "now", "12 s", "3 min", "2 h", "5 d"; for past and future times. */
export function age(ms) {
  const s = Math.floor(Math.abs(ms) / 1000);
  if (s < 1) return "now";
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

export const ago = (time, now = Date.now()) => time ? (now - new Date(time) < 1000 ? "now" : `${age(now - new Date(time))} ago`) : "–";

/** "in 48 s", "in 59 min", "in 2 h 58 min", "in 3 d 4 h", "in 89 d". */
export function until(time, now = Date.now()) {
  if (!time) return "–";
  const left = new Date(time) - now, hours = left / 3_600_000;
  return left <= 0 ? "now" : `in ${hours < 1 || hours >= 240 ? age(left) : duration(left)}`;
}

/** Returns the ms from the start of a run until its end or now. */
export function runDuration(run, now = Date.now()) {
  if (!run.startedAt) return undefined;
  return new Date(run.finishedAt ?? now) - new Date(run.startedAt);
}

/** The current time, updated every second: all clocks of the page tick together. */
const redraws = new Set();
let timer;
function tick() {
  for (const redraw of redraws) redraw(Date.now());
}
export function useNow(active = true) {
  const [now, redraw] = useState(Date.now);
  useEffect(() => {
    if (!active) return undefined;
    redraws.add(redraw);
    timer ??= setInterval(tick, 1000);
    return () => {
      redraws.delete(redraw);
      if (!redraws.size) timer = clearInterval(timer);
    };
  }, [active]);
  return now;
}
