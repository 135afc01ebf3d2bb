-- The embedded database, version 1. A later version adds a step to the migrations in
-- sqlite_db.c and leaves this file alone.
--
-- Numbers in status and execution are those of enum run_status, where 7 is the first final
-- one, and of enum run_execution, where 7 is FINISHED. Ids sort by the time they were
-- made, so the newest runs are neighbours in every index, and the order of
-- lists is id, descending.
PRAGMA application_id = 1919115635; -- "rcas"

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta VALUES ('epoch', lower(hex(randomblob(8)))), ('reopened', '0');

-- The counters of an environment: seq of its last change, the highest rev that retention
-- removed, and the time before which every final run is gone.
CREATE TABLE environment (
    env INTEGER NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL DEFAULT 0,
    purged INTEGER NOT NULL DEFAULT 0,
    floor INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Where run.number stands.
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
    flags INTEGER NOT NULL,  -- 1 test, 2 replay, 4 parent waits, 8 from batch, 16 user's key
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
    PRIMARY KEY (env, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX run_rev ON run (env, rev);
CREATE INDEX run_task ON run (env, task, id);
CREATE INDEX run_batch ON run (env, batch, id) WHERE batch IS NOT NULL;
CREATE INDEX run_parent ON run (env, parent) WHERE parent IS NOT NULL;
CREATE INDEX run_unfinished ON run (env, rev) WHERE status < 7 OR execution <> 7;
CREATE INDEX run_final ON run (env, updated_at) WHERE status >= 7;

CREATE TABLE run_tag (
    env INTEGER NOT NULL,
    tag TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (env, tag, id)
) STRICT, WITHOUT ROWID;

-- The packets, byte for byte; written when they change.
CREATE TABLE run_payload (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB,
    type TEXT,
    PRIMARY KEY (env, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_metadata (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB,
    seed BLOB,
    PRIMARY KEY (env, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_output (
    env INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB,
    type TEXT,
    error BLOB,
    PRIMARY KEY (env, id)
) STRICT, WITHOUT ROWID;

-- Everything that is not a run; kind is a number of enum document_kind.
CREATE TABLE document (
    kind INTEGER NOT NULL,
    env INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, env, name)
) STRICT, WITHOUT ROWID;

-- Unique keys and whose they are; from expires_at on (0: never) they are nobody's.
CREATE TABLE claim (
    env INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    owner TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (env, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_expiry ON claim (expires_at) WHERE expires_at > 0;
