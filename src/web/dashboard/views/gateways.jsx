// gateways.jsx - the gateways on the database: which one leads, and the lag of the others.
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Empty, Loading, Page, Problem, Status, Table, Time } from "../ui/basic.jsx";

const tones = { leads: "good", follows: "pause", "stands by": "wait", down: "bad" };
const labels = { leads: "Leads", follows: "Follows", "stands by": "Stands by", down: "Down" };

/** The gateways that the user may see, from the gateway that leads. */
export const useGateways = (place, options) => useQuery([place.ref, place.env, place.branch, "gateways"], () => session.request(place, "GET", "/api/v1/gateways"), options);

function Lag({ lag, role }) {
  if (!lag) return <span class="dim">{role === "follows" ? "unknown" : "–"}</span>;
  return <span class="nowrap">{lag.ms.toLocaleString("en")} ms, <span class="dim">{lag.changes.toLocaleString("en")} {lag.changes === 1 ? "change" : "changes"}</span></span>;
}

export function Gateways({ place }) {
  const { data, error, reload } = useGateways(place, { everyMs: 2000 }), rows = data?.gateways ?? [];
  return (
    <Page title="Gateways" subtitle={rows.length > 1 && "One gateway leads: it decides and writes. The others follow it"}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !rows.length && <Empty title="No gateways to show"><p>Only users of the first organization see the gateways. On a gateway's machine, list them with <code class="nowrap">runcast gateways</code></p></Empty>}
      {rows.length > 0 && <Table label="Gateways" rows={rows} rowKey="name" columns={[
        ["Gateway", ({ name }) => <b>{name}</b>],
        ["Role", ({ role, reason }) => <><Status tone={tones[role]} label={labels[role]} />{reason && <><br /><span class="dim">{reason}</span></>}</>],
        ["Version", ({ version }) => version ?? <span class="dim">unknown</span>],
        ["Lag", (one) => <Lag {...one} />, "number"],
        ["Since", ({ since }) => <Time at={since} relative />, "number"],
      ]} />}
    </Page>
  );
}
