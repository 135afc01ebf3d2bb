// rates.jsx - how many runs of a queue or of a concurrency limit may start in a period, in total and of each key.
import { useState } from "preact/hooks";

import { session } from "../lib/session.js";
import { until, useNow } from "../lib/time.js";
import { Button, Dialog, Field, Figure } from "../ui/basic.jsx";
import { attempt } from "../ui/toast.jsx";

const most = 100_000, labels = { total: "in total", perKey: "for each key" };
const number = (value) => value.toLocaleString("en");

export const rateText = ({ starts, period }) => `${number(starts)} per ${period}`;

/** The rates that are set, as [label, rate]. */
const ratesOf = (rate) => Object.keys(labels).filter((name) => rate?.[name]).map((name) => [labels[name], rate[name]]);

/** The rates of a queue or limit in a table's cell, one a line. */
export const Rates = ({ rate, now }) => ratesOf(rate).map(([label, one]) => (
  <span key={label} class="rates" title={one.nextAt ? `${number(one.available)} left, the next one ${until(one.nextAt, now)}` : undefined}>{rateText(one)} <span class="dim">{label}</span></span>
));

/** The rates of a queue or limit as figures of its page. */
export function RateFigures({ rate }) {
  const now = useNow(), rates = ratesOf(rate);
  return rates.length > 0 && (
    <section class="figures" aria-label="Rate">
      {rates.map(([label, one]) => <Figure key={label} label={`Starts ${label}`} value={rateText(one)} note={one.nextAt ? `${number(one.available)} left, next ${until(one.nextAt, now)}` : undefined} tone={one.available === 0 ? "wait" : ""} />)}
    </section>
  );
}

/** Sets the rates of a queue or limit at `path`; `body` is sent along. An empty number removes a rate. */
export function RateDialog({ place, name, rate, path, body, onClose, onDone }) {
  const texts = Object.fromEntries(Object.keys(labels).flatMap((one) => [[one, String(rate?.[one]?.starts ?? "")], [`${one}Period`, rate?.[one]?.period ?? "1m"]]));
  const [values, setValues] = useState(texts), [isBusy, setBusy] = useState(false), set = (one) => (event) => setValues({ ...values, [one]: event.currentTarget.value });
  const isWrong = (one) => values[one] !== "" && !(Number.isInteger(Number(values[one])) && Number(values[one]) >= 1 && Number(values[one]) <= most);
  const changed = Object.keys(labels).filter((one) => values[one] !== texts[one] || values[one] !== "" && values[`${one}Period`] !== texts[`${one}Period`]);
  async function save() {
    setBusy(true);
    const rates = Object.fromEntries(changed.map((one) => [one, values[one] === "" ? null : { starts: Number(values[one]), period: values[`${one}Period`].trim() }]));
    if (await attempt(() => session.request(place, "POST", `${path}/rate`, { body: { ...body, ...rates } }), `Rate of ${name} set`)) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={`Rate of ${name}`} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} disabled={!changed.length || Object.keys(labels).some(isWrong)} onClick={save}>Set rate</Button></>}>
      <p>A rate limits how many runs start in a period. Executing runs are not affected.</p>
      {Object.entries(labels).map(([one, label]) => <div key={one} class="two">
        <Field label={`Starts ${label}`} type="number" min="1" max={most} value={values[one]} onInput={set(one)} error={isWrong(one) ? `Enter a whole number from 1 to ${most}` : undefined} hint="Leave it empty for no rate." />
        <Field label={`Period ${label}`} value={values[`${one}Period`]} onInput={set(`${one}Period`)} hint="For example 10s, 1m or 1h" />
      </div>)}
    </Dialog>
  );
}
