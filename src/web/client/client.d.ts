/** A run as the gateway sends it. `fields` of connect() chooses its fields. */
export interface Run {
  id: string;
  taskIdentifier: string;
  /** A status of SDK 3.x, or of SDK 4.x with `api: "2025-07-16"`. */
  status: string;
  tags: string[];
  /** ISO 8601, like all times. */
  createdAt: string;
  updatedAt: string;
  batchId?: string;
  payload?: unknown;
  output?: unknown;
  metadata?: Record<string, unknown>;
  error?: { message?: string; name?: string; stackTrace?: string };
  /** This and the next one are sent only if they are named in `fields`. */
  queue?: string;
  realtimeStreams?: string[];
  number?: number;
  durationMs?: number;
  costInCents?: number;
  baseCostInCents?: number;
  idempotencyKey?: string;
  ttl?: string;
  version?: string;
  attemptCount?: number;
  isTest?: boolean;
  queuedAt?: string;
  startedAt?: string;
  delayedUntil?: string;
  expiredAt?: string;
  finishedAt?: string;
}

export interface Counts {
  byStatus: Record<string, number>;
  total: number;
  /** They are exact up to this change. */
  seq: number;
}

/** A code of runs.v1 ("forbidden"), or the close code of the connection (4001). */
export interface RuncastError extends Error {
  code: string | number;
}

/**
 * connecting: not up to date, the mirror has older data. live: in sync. paused: the tab is hidden.
 * closed: does not reconnect.
 */
export type State = "connecting" | "live" | "paused" | "closed";

export interface MirrorEvents {
  /** New or changed runs, and ids of removed ones; also called when counts change. */
  change: { runs: Run[]; removed: string[] };
  /** The change that the mirror has reached; the header x-runs-seq of a write names the change that shows it. */
  synced: number;
  /** The gateway skipped states of a run because this client was slow or disconnected. */
  gap: { run: Run; skipped: number };
  state: State;
}

/** The runs of a filter as they are now. A changed run is a new object. */
export interface Mirror extends AsyncIterable<Run> {
  /** By id; newest first for a watch. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly counts?: Counts;
  /** How many states were skipped. */
  readonly gaps: number;
  readonly state: State;
  /** Why it is closed, or not connected. */
  readonly error?: RuncastError;
  /** Returns a function that removes the listener. */
  on<Name extends keyof MirrorEvents>(event: Name, listener: (value: MirrorEvents[Name]) => void): () => void;
  close(): void;
  /** Yields each run, and again when it has changed: a slow reader gets its newest state. */
  [Symbol.asyncIterator](): AsyncIterator<Run>;
}

type Topic = { run: string } | { tags: string[] } | { batch: string } | { all: true };

export type Filter = Topic & {
  task?: string | string[];
  /** Created at or after: "24h" (by this clock), or a time. */
  since?: string | number | Date;
  /** Number of newest runs to begin with; later runs are added. */
  limit?: number;
  counts?: boolean;
};

type Some<Value> = Value | Value[];

/** Filters of GET /api/v1/runs. */
export interface WatchFilter {
  status?: Some<string>;
  taskIdentifier?: Some<string>;
  tag?: Some<string>;
  version?: Some<string>;
  queue?: Some<string>;
  machine?: Some<string>;
  batch?: string;
  schedule?: string;
  isTest?: boolean;
  /** Only runs that no other run has triggered. */
  rootOnly?: boolean;
  period?: string;
  from?: string | number;
  to?: string | number;
  [name: string]: unknown;
}

export interface WatchOptions {
  /** At most 200. */
  limit?: number;
  counts?: boolean;
}

export interface Options {
  /** A public access token; or a secret key if no user can see it. */
  token?: string;
  /** Returns a token; called for each connection, and before the current token expires. */
  getToken?: () => string | Promise<string>;
  /** Wanted fields, or unwanted ones with a minus: ["-payload"]. */
  fields?: string[];
  /** Minimum ms between two patches. */
  every?: number;
  api?: "2025-07-16";
  /** Ms without data after which the connection is checked, and then replaced: 30,000. */
  silence?: number;
  /** Ms after which a hidden tab disconnects: 60,000. Infinity: never. */
  hiddenAfter?: number;
  /** Needed where the global one is missing (Node 18 and 20): the one of the package ws. */
  WebSocket?: unknown;
}

export interface Client {
  readonly state: State;
  readonly error?: RuncastError;
  subscribe(filter: Filter): Mirror;
  /** The newest runs of a filter; a run leaves when it no longer matches. */
  watch(filter?: WatchFilter, options?: WatchOptions): Mirror;
  on(event: "state", listener: (state: State) => void): () => void;
  /** Errors that do not close the client: a token could not be fetched, or was rejected. */
  on(event: "error", listener: (error: RuncastError) => void): () => void;
  /** Closes the connection and all mirrors. */
  close(): void;
}

export function connect(url: string | URL, options: Options): Client;
