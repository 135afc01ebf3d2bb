// find.jsx - opens a run whose link does not name its project: searches all projects of the user.
import { useEffect } from "preact/hooks";

import { addressOf, environments, go, home } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Empty, Loading } from "../ui/basic.jsx";

const branchesMax = 30; // max branches per project to search if no environment has the run

async function branchesOf(ref) {
  const branches = await session.branches(ref).catch(() => []);
  return branches.slice(0, branchesMax).map((branch) => ({ ref, env: "preview", branch }));
}

/** Returns the first of the places that has the run. */
async function findIn(places, id) {
  const found = await Promise.all(places.map((place) => session.request(place, "GET", `/api/v3/runs/${encodeURIComponent(id)}`).then(() => place, () => undefined)));
  return found.find(Boolean);
}

export function Find({ id, projects }) {
  const { data, isLoading, error } = useQuery([id], async () => {
    const refs = projects.map(({ externalRef }) => externalRef);
    for (const ref of refs) {
      const place = await findIn(environments.map((env) => ({ ref, env })), id);
      if (place) return place;
    }
    for (const ref of refs) {
      const place = await findIn(await branchesOf(ref), id);
      if (place) return place;
    }
    return {};
  });
  useEffect(() => { if (data?.env) go(addressOf({ ...data, view: "runs", id }), { replace: true }); }, [data]);
  if (isLoading || data?.env) return <Loading what="Searching for the run" />;
  return <Empty isPage title="Run not found"><p>{error?.message ?? <>No environment of your projects has a run <code>{id}</code>.</>}</p><p><a href={home}>Go to your runs</a></p></Empty>;
}
