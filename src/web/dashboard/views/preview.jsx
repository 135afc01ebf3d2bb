// preview.jsx - chooses a branch of the preview environment, whose runs all belong to branches.
import { useEffect } from "preact/hooks";

import { addressOf, go } from "../lib/place.js";
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Empty, Loading, Page, Problem } from "../ui/basic.jsx";

/** The branches of a project's preview. */
export function useBranches(ref, enabled = true) {
  const { data, ...rest } = useQuery([ref, "branches"], () => session.branches(ref), { enabled });
  return { ...rest, branches: data };
}

export function InBranch({ place, children }) {
  const { branches, error, reload } = useBranches(place.ref), [first] = branches ?? [];
  const exists = branches?.includes(place.branch), withBranch = (branch) => addressOf({ ...place, branch, id: undefined, query: {} });
  useEffect(() => { if (!place.branch && first) go(addressOf({ ...place, branch: first }), { replace: true }); }, [place.branch, first]);
  if (exists) return children;
  if (!branches || (!place.branch && first)) return error ? <Problem error={error} retry={reload} /> : <Loading />;
  return (
    <Page title="Preview">
      {place.branch ? <Empty title="Branch not found"><p>Preview has no branch <code>{place.branch}</code>, or it was archived.</p>{branches.length > 0 && <p>Branches: {branches.slice(0, 20).map((branch, at) => <>{at > 0 && ", "}<a href={withBranch(branch)}>{branch}</a></>)}</p>}</Empty>
        : <Empty title="No preview branches yet"><p>Preview runs belong to a branch. A deployment creates one:</p><pre>npx trigger.dev@4.8.3 deploy --env preview --branch my-branch</pre></Empty>}
    </Page>
  );
}
