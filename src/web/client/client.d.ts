/** A run as the gateway sends it. Which fields it has, `fields` of connect() chooses. */
export interface Run {
  id: string;
  taskIdentifier: string;
  /** Of SDK 3.x, or of SDK 4.x with `api: "2025-07-16"`. */
  status: string;
  tags: string[];
  /** ISO 8601, as all times. */
  createdAt: string;
  updatedAt: string;
  batchId?: string;
  payload?: unknown;
  output?: unknown;
  metadata?: Record<string, unknown>;
  error?: { message?: string; name?: string; stackTrace?: string };
  /** These two to those who name them in `fields`. */
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
  /** The change up to which they are exact. */
  seq: number;
}

/** A code of runs.v1 ("forbidden"), or that with which the gateway closed the connection (4001). */
export interface RuncastError extends Error {
  code: string | number;
}

/**
 * connecting: not, or not yet, up to date; what the mirror holds is older. live: in sync.
 * paused: the tab is hidden. closed: for ever.
 */
export type State = "connecting" | "live" | "paused" | "closed";

export interface MirrorEvents {
  /** Runs that are new or have changed, and the ids of those that are gone; counts, too. */
  change: { runs: Run[]; removed: string[] };
  /** The mirror is what the gateway had at this change: x-runs-seq of a write says when it shows it. */
  synced: number;
  /** The gateway skipped states of a run, since this client was slow or away. */
  gap: { run: Run; skipped: number };
  state: State;
}

/** The runs of a filter, as they are now. A run that changes is a new object. */
export interface Mirror extends AsyncIterable<Run> {
  /** By id. Those of a watch have the newest first. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly counts?: Counts;
  /** How many states were skipped. */
  readonly gaps: number;
  readonly state: State;
  /** Why it is closed, or not connected. */
  readonly error?: RuncastError;
  /** Gives the function that ends it. */
  on<Name extends keyof MirrorEvents>(event: Name, listener: (value: MirrorEvents[Name]) => void): () => void;
  close(): void;
  /** Each run, and again when it has changed: who is slow gets its newest state. */
  [Symbol.asyncIterator](): AsyncIterator<Run>;
}

type Topic = { run: string } | { tags: string[] } | { batch: string } | { all: true };

export type Filter = Topic & {
  task?: string | string[];
  /** Created at or after: "24h" (by the clock here), a time. */
  since?: string | number | Date;
  /** The newest so many when it begins, and all that come later. */
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
  /** A public access token; a secret key where nobody else sees it. */
  token?: string;
  /** Asked for a token with each connection, and before the one in use expires. */
  getToken?: () => string | Promise<string>;
  /** The fields wanted, or with a minus those left out: ["-payload"]. */
  fields?: string[];
  /** At least so many ms between two patches. */
  every?: number;
  api?: "2025-07-16";
  /** A connection that says nothing for so many ms is asked, and then given up: 30,000. */
  silence?: number;
  /** A tab that is hidden for so many ms lets its connection go: 60,000. Infinity: never. */
  hiddenAfter?: number;
  /** Where there is none (Node 18 and 20): that of the package ws. */
  WebSocket?: unknown;
}

export interface Client {
  readonly state: State;
  readonly error?: RuncastError;
  subscribe(filter: Filter): Mirror;
  /** The newest runs of a filter that runs also leave, as their status changes. */
  watch(filter?: WatchFilter, options?: WatchOptions): Mirror;
  on(event: "state", listener: (state: State) => void): () => void;
  /** What ends nothing: a token that could not be had, or was refused. */
  on(event: "error", listener: (error: RuncastError) => void): () => void;
  /** Ends all of it. */
  close(): void;
}

export function connect(url: string | URL, options: Options): Client;
