-- Schema version 100 of the embedded database. A later version adds a step to sqlite_schema.c and
-- does not change this file. Lower numbers were development versions; their databases cannot be
-- opened any more.
--
-- Numbers in status and execution are those of enum run_status, where 7 is the first final
-- one, and of enum run_execution, where 7 is FINISHED. Ids sort by the time they were
-- created. So the newest runs are neighbors in every index, and lists are ordered by id,
-- descending.
PRAGMA application_id = 1919115635; -- "rcas"

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta VALUES ('epoch', lower(hex(randomblob(8)))), ('reopened', '0');

-- The counters of an environment: seq of its last change, the highest rev that retention
-- removed, the time before which every final run is gone, and the bytes that its rows count.
CREATE TABLE environment (
    env INTEGER NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL DEFAULT 0,
    purged INTEGER NOT NULL DEFAULT 0,
    floor INTEGER NOT NULL DEFAULT 0,
    stored INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The last run.number of each task.
CREATE TABLE task_number (
    env INTEGER NOT NULL,
    task TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (env, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    tags TEXT,               -- as given, in order: "3:one,3:two,"
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    whole_rev INTEGER NOT NULL,
    metadata_rev INTEGER NOT NULL,
    output_rev INTEGER NOT NULL,
    status INTEGER NOT NULL,
    execution INTEGER NOT NULL,
    machine INTEGER NOT NULL,
    flags INTEGER NOT NULL,  -- 1 test, 2 replay, 4 parent waits, 8 from batch, 16 user's key,
                             -- 32 leased by a worker token
    attempt INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    dequeue_failures INTEGER NOT NULL,
    batch_index INTEGER NOT NULL,
    priority_ms INTEGER NOT NULL,
    max_duration_s INTEGER NOT NULL,
    usage_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    attempt_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    delayed_until INTEGER NOT NULL,
    expired_at INTEGER NOT NULL,
    queue_position INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    cost_cents REAL NOT NULL,
    base_cost_cents REAL NOT NULL,
    task TEXT,
    queue TEXT,
    concurrency_key TEXT,
    worker_version TEXT,
    ttl TEXT,
    region TEXT,
    batch TEXT,
    parent TEXT,
    root TEXT,
    schedule TEXT,
    idempotency_key TEXT,
    idempotency_shown TEXT,
    worker_request TEXT,
    waits TEXT,
    streams TEXT,            -- JSON array of keys
    metadata_request TEXT,
    bulk TEXT,
    external_deployment TEXT,
    PRIMARY KEY (env, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX run_rev ON run (env, rev);
CREATE INDEX run_task ON run (env, task, id);
CREATE INDEX run_batch ON run (env, batch, id) WHERE batch IS NOT NULL;
CREATE INDEX run_parent ON run (env, parent) WHERE parent IS NOT NULL;
CREATE INDEX run_bulk ON run (env, bulk, id) WHERE bulk IS NOT NULL;
CREATE INDEX run_unfinished ON run (env, rev) WHERE status < 7 OR execution <> 7;
CREATE INDEX run_final ON run (env, updated_at) WHERE status >= 7;
CREATE INDEX run_token ON run (env, waits) WHERE status < 7 AND instr(waits, '"MANUAL"') > 0;

CREATE TABLE run_tag (
    env INTEGER NOT NULL,
    tag TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (env, tag, id)
) STRICT, WITHOUT ROWID;

-- The packets, byte for byte, written only when they change. These tables, and document, have
-- rowids and the body as their last column. In a table WITHOUT ROWID each comparison of a search
-- reads the whole row, so that finding one body of 15 KB would read a dozen others.
CREATE TABLE run_payload (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT,
    body BLOB,
    PRIMARY KEY (env, id)
) STRICT;

CREATE INDEX payload_packet ON run_payload (env, body) WHERE type = 'application/store';

CREATE TABLE run_metadata (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    seed BLOB,
    body BLOB,
    PRIMARY KEY (env, id)
) STRICT;

CREATE TABLE run_output (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT,
    error BLOB,
    body BLOB,
    PRIMARY KEY (env, id)
) STRICT;

CREATE INDEX output_packet ON run_output (env, body) WHERE type = 'application/store';

-- Everything that is not a run; kind is a number of enum document_kind. Retention uses the age of
-- a document (written_at), and when a waitpoint became stale (stale_at).
CREATE TABLE document (
    kind INTEGER NOT NULL,
    env INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    written_at INTEGER NOT NULL DEFAULT 0,
    stale_at INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, env, name)
) STRICT;

CREATE INDEX document_age ON document (kind, env, written_at);

-- Unique keys and their owners. A claim has no owner any more from expires_at on (0: never).
CREATE TABLE claim (
    env INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    owner TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (env, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_expiry ON claim (expires_at) WHERE expires_at > 0;
