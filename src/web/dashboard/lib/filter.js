// filter.js - the filter of a list of runs, in four forms that mean the same.
//
// The forms are for the address bar, live lists, calls, and bulk actions.
const lists = ["status", "task", "tag", "version", "queue", "machine"];
const singles = ["batch", "schedule", "period", "from", "to", "test", "root", "bulk"];
const gatewayNames = { task: "taskIdentifier", test: "isTest", root: "rootOnly", bulk: "bulkAction" };

/** Reads { status: ["FAILED"], task: […], batch: "…", … }; unset members are left out. */
export function readFilter(query) {
  const filter = {};
  for (const name of lists) {
    const values = query.getAll(name).flatMap((text) => text.split(",")).filter(Boolean);
    if (values.length) filter[name] = [...new Set(values)];
  }
  for (const name of singles) if (query.get(name)) filter[name] = query.get(name);
  return filter;
}

/** Adds the default period of 7 days if the filter has no time, so that lists, counts and bulk actions select the same runs. */
export const withTime = (filter) => filter.period || filter.from || filter.to ? filter : { ...filter, period: "7d" };

/** The query of the address bar. */
export function writeFilter(filter) {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, [value].flat().join(",")]).filter(([, text]) => text));
}

/** The filter of a live list. */
export function watchFilter(filter) {
  return Object.fromEntries(Object.entries(withTime(filter)).map(([name, value]) => [gatewayNames[name] ?? name, name === "test" || name === "root" ? value === "true" : value]));
}

/** The query of GET /api/v1/runs. */
export function listQuery(filter, page = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(watchFilter(filter))) {
    const inner = ["period", "from", "to"].includes(name) ? `filter[createdAt][${name}]` : `filter[${name}]`;
    query.set(inner, [value].flat().join(","));
  }
  for (const [name, value] of Object.entries(page)) query.set(`page[${name}]`, value);
  return query.toString();
}

/** Returns true if the filter selects all runs. */
export const isOpenFilter = (filter) => !Object.keys(filter).length;
