// deployments.jsx - deployed versions: their states, build logs, promotion and rollback.
import { useEffect, useRef, useState } from "preact/hooks";

import { useCached } from "../lib/details.js";
import { addressOf } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { deployCommand } from "../lib/snippets.js";
import { duration } from "../lib/time.js";
import { Button, Dialog, Empty, Facts, Id, Loading, Page, Problem, Table, Time, warningOf, Warnings } from "../ui/basic.jsx";
import { Icon } from "../ui/icons.jsx";
import { attempt } from "../ui/toast.jsx";
import { currentWorker } from "./test.jsx";

const tones = { PENDING: "wait", INSTALLING: "run", BUILDING: "run", DEPLOYING: "run", DEPLOYED: "good", FAILED: "bad", CANCELED: "off", TIMED_OUT: "bad" };
const final = new Set(["DEPLOYED", "FAILED", "CANCELED", "TIMED_OUT"]);
const State = ({ status }) => <span class={`status ${tones[status] ?? "off"}`}><i />{status[0] + status.slice(1).toLowerCase().replace("_", " ")}</span>;

/** The tasks and the SDK of a deployed version. */
const useVersion = (place, { version, status } = {}) => useCached(`version ${place.ref}/${place.env}/${place.branch}/${version}`, async () => {
  const { worker } = await currentWorker(place, version);
  return { tasks: worker?.tasks ?? [], sdk: worker?.sdkVersion };
}, status === "DEPLOYED");

function VersionCell({ place, deployment, show }) {
  const version = useVersion(place, deployment);
  return version?.tasks ? show(version) : <span class="dim">–</span>;
}

/** Lists the tasks that were added and removed since the version before. */
function Changes({ place, tasks, before }) {
  const earlier = useVersion(place, before);
  if (!earlier?.tasks) return null;
  const names = (list) => new Set(list.map(({ slug }) => slug)), now = names(tasks), then = names(earlier.tasks);
  const added = [...now].filter((slug) => !then.has(slug)), removed = [...then].filter((slug) => !now.has(slug));
  return (
    <p class="changes dim">{!added.length && !removed.length ? "Same tasks as" : "Compared to"} <a href={addressOf({ ...place, id: before.shortCode, query: {} })}>{before.version}</a>
      {added.map((slug) => <span key={slug} class="added">+ {slug}</span>)}{removed.map((slug) => <span key={slug} class="removed">− {slug}</span>)}</p>
  );
}

const useCurrent = (place) => useQuery([place.ref, place.env, place.branch, "current"], () => session.request(place, "GET", "/api/v1/deployments/current").catch((error) => { if (error.status === 404) return null; throw error; }), { everyMs: 4000 });

function PromoteDialog({ place, version, current, onClose, onDone }) {
  const [isBusy, setBusy] = useState(false), isBack = current && version < current.version;
  async function promote() {
    setBusy(true);
    if (await attempt(() => session.request(place, "POST", `/api/v1/deployments/${encodeURIComponent(version)}/promote?allowRollbacks=true`, { body: {} }), `${version} is now the current version`)) { onDone(); onClose(); }
    setBusy(false);
  }
  return (
    <Dialog title={isBack ? "Roll back" : "Promote"} onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" busy={isBusy} onClick={promote}>{isBack ? `Roll back to ${version}` : `Promote ${version}`}</Button></>}>
      <p>New runs in {place.env} use version <b>{version}</b>{current && <> instead of <b>{current.version}</b></>}. Runs that have started keep their version.</p>
    </Dialog>
  );
}

function Log({ place, deployment }) {
  const { data, error } = useQuery([deployment.id, "logs"], () => session.request(place, "GET", `/api/v1/deployments/${deployment.id}/logs`, { text: true }), { everyMs: final.has(deployment.status) ? undefined : 1000 });
  const box = useRef();
  useEffect(() => { if (box.current && !final.has(deployment.status)) box.current.scrollTop = box.current.scrollHeight; }, [data]);
  if (error?.status === 404) return <p class="dim">No build log kept</p>;
  return error ? <Problem error={error} /> : data === undefined ? <Loading /> : <pre class="log" ref={box} tabIndex={0} aria-label="Build log">{data || "No output yet"}</pre>;
}

