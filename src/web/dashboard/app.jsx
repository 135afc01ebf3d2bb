// app.jsx - the dashboard's root: sign-in, the place in the address bar, and its view.
import "./style.css";

import { Component, render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { useEvent } from "./lib/emitter.js";
import { addressOf, environments, go, home, usePlace } from "./lib/place.js";
import { useQuery } from "./lib/query.js";
import { session } from "./lib/session.js";
import { Button, Empty, Loading, Page, Problem } from "./ui/basic.jsx";
import { Toasts } from "./ui/toast.jsx";
import { Approve } from "./views/approve.jsx";
import { BuildHelp } from "./views/build_help.jsx";
import { findDeployment } from "./views/deployments.jsx";
import { Find } from "./views/find.jsx";
import { Shell } from "./views/shell.jsx";
import { InBranch } from "./views/preview.jsx";
import { SignIn, takeCode } from "./views/sign_in.jsx";
import { views } from "./views/views.js";

const lastKey = "runcast.place";

/** The last place of this tab, if its project still exists; otherwise the first project. */
function lastPlace(projects) {
  let last = {};
  try { last = JSON.parse(sessionStorage.getItem(lastKey)) ?? {}; } catch { /* none */ }
  return projects.some(({ externalRef }) => externalRef === last.ref) ? last : { ref: projects[0]?.externalRef };
}

/** The environment to show first: dev if it has runs, otherwise the first with runs. */
async function busiest(ref) {
  const counted = await Promise.all(["dev", "prod", "staging"].map(async (env) => {
    const { total } = await session.request({ ref, env }, "GET", "/api/v1/runs/counts").catch(() => ({ total: 0 }));
    return { env, total };
  }));
  return (counted.find(({ env, total }) => env === "dev" && total) ?? counted.find(({ total }) => total) ?? counted[0]).env;
}

/** Return true if an environment has the object of a CLI link, which does not name the environment. */
const has = {
  runs: async (place, id) => Boolean(await session.request(place, "GET", `/api/v3/runs/${encodeURIComponent(id)}`)),
  deployments: async (place, id) => Boolean(await findDeployment(place, id)),
};

function NoEnvironment({ place, projects }) {
  const { data, error } = useQuery([place.ref, place.view, place.id], async () => {
    const last = lastPlace(projects);
    for (const env of place.id && has[place.view] ? [last.ref === place.ref && last.env, ...environments].filter(Boolean) : [])
      if (await has[place.view]({ ref: place.ref, env }, place.id).catch(() => false)) return env;
    return last.ref === place.ref && last.env !== "preview" && last.env || busiest(place.ref);
  });
  useEffect(() => { if (data) go(addressOf({ ...place, env: data }), { replace: true }); }, [data]);
  return error ? <Problem error={error} /> : <Loading />;
}

/** Shows the error of a view that throws. The rest of the page stays usable, and another address opens its view. */
class Guard extends Component {
  static getDerivedStateFromError(error) { return { error }; }

  componentDidUpdate({ at }) { if (this.state.error && at !== this.props.at) this.setState({ error: undefined }); }

  render({ children }, { error }) {
    if (!error) return children;
    return <Page title="View failed"><Empty title="Something went wrong"><p>{String(error.message)}</p><p><Button onClick={() => this.setState({ error: undefined })}>Try again</Button></p></Empty></Page>;
  }
}

function SignedIn({ place }) {
  const { data: projects, error, reload } = useQuery(["projects"], () => session.projects());
  useEffect(() => {
    if (place.ref && environments.includes(place.env)) try { sessionStorage.setItem(lastKey, JSON.stringify({ ref: place.ref, env: place.env, branch: place.branch })); } catch { /* storage is full or forbidden */ }
  }, [place.ref, place.env, place.branch]);
  useEffect(() => {
    if (!projects?.length || place.view !== "start") return;
    const last = lastPlace(projects);
    go(addressOf({ ...last, view: place.then ?? "runs" }), { replace: true });
  }, [projects, place.view]);

  if (place.view === "approve") return <Approve code={place.id} />;
  if (!projects) return <main class="alone">{error ? <Problem error={error} retry={reload} /> : <Loading />}</main>;
  if (!projects.length) return <main class="alone"><Empty isPage title="No projects"><p>Your organization has no project. Create one on the gateway's machine: <code>runcast project create NAME</code></p></Empty></main>;
  if (place.view === "start") return <main class="alone"><Loading /></main>;
  if (place.view === "find") return <main class="alone"><Find id={place.id} projects={projects} /></main>;
  const project = projects.find(({ externalRef }) => externalRef === place.ref);
  let content;
  if (!project) content = <Empty isPage title={place.ref ? "Project not found" : "Page not found"}><p>{place.ref && <>Your organizations have no project <code>{place.ref}</code>. </>}<a href={home}>Go to your projects</a></p></Empty>;
  else if (place.env && !environments.includes(place.env)) content = <Empty isPage title={`Environment ${place.env} not found`}><p>Available environments: {environments.map((env, at) => <>{at > 0 && ", "}<a href={addressOf({ ...place, env })}>{env}</a></>)}.</p></Empty>;
  else if (!place.env) content = <NoEnvironment place={place} projects={projects} />;
  else {
    const View = place.view === "ai-help" ? BuildHelp : views[place.view]?.View;
    content = View ? <View key={`${place.ref}/${place.env}/${place.branch}/${place.view}`} place={place} project={project} /> : <Page title="Not found"><Empty title="Page not found"><p><a href={addressOf({ ...place, view: "runs", id: undefined })}>Show all runs</a></p></Empty></Page>;
    if (place.env === "preview") content = <InBranch place={place}>{content}</InBranch>;
  }
  return <Shell place={place} project={project} projects={projects}><Guard at={location.pathname + location.search}>{content}</Guard></Shell>;
}

/** The sign-in code of the opened link, also if the link was opened in a tab with the dashboard. A user who is
 * signed in stays signed in. */
function useCode(isSignedIn) {
  const [code, setCode] = useState(takeCode);
  useEffect(() => {
    const take = () => setCode(takeCode());
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  useEffect(() => { if (isSignedIn) setCode(undefined); }, [isSignedIn, code]);
  return code;
}

function App() {
  useEvent(session, "change");
  const place = usePlace(), { isSignedIn } = session, code = useCode(isSignedIn);
  return <>{isSignedIn ? <SignedIn place={place} /> : <SignIn key={code} code={code} />}<Toasts /></>;
}

const root = document.getElementById("app");
root.replaceChildren(); // removes the bar that index.html shows until this program is loaded
render(<App />, root);
