import type { Client, Counts, Filter, Run, RuncastError, State, WatchFilter, WatchOptions } from "./client.js";

export interface Shown {
  runs: Run[];
  counts?: Counts;
  gaps: number;
  state: State;
  error?: RuncastError;
}

/** filter null: subscribes to nothing. */
export function useRuns(client: Client, filter: Filter | null): Shown;
export function useWatch(client: Client, filter: WatchFilter | null, options?: WatchOptions): Shown;