/** Finds one of the newest hundred deployments by id, short code or version. */
export async function findDeployment(place, name) {
  const { data } = await session.request(place, "GET", "/api/v1/deployments?page[size]=100");
  return data.find(({ id, shortCode, version }) => [id, shortCode, version].includes(name));
}

function Deployment({ place }) {
  const current = useCurrent(place), [isPromoting, setPromoting] = useState(false);
  const { data, error, reload } = useQuery([place.ref, place.env, place.id], async () => {
    const { data: all } = await session.request(place, "GET", "/api/v1/deployments?page[size]=100"), at = all.findIndex(({ id, shortCode, version }) => [id, shortCode, version].includes(place.id)), found = all[at];
    if (!found && !place.id.startsWith("deployment_")) throw Object.assign(new Error(`${place.env} has no deployment ${place.id}`), { status: 404 });
    return { ...found, before: at < 0 ? undefined : all.slice(at + 1).find(({ status }) => status === "DEPLOYED"), ...await session.request(place, "GET", `/api/v1/deployments/${encodeURIComponent(found?.id ?? place.id)}`) };
  }, { everyMs: 2000 });
  const back = addressOf({ ...place, id: undefined, query: {} });
  if (!data) return <Page title="Deployment">{error?.status === 404 ? <Empty title="Deployment not found"><p>{place.env} has no deployment <code>{place.id}</code>.</p><p><a href={back}>Show all deployments</a></p></Empty> : error ? <Problem error={error} /> : <Loading />}</Page>;
  const isKnown = !current.isLoading, isCurrent = current.data?.id === data.id, tasks = data.worker?.tasks ?? [];
  return (
    <Page title={data.version} subtitle={<span class="row"><a class="back" href={back}><Icon name="left" size={14} />Deployments</a><State status={data.status} />{isCurrent && <em class="mini current">current</em>}<Id>{data.id}</Id></span>}
      actions={<>{!final.has(data.status) && <Button icon="stop" onClick={() => attempt(() => session.request(place, "POST", `/api/v1/deployments/${data.id}/cancel`, { body: {} }), "Deployment canceled").then(reload)}>Cancel</Button>}
        {data.status === "DEPLOYED" && isKnown && !isCurrent && <Button kind="primary" onClick={() => setPromoting(true)}>{current.data && data.version < current.data.version ? "Roll back…" : "Promote…"}</Button>}</>}>
      {data.errorData && <section class="failure" aria-label="Error"><h2>{data.errorData.name ? `${data.errorData.name}: ` : ""}{data.errorData.message}</h2>{(data.errorData.stack ?? data.errorData.stderr) && <pre class="stack-trace" tabIndex={0}>{data.errorData.stack ?? data.errorData.stderr}</pre>}</section>}
      <Warnings warnings={data.worker?.warnings} />
      <div class="columns">
        <div class="stack">
          {tasks.length > 0 && <section class="panel" aria-label="Tasks"><header><h2>Tasks</h2><span class="dim">{tasks.length}</span></header>
            {data.before && <div class="pad"><Changes place={place} tasks={tasks} before={data.before} /></div>}
            <div class="task-grid">{tasks.map(({ slug, filePath }) => <div key={slug}><a href={addressOf({ ...place, view: "test", id: slug, query: {} })}>{slug}</a>{warningOf(data.worker.warnings, slug) && <em class="mini" title={warningOf(data.worker.warnings, slug).message}>not supported</em>}<small class="dim">{filePath}</small></div>)}</div></section>}
          <section class="panel" aria-label="Build"><header><h2>Build log</h2></header><div class="body"><Log place={place} deployment={data} /></div></section>
        </div>
        <aside class="stack">
          <section class="panel" aria-label="Details"><header><h2>Details</h2></header><div class="body"><Facts rows={[
            ["Created", data.createdAt && <Time at={data.createdAt} />], ["Deployed", data.deployedAt && <Time at={data.deployedAt} />], ["Duration", data.deployedAt && data.createdAt && duration(new Date(data.deployedAt) - new Date(data.createdAt))], ["By", data.git?.commitAuthorName], ["Short code", data.shortCode], ["Runtime", data.runtime], ["SDK", <VersionCell place={place} deployment={data} show={({ sdk }) => sdk} />], ["Commit", data.git?.commitSha && <><code>{data.git.commitSha.slice(0, 8)}</code> {data.git.commitMessage?.split("\n")[0]}</>], ["Branch", data.git?.commitRef], ["Triggered via", data.triggeredVia],
            ["Runs", <a href={addressOf({ ...place, view: "runs", id: undefined, query: { version: data.version } })}>Show runs of this version</a>],
          ]} /></div></section>
        </aside>
      </div>
      {isPromoting && <PromoteDialog place={place} version={data.version} current={current.data} onClose={() => setPromoting(false)} onDone={() => { current.reload(); reload(); }} />}
    </Page>
  );
}

