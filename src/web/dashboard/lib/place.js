// place.js - the place in the address bar: view, project, environment, branch, and the view's query.
//
//   /projects/v3/REF/runs?env=prod&status=FAILED        a view of a project
//   /projects/v3/REF/runs/RUN_ID                        one of its objects
//   /runs/RUN_ID                                        a run in any project
//   /account/authorization-code/CODE                    a login of the CLI that waits for approval
//   /account/tokens                                     the tokens; the CLI sends users without a token there
//   /login, /orgs/…                                     the start page
//   /projects/v3/REF/ai-help?q=…                        the text of a failed build, which the page shows
//
// The official CLI prints links of this form; it names the environment as environment, envSlug or env.
import { base } from "./base.js";
import { Emitter, useEvent } from "./emitter.js";

export const environments = ["dev", "staging", "prod", "preview"];
const slugs = { stg: "staging", development: "dev", production: "prod" };
const moves = new Emitter();

const withoutBase = (pathname) => `${pathname}/`.startsWith(`${base}/`) ? pathname.slice(base.length) : pathname;

/** The start page: the runs of the last project. */
export const home = `${base}/`;

export function readPlace({ pathname, search } = location) {
  const query = new URLSearchParams(search), parts = withoutBase(pathname).split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const named = query.get("env") ?? query.get("environment") ?? query.get("envSlug");
  const env = (Object.hasOwn(slugs, named ?? "") ? slugs[named] : named) ?? undefined; // the view reports an unknown environment
  const branch = env === "preview" ? query.get("branch") ?? undefined : undefined;
  for (const name of ["env", "environment", "envSlug", "branch"]) query.delete(name);
  if (parts[0] === "account" && parts[1] === "authorization-code" && parts[2]) return { view: "approve", id: parts[2], query };
  if (parts[0] === "account" && parts[1] === "tokens") return { view: "start", then: "tokens", query };
  if (parts[0] === "login" || parts[0] === "orgs") return { view: "start", query };
  if (parts[0] === "runs" && parts[1]) return { view: "find", id: parts[1], query };
  if (parts[0] === "projects" && parts[1] === "v3" && parts[2])
    return { ref: parts[2], env, branch, view: parts[3] ?? "runs", id: parts[4], query };
  return { view: parts.length ? "missing" : "start", query };
}

/** The address of a place; members of query that are undefined or "" are left out. */
export function addressOf({ ref, env, branch, view = "runs", id, query = {} }) {
  const named = new URLSearchParams();
  if (env) named.set("env", env);
  if (branch) named.set("branch", branch);
  for (const [name, value] of query instanceof URLSearchParams ? query : Object.entries(query))
    if (value !== undefined && value !== "") named.append(name, value);
  return `${base}/projects/v3/${encodeURIComponent(ref)}/${view}${id ? `/${encodeURIComponent(id)}` : ""}${named.size ? `?${named}` : ""}`;
}

export function go(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"]({}, "", address);
  moves.emit("move");
  if (!replace) window.scrollTo(0, 0);
}

addEventListener("popstate", () => moves.emit("move"));

/** Follows links within the dashboard without loading the page again, except in another tab or window. */
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.target || link.origin !== location.origin || link.hasAttribute("download") || !/^\/(projects|runs|account)\/|^\/$/.test(withoutBase(link.pathname))) return;
  event.preventDefault();
  go(link.pathname + link.search);
});

export function usePlace() {
  useEvent(moves, "move");
  return readPlace();
}
