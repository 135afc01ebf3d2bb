// filter.js - the filter of a list of runs: as the address bar has it, as the gateway's live lists take
// it, as its calls take it, and as bulk actions take it. All mean the same.
const lists = ["status", "task", "tag", "version", "queue", "machine"];
const singles = ["batch", "schedule", "period", "from", "to", "test", "bulk"];
const gatewayNames = { task: "taskIdentifier", test: "isTest", bulk: "bulkAction" };

/** { status: ["FAILED"], task: […], batch: "…", … }, without what is not set. */
export function readFilter(query) {
  const filter = {};
  for (const name of lists) {
    const values = query.getAll(name).flatMap((text) => text.split(",")).filter(Boolean);
    if (values.length) filter[name] = [...new Set(values)];
  }
  for (const name of singles) if (query.get(name)) filter[name] = query.get(name);
  return filter;
}

/** Without a time a list has the last week: said, so that lists, counts and bulk actions mean the same runs. */
export const withTime = (filter) => filter.period || filter.from || filter.to ? filter : { ...filter, period: "7d" };

/** The query of the address bar. */
export function writeFilter(filter) {
  return Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, [value].flat().join(",")]).filter(([, text]) => text));
}

/** What a live list takes. */
export function watchFilter(filter) {
  return Object.fromEntries(Object.entries(withTime(filter)).map(([name, value]) => [gatewayNames[name] ?? name, name === "test" ? value === "true" : value]));
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

/** Whether nothing narrows the list. */
export const isOpenFilter = (filter) => !Object.keys(filter).length;