const subjectMax = 72; // characters

/** Returns the first line of a commit's message, shortened. */
function subjectOf(message) {
  const [line] = message.split("\n");
  return line.length > subjectMax ? `${line.slice(0, subjectMax - 1).trimEnd()}…` : line;
}

function List({ place }) {
  const [before, setBefore] = useState([]), [promoted, setPromoted] = useState(), current = useCurrent(place);
  const { data, error, reload } = useQuery([place.ref, place.env, place.branch, before], () => session.request(place, "GET", `/api/v1/deployments?${new URLSearchParams({ "page[size]": 30, ...before.length && { "page[after]": before.at(-1) } })}`), { everyMs: 3000 });
  const rows = data?.data ?? [], isKnown = !current.isLoading;
  return (
    <Page title="Deployments" subtitle={current.data && <>New runs use version <b>{current.data.version}</b></>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Loading />}
      {data && !rows.length && <Empty title={`No deployments in ${place.env}`}>{place.env === "dev" ? <p>In dev, the CLI executes your tasks: <code>npx trigger.dev@4.8.3 dev</code>. Choose another environment to see its deployments.</p>
        : <><p>Deploy your project, and the gateway builds and executes it:</p><pre>{deployCommand(place)}</pre><p>This requires a gateway started with <code class="nowrap">--execute</code>, or a connected supervise role.</p></>}</Empty>}
      {rows.length > 0 && <Table label="Deployments" rows={rows} columns={[
        ["Version", (one) => <span class="nowrap"><a href={addressOf({ ...place, id: one.shortCode ?? one.id, query: {} })}>{one.version}</a> {current.data?.id === one.id && <em class="mini current">current</em>}</span>],
        ["Status", (one) => <State status={one.status} />],
        ["Commit", (one) => one.git?.commitMessage ? <span title={one.git.commitSha}>{subjectOf(one.git.commitMessage)}{one.git.commitRef && <em class="mini branch-name">{one.git.commitRef}</em>}</span> : <span class="dim">–</span>],
        ["By", (one) => one.git?.commitAuthorName ?? <span class="dim">–</span>, "wide-cell-only"],
        ["Tasks", (one) => <VersionCell place={place} deployment={one} show={({ tasks }) => tasks.length} />, "number"],
        ["SDK", (one) => <VersionCell place={place} deployment={one} show={({ sdk }) => sdk ?? "–"} />, "number wide-cell-only"],
        ["Created", (one) => <Time at={one.createdAt} relative />, "number"],
        ["Duration", (one) => one.deployedAt ? duration(new Date(one.deployedAt) - new Date(one.createdAt)) : "–", "number wide-cell-only"],
        ["Actions", (one) => one.status === "DEPLOYED" && isKnown && current.data?.id !== one.id && <Button kind="small" aria-label={`Make ${one.version} the current version`} onClick={() => setPromoted(one.version)}>{current.data && one.version < current.data.version ? "Roll back…" : "Promote…"}</Button>, "actions-cell"],
      ]} />}
      {(before.length > 0 || data?.pagination?.next) && <div class="row-end flat"><Button disabled={!before.length} onClick={() => setBefore(before.slice(0, -1))}>Previous</Button><Button disabled={!data?.pagination?.next} onClick={() => setBefore([...before, data.pagination.next])}>Next</Button></div>}
      {promoted && <PromoteDialog place={place} version={promoted} current={current.data} onClose={() => setPromoted()} onDone={() => { current.reload(); reload(); }} />}
    </Page>
  );
}

export const Deployments = ({ place }) => place.id ? <Deployment key={place.id} place={place} /> : <List place={place} />;
