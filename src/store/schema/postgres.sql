-- Schema version 100 of a PostgreSQL database. A later version adds a step to pg_schema.c and does
-- not change this file. Steps only add, because older gateways continue to run on the database.
-- Lower numbers were development versions; their databases cannot be opened any more.
--
-- Values written by clients, including ids, are bytea: text cannot contain zero bytes and has only
-- one encoding, and bytea compares byte by byte like SQLite. Values that may be long are indexed
-- by their sha256, because they do not fit into an index. Numbers in status and execution are
-- those of enum run_status, where 7 is the first final one, and of enum run_execution, where 7 is
-- FINISHED.

CREATE TABLE meta (
    name text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO meta VALUES
    ('epoch', left(replace(gen_random_uuid()::text, '-', ''), 16)),
    ('schema', '0'), -- the version, which the migration writes
    ('least', '100'), -- the oldest version of a program that may run
    ('timeline', ''), -- of the server, when it was seen last
    ('identity', ''); -- of the server and its tables; a restored dump has another one

-- ---- gateways and the lead ----

-- A gateway process. Each restart is another row.
CREATE TABLE gateway (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    peer_url text NOT NULL,
    version text NOT NULL,
    functions int NOT NULL, -- the version of the functions that it calls
    key_ids text[] NOT NULL, -- the encryption keys that it can open
    beat bigint NOT NULL DEFAULT 0,
    draining boolean NOT NULL DEFAULT false,
    realms int NOT NULL DEFAULT 0, -- its load
    cpu_permille int NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A unit of leadership: a project with its environments; 0 is the installation.
CREATE TABLE realm (
    realm int PRIMARY KEY,
    leader bigint,
    term bigint NOT NULL DEFAULT 0,
    database text NOT NULL DEFAULT '',
    changed bigint NOT NULL -- of the sequence below
) WITH (fillfactor = 50);

CREATE SEQUENCE realm_change;

-- The counters of an environment, and the term of the leader that may write in it: seq of its
-- last change, the highest rev that retention removed, the time before which every final run is
-- gone, and the bytes that its rows count. Writers of the environment lock this row.
CREATE TABLE environment (
    env int PRIMARY KEY,
    realm int NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    purged bigint NOT NULL DEFAULT 0,
    floor bigint NOT NULL DEFAULT 0,
    stored bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 40);

CREATE INDEX environment_realm ON environment (realm);

-- A connection that writes: the number of its last group, and the answer to it.
CREATE TABLE writer (
    id bigint PRIMARY KEY,
    gateway bigint NOT NULL,
    grp bigint NOT NULL DEFAULT 0,
    answer bytea
) WITH (fillfactor = 30);

CREATE INDEX writer_gateway ON writer (gateway);

-- ---- runs ----

-- The last run.number of each task.
CREATE TABLE task_number (
    env int NOT NULL,
    task bytea NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (env, task)
) WITH (fillfactor = 70);

CREATE TABLE run (
    rev bigint NOT NULL,
    whole_rev bigint NOT NULL,
    metadata_rev bigint NOT NULL,
    output_rev bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    queued_at bigint NOT NULL,
    started_at bigint NOT NULL,
    attempt_at bigint NOT NULL,
    finished_at bigint NOT NULL,
    delayed_until bigint NOT NULL,
    expired_at bigint NOT NULL,
    queue_position bigint NOT NULL,
    due_at bigint NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    snapshot bigint NOT NULL,
    batch_index bigint NOT NULL,
    max_duration_s bigint NOT NULL,
    usage_ms bigint NOT NULL,
    cost_cents double precision NOT NULL,
    base_cost_cents double precision NOT NULL,
    env int NOT NULL,
    flags int NOT NULL, -- 1 test, 2 replay, 4 parent waits, 8 from batch, 16 user's key,
                        -- 32 leased by a worker token
    attempt int NOT NULL,
    depth int NOT NULL,
    max_attempts int NOT NULL,
    dequeue_failures int NOT NULL,
    priority_ms int NOT NULL,
    status smallint NOT NULL,
    execution smallint NOT NULL,
    machine smallint NOT NULL,
    id bytea NOT NULL,
    tags bytea, -- as given, in order: "3:one,3:two,"
    task bytea,
    queue bytea,
    concurrency_key bytea,
    worker_version bytea,
    ttl bytea,
    region bytea,
    batch bytea,
    parent bytea,
    root bytea,
    schedule bytea,
    idempotency_key bytea,
    idempotency_shown bytea,
    worker_request bytea,
    waits bytea,
    streams bytea,
    metadata_request bytea,
    bulk bytea,
    external_deployment bytea
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_limit = 2000);

CREATE UNIQUE INDEX run_rev ON run (env, rev);
CREATE INDEX run_task ON run (env, task, id);
CREATE INDEX run_batch ON run (env, batch, id) WHERE batch IS NOT NULL;
CREATE INDEX run_parent ON run (env, parent, id) WHERE parent IS NOT NULL;
CREATE INDEX run_bulk ON run (env, bulk, id) WHERE bulk IS NOT NULL;
CREATE INDEX run_unfinished ON run (env, rev) WHERE status < 7 OR execution <> 7;
CREATE INDEX run_final ON run (env, updated_at) WHERE status >= 7;
CREATE INDEX run_token ON run (env) WHERE status < 7 AND position('"MANUAL"'::bytea IN waits) > 0;

-- Without statistics all indexes that begin with the environment look alike, and the planner uses
-- the one created last. That must be the primary key, or each commit searches all runs of its
-- environment until the first ANALYZE. So the key is added last, here and in document.
ALTER TABLE run ADD PRIMARY KEY (env, id);

CREATE TABLE run_tag (
    env int NOT NULL,
    tag bytea NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (env, tag, id)
);

-- The packets, byte for byte, written only when they change.
CREATE TABLE run_payload (
    env int NOT NULL,
    id bytea NOT NULL,
    type bytea,
    body bytea,
    PRIMARY KEY (env, id)
);

CREATE INDEX payload_packet ON run_payload (env, sha256(body)) WHERE type = 'application/store';

CREATE TABLE run_metadata (
    env int NOT NULL,
    id bytea NOT NULL,
    seed bytea,
    body bytea,
    PRIMARY KEY (env, id)
);

CREATE TABLE run_output (
    env int NOT NULL,
    id bytea NOT NULL,
    type bytea,
    error bytea,
    body bytea,
    PRIMARY KEY (env, id)
);

CREATE INDEX output_packet ON run_output (env, sha256(body)) WHERE type = 'application/store';

-- ---- documents, claims and files ----

-- Everything that is not a run; kind is a number of enum document_kind.
CREATE TABLE document (
    kind smallint NOT NULL,
    env int NOT NULL,
    version bigint NOT NULL,
    seq bigint NOT NULL,
    written_at bigint NOT NULL,
    stale_at bigint NOT NULL,
    name bytea NOT NULL,
    body bytea NOT NULL
);

-- Long bodies are read in pieces, which must be found without decompressing.
ALTER TABLE document ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX document_age ON document (kind, env, written_at);
ALTER TABLE document ADD PRIMARY KEY (kind, env, name);

-- Unique keys and their owners. A claim has no owner any more from expires_at on (0: never).
CREATE TABLE claim (
    env int NOT NULL,
    kind smallint NOT NULL,
    expires_at bigint NOT NULL,
    owner bytea NOT NULL,
    key bytea NOT NULL
);

CREATE UNIQUE INDEX claim_key ON claim (env, kind, sha256(key));
CREATE INDEX claim_expiry ON claim (env, expires_at) WHERE expires_at > 0;

-- A file, cut into pieces that are read and written one by one. Piece 0 is written last: the file
-- exists once it does. size is that of the whole file, and determines the length of each piece.
CREATE TABLE deployed_file (
    env int NOT NULL,
    piece int NOT NULL,
    size bigint NOT NULL,
    name bytea NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 95),
    body bytea NOT NULL,
    PRIMARY KEY (env, name, piece),
    CHECK (piece >= 0 AND octet_length(body) = least(262144, size - piece::bigint * 262144))
);

-- Archives are compressed already, and no piece is read in part.
ALTER TABLE deployed_file ALTER COLUMN body SET STORAGE EXTERNAL;

-- For people: what a shell shows of a run.
CREATE VIEW run_shown AS
SELECT env, encode(id, 'escape') AS id, encode(task, 'escape') AS task, number, version, rev,
    status, execution, attempt, encode(queue, 'escape') AS queue,
    encode(worker_version, 'escape') AS worker_version, encode(tags, 'escape') AS tags,
    to_timestamp(created_at / 1000.0) AS created, to_timestamp(updated_at / 1000.0) AS updated,
    to_timestamp(nullif(finished_at, 0) / 1000.0) AS finished
FROM run;

-- Only if the server was built with lz4.
DO $$
BEGIN
    ALTER TABLE run_payload ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE run_metadata ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE run_output ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;
