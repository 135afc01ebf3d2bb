// workers.jsx - connected workers, and the version for new runs.
import { gatewayUrl } from "../lib/base.js";
import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { deployCommand } from "../lib/snippets.js";
import { Empty, Facts, Loading, Page, Problem, Status, Table, Time, warningOf, Warnings } from "../ui/basic.jsx";
import { currentWorker } from "./test.jsx";

const kinds = { cli: ["Developer CLI", "Runs trigger.dev dev on a developer's machine"], supervise: ["Supervisor", "Executes deployed versions"], worker: ["Worker", "Connected with a worker token"] };

export function Workers({ place }) {
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch], () => session.request(place, "GET", "/api/v1/environments/workers"), { everyMs: 3000 });
  const { data: current } = useQuery([place.ref, place.env, place.branch, "current"], () => currentWorker(place), { everyMs: 5000 });
  const rows = data?.data ?? [], worker = current?.worker;
  return (
    <Page title="Workers" subtitle={worker && <>New runs in {place.env} use version <b>{worker.version}</b></>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !rows.length && <Empty title={`No worker is connected to ${place.env}`}>{place.env === "dev"
        ? <><p>Runs wait until a worker connects. In your project:</p><pre>npx trigger.dev@4.8.3 dev</pre></>
        : <><p>Runs wait until a worker connects. Start the gateway with <code class="nowrap">--execute</code>, or a supervise role on another machine:</p><pre>runcast supervise --url {gatewayUrl}</pre></>}</Empty>}
      {rows.length > 0 && <Table label="Workers" rows={rows.map((one, at) => ({ ...one, at }))} rowKey="at" columns={[
        ["Worker", (one) => <span><b>{kinds[one.kind][0]}</b><br /><span class="dim">{kinds[one.kind][1]}</span></span>],
        ["Version", (one) => one.version ? <><a href={addressOf({ ...place, view: "runs", query: { version: one.version } })}>{one.version}</a> {one.version === worker?.version && <em class="mini current">current</em>}</> : <span class="dim">Any deployed version</span>],
        ["Status", (one) => one.isConnected ? (one.waiting ? <Status tone="good" label="Ready" /> : <Status tone="run" label="Busy" />) : <Status tone="off" label="Disconnected" />],
        ["Connected", (one) => one.connectedAt ? <Time at={one.connectedAt} relative /> : <span class="dim">–</span>, "number"],
        ["Last seen", (one) => one.lastHeardAt ? <Time at={one.lastHeardAt} relative /> : <span class="dim">now</span>, "number"],
      ]} />}
      {rows.length > 0 && current && !worker && <Empty title={`No version in ${place.env}`}><p>Runs wait until a version is {place.env === "dev" ? "registered" : "deployed"}:</p><pre>{place.env === "dev" ? "npx trigger.dev@4.8.3 dev" : deployCommand(place)}</pre></Empty>}
      {worker && <section class="panel" aria-label="Current version"><header><h2>Current version</h2></header><div class="body">
        <Warnings warnings={worker.warnings} />
        <Facts rows={[["Version", worker.version], ["SDK", worker.sdkVersion], ["CLI", worker.cliVersion]]} />
      </div>
        <Table label="Tasks" rows={worker.tasks ?? []} rowKey="slug" columns={[
          ["Task", ({ slug }) => <><a class="strong" title={slug} href={addressOf({ ...place, view: "test", id: slug, query: {} })}>{slug}</a> {warningOf(worker.warnings, slug) && <em class="mini" title={warningOf(worker.warnings, slug).message}>not supported</em>}</>],
          ["Type", ({ triggerSource }) => triggerSource === "SCHEDULED" ? "Scheduled" : "Standard"], ["File", ({ filePath }) => <code class="dim nowrap">{filePath}</code>],
        ]} /></section>}
    </Page>
  );
}
