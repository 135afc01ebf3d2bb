-- The functions that gateways call. The name of each function and type ends with the version of the
-- schema that added it. None is ever replaced: a changed one gets a new number, and older gateways
-- continue to call theirs. Those of version 102 are in postgres_102.sql.
--
-- A gateway opens a new connection when a write gets no answer for 5 s. A wait for a lock must end
-- before that (lock_timeout). Otherwise each retry leaves a session behind, until the server accepts
-- no more.
--
-- Stored bytes are counted as in runcast/store.h: 1536 for a run (STORED_RUN), 128 for each other
-- row (STORED_ROW), plus what clients have put into it.

-- ---- joining and leading ----

-- Called when a process begins. Removes earlier processes of the same name, so that groups of
-- theirs in flight are rejected. Returns its number; its writers are numbered from 16 times that.
CREATE FUNCTION join_v101(my_name text, my_url text, my_version text, my_functions int,
    my_keys text[], writers int)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    me bigint;
BEGIN
    LOCK TABLE gateway IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM writer WHERE gateway IN (SELECT g.id FROM gateway g WHERE g.name = my_name);
    DELETE FROM gateway WHERE name = my_name;
    INSERT INTO gateway (name, peer_url, version, functions, key_ids)
    VALUES (my_name, my_url, my_version, my_functions, my_keys) RETURNING id INTO me;
    INSERT INTO writer (id, gateway) SELECT me * 16 + n, me FROM generate_series(0, writers - 1) n;
    RETURN me;
END $$;

-- Takes the lead of realms that have no leader, that we lead already (the term stays), or whose
-- leader is gone or dead. A leader is dead if its beat is still the one in dead_beats. Creates
-- missing rows of realms and environments. The earlier leader then fails to lock an environment's
-- row, or finds another term in it. Returns no rows for a realm that another gateway leads.
CREATE FUNCTION lead_v101(me bigint, my_realms int[], envs int[], env_realms int[],
    dead bigint[], dead_beats bigint[])
RETURNS TABLE (led_realm int, led_term bigint, led_env int, led_seq bigint, led_purged bigint,
    led_floor bigint, led_stored bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    one record;
    ours int[] := '{}';
BEGIN
    PERFORM set_config('lock_timeout', '3000', true);
    PERFORM 1 FROM gateway WHERE id = me FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO realm (realm, changed)
    SELECT r, nextval('realm_change') FROM unnest(my_realms) r ORDER BY r ON CONFLICT DO NOTHING;
    FOR one IN SELECT r.realm, r.leader, g.id AS alive, g.beat FROM realm r
        LEFT JOIN gateway g ON g.id = r.leader
        WHERE r.realm = ANY (my_realms) ORDER BY r.realm FOR UPDATE OF r
    LOOP
        IF one.leader = me THEN
            ours := ours || one.realm;
        ELSIF one.alive IS NULL OR EXISTS (SELECT 1 FROM unnest(dead, dead_beats) d(id, beat)
            WHERE d.id = one.leader AND d.beat = one.beat)
        THEN
            UPDATE realm SET leader = me, term = term + 1, changed = nextval('realm_change')
            WHERE realm = one.realm;
            ours := ours || one.realm;
        END IF;
    END LOOP;
    INSERT INTO environment (env, realm) SELECT e, r FROM unnest(envs, env_realms) n(e, r)
    WHERE r = ANY (ours) ORDER BY e ON CONFLICT DO NOTHING;
    -- In the order in which commits lock them.
    PERFORM 1 FROM environment WHERE realm = ANY (ours) ORDER BY env FOR NO KEY UPDATE;
    UPDATE environment e SET term = r.term FROM realm r
    WHERE r.realm = e.realm AND e.realm = ANY (ours) AND e.term < r.term;
    RETURN QUERY SELECT r.realm, r.term, e.env, e.seq, e.purged, e.floor, e.stored
    FROM realm r LEFT JOIN environment e ON e.realm = r.realm
    WHERE r.realm = ANY (ours) ORDER BY r.realm, e.env;
END $$;

-- Counts a beat of a gateway, and returns all gateways and the leader. A beat may be lost in a crash
-- of the server, so it does not wait for the disk. If the gateway's row is gone, nothing is counted
-- and its number is not among those that are returned.
CREATE FUNCTION beat_v101(me bigint, my_draining int)
RETURNS TABLE (seen_clock bigint, seen_leader bigint, seen_id bigint, seen_beat bigint,
    seen_draining boolean, seen_name text)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE gateway g SET beat = g.beat + 1, draining = my_draining <> 0 WHERE g.id = me;
    RETURN QUERY SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        coalesce((SELECT r.leader FROM realm r WHERE r.realm = 0), 0),
        g.id, g.beat, g.draining, g.name
    FROM gateway g;
END $$;

-- Called when a process ends and has nothing in flight, so that no other process has to wait until
-- it counts as dead.
CREATE FUNCTION leave_v101(me bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM writer WHERE gateway = me;
    DELETE FROM gateway WHERE id = me;
END $$;

-- ---- commits ----

-- A commit of the group: the number of its claims, and a byte for each of its changes; 0: the next
-- run, 1: the next document.
CREATE TYPE commit_request_v101 AS (now_ms bigint, claims int, changes bytea);

-- head: index of its environment in envs, from 1. earlier: index in claims, from 1, of the previous
-- claim of the same request on the same key; 0: none.
CREATE TYPE commit_claim_v101 AS (head int, kind smallint, expires_at bigint, release boolean,
    earlier int, owner bytea, instead_of bytea, key bytea);

-- again: the same request has already written it, so its version need not be checked.
-- bytes: its stored bytes from now on. body NULL: the document is removed.
CREATE TYPE commit_document_v101 AS (head int, kind smallint, expected bigint, again boolean,
    bytes bigint, stale_at bigint, name bytea, body bytea);

-- In an update, columns that never change are NULL. puts: packets that are written, 1 payload,
-- 2 metadata, 4 output. marks: enum change_marks. packet: the packet document that must exist.
-- bytes: stored bytes from now on. For a new run this is everything that counts; for an update
-- only these packets and the row's texts, without tags and columns that never change. task_at: index
-- in tasks, from 1, of the counter that numbers the new run; 0: none.
CREATE TYPE commit_run_v101 AS (head int, id bytea, expected bigint, again boolean, marks int,
    puts int, bytes bigint, task_at int, packet bytea, tags bytea, tag_names bytea[],
    snapshot bigint, whole_rev bigint, metadata_rev bigint, output_rev bigint,
    status smallint, execution smallint, machine smallint, flags int, attempt int, depth int,
    max_attempts int, dequeue_failures int, batch_index bigint, priority_ms int,
    max_duration_s bigint, usage_ms bigint, created_at bigint, updated_at bigint,
    queued_at bigint, started_at bigint, attempt_at bigint, finished_at bigint,
    delayed_until bigint, expired_at bigint, queue_position bigint, due_at bigint,
    cost_cents double precision, base_cost_cents double precision, task bytea, queue bytea,
    concurrency_key bytea, worker_version bytea, ttl bytea, region bytea, batch bytea,
    parent bytea, root bytea, schedule bytea, idempotency_key bytea, idempotency_shown bytea,
    worker_request bytea, waits bytea, streams bytea, metadata_request bytea, bulk bytea,
    external_deployment bytea, limits bytea,
    payload bytea, payload_type bytea, metadata bytea, metadata_seed bytea, output bytea,
    output_type bytea, error bytea);

-- Splits tags as in their column: "3:one,3:two,".
CREATE FUNCTION tags_v101(tags bytea) RETURNS SETOF bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    at int := 1;
    digits int;
    len int;
BEGIN
    WHILE at <= octet_length(tags) LOOP
        digits := position('\x3a'::bytea IN substring(tags FROM at)) - 1;
        len := convert_from(substring(tags FROM at FOR digits), 'SQL_ASCII')::int;
        RETURN NEXT substring(tags FROM at + digits + 1 FOR len);
        at := at + digits + 1 + len + 1;
    END LOOP;
END $$;

-- Locks the writer's row, and returns the earlier answer to this number; NULL: the group is new.
-- 'g': the writer is gone. 'o': a later group was written already, or groups before this one, which
-- were answered, are missing. In that last case an older copy of the database was restored. This
-- is another history, in which clients' positions have other meanings, so the epoch is renewed.
CREATE FUNCTION begin_group_v101(writer_id bigint, number bigint, durability text) RETURNS bytea
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    last bigint;
    said bytea;
BEGIN
    PERFORM set_config('synchronous_commit', durability, true);
    SELECT w.grp, w.answer INTO last, said FROM writer w WHERE w.id = writer_id FOR NO KEY UPDATE;
    IF last < number - 1 THEN
        UPDATE meta SET value = left(replace(gen_random_uuid()::text, '-', ''), 16)
        WHERE name = 'epoch';
    END IF;
    RETURN CASE
        WHEN last IS NULL THEN '\x67'::bytea
        WHEN last = number THEN said
        WHEN last <> number - 1 THEN '\x6f'::bytea
    END;
END $$;

-- Inserts new runs with their tags and packets, by one statement per table: those from index first
-- on that have a seq. has: the packets that some of them have, as in puts of commit_run_v101; 8:
-- some have tags. Each statement materializes all runs of the group, so work_mem is raised: they
-- are in memory already.
CREATE FUNCTION insert_runs_v101(envs int[], runs commit_run_v101[], seqs bigint[], numbers bigint[],
    first bigint, has int)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET work_mem = '256MB' AS $$
BEGIN
    INSERT INTO run (env, id, tags, number, version, snapshot, rev, whole_rev, metadata_rev,
        output_rev, status, execution, machine, flags, attempt, depth, max_attempts,
        dequeue_failures, batch_index, priority_ms, max_duration_s, usage_ms, created_at,
        updated_at, queued_at, started_at, attempt_at, finished_at, delayed_until, expired_at,
        queue_position, due_at, cost_cents, base_cost_cents, task, queue, concurrency_key,
        worker_version, ttl, region, batch, parent, root, schedule, idempotency_key,
        idempotency_shown, worker_request, waits, streams, metadata_request, bulk,
        external_deployment, limits)
    SELECT envs[r.head], r.id, r.tags, numbers[r.ordinality], 1, r.snapshot, seqs[r.ordinality],
        seqs[r.ordinality], seqs[r.ordinality],
        CASE WHEN r.marks & 8 <> 0 THEN seqs[r.ordinality] ELSE 0 END, r.status, r.execution,
        r.machine, r.flags, r.attempt, r.depth, r.max_attempts, r.dequeue_failures,
        r.batch_index, r.priority_ms, r.max_duration_s, r.usage_ms, r.created_at, r.updated_at,
        r.queued_at, r.started_at, r.attempt_at, r.finished_at, r.delayed_until, r.expired_at,
        r.queue_position, r.due_at, r.cost_cents, r.base_cost_cents, r.task, r.queue,
        r.concurrency_key, r.worker_version, r.ttl, r.region, r.batch, r.parent, r.root,
        r.schedule, r.idempotency_key, r.idempotency_shown, r.worker_request, r.waits,
        r.streams, r.metadata_request, r.bulk, r.external_deployment, r.limits
    FROM unnest(runs) WITH ORDINALITY r
    WHERE r.ordinality >= first AND seqs[r.ordinality] IS NOT NULL;
    IF has & 8 <> 0 THEN
        INSERT INTO run_tag (env, tag, id)
        SELECT DISTINCT envs[r.head], t.tag, r.id
        FROM unnest(runs) WITH ORDINALITY r, unnest(r.tag_names) t(tag)
        WHERE r.ordinality >= first AND seqs[r.ordinality] IS NOT NULL;
    END IF;
    IF has & 1 <> 0 THEN
        INSERT INTO run_payload (env, id, type, body)
        SELECT envs[r.head], r.id, r.payload_type, r.payload
        FROM unnest(runs) WITH ORDINALITY r
        WHERE r.ordinality >= first AND seqs[r.ordinality] IS NOT NULL AND r.puts & 1 <> 0;
    END IF;
    IF has & 2 <> 0 THEN
        INSERT INTO run_metadata (env, id, seed, body)
        SELECT envs[r.head], r.id, r.metadata_seed, r.metadata
        FROM unnest(runs) WITH ORDINALITY r
        WHERE r.ordinality >= first AND seqs[r.ordinality] IS NOT NULL AND r.puts & 2 <> 0;
    END IF;
    IF has & 4 <> 0 THEN
        INSERT INTO run_output (env, id, type, error, body)
        SELECT envs[r.head], r.id, r.output_type, r.error, r.output
        FROM unnest(runs) WITH ORDINALITY r
        WHERE r.ordinality >= first AND seqs[r.ordinality] IS NOT NULL AND r.puts & 4 <> 0;
    END IF;
END $$;

-- Writes a group of commits, each completely or not at all, under a number that is used once: a
-- repeated group gets the earlier answer. envs must be ascending. Checks come before writes, under
-- locks that other writers wait for, so nothing is ever undone.
--
-- Returns a binary answer: 'a', the numbers of requests, environments and tasks; for each
-- environment its seq before and its growth in bytes; for each task its number before; then a byte
-- per request: 'o' written, 'm' moved, 'l' lost, 'p' packet missing, 't' taken. 't' is followed by
-- each of its claims: the length of the owner's id and the id; -1: it is free.
--
-- New runs are inserted together: after all other requests of the group, or before one of these
-- changes a run that was not inserted yet. In a group of several requests it is not checked whether
-- a new run exists already, because ids are random: the index rejects the whole group, and the
-- gateway sends its requests one by one.
CREATE FUNCTION commit_v101(writer_id bigint, number bigint, durability text, sweep_ms bigint,
    envs int[], terms bigint[], task_envs int[], tasks bytea[], requests commit_request_v101[],
    claims commit_claim_v101[], runs commit_run_v101[], documents commit_document_v101[])
RETURNS bytea LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off SET lock_timeout = '4s'
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    env_count int := cardinality(envs);
    task_count int := cardinality(tasks);
    led boolean[];        -- is the environment still ours?
    before bigint[];      -- the seqs and
    seqs bigint[];
    grown bigint[];
    numbers_before bigint[];
    numbers bigint[];     -- of tasks
    owners bytea[];       -- of each claim: whose it is behind it; NULL: nobody's,
    ends bigint[];        -- until when,
    there boolean[];      -- and whether its row is there before it
    reply bytea;
    said bytea := '';
    status text;
    details bytea;
    request commit_request_v101;
    c commit_claim_v101;
    d commit_document_v101;
    r commit_run_v101;
    first_claim int := 1;
    next_run int := 1;
    next_document int := 1;
    in_runs int;
    in_documents int;
    at int := 0;
    e record;
    own bytea;
    until bigint;
    is_there boolean;
    found_version bigint;
    my_env int;
    my_seq bigint;
    size bigint;
    old_tags bytea;
    new_ids bytea[] := '{}'; -- new runs that insert_runs_v101 has still to write: their ids,
    new_seqs bigint[];       -- by their places in runs their seqs
    new_numbers bigint[];    -- and numbers,
    unwritten int := 1;      -- the place before which no such run is,
    has int := 0;            -- and what some of them have, as insert_runs_v101 takes it
BEGIN
    reply := begin_group_v101(writer_id, number, durability);
    IF reply IS NOT NULL THEN
        RETURN reply;
    END IF;

    led := array_fill(false, ARRAY[env_count]);
    before := array_fill(0::bigint, ARRAY[env_count]);
    grown := before;
    FOR e IN SELECT x.env, x.term, x.seq FROM environment x WHERE x.env = ANY (envs)
        ORDER BY x.env FOR NO KEY UPDATE
    LOOP
        at := at + 1;
        WHILE envs[at] < e.env LOOP
            at := at + 1;
        END LOOP;
        led[at] := e.term = terms[at];
        before[at] := e.seq;
    END LOOP;
    seqs := before;

    numbers_before := array_fill(0::bigint, ARRAY[task_count]);
    FOR at IN 1 .. task_count LOOP
        SELECT n.last INTO until FROM task_number n
        WHERE n.env = task_envs[at] AND n.task = tasks[at];
        numbers_before[at] := coalesce(until, 0);
    END LOOP;
    numbers := numbers_before;
    new_seqs := array_fill(NULL::bigint, ARRAY[cardinality(runs)]);
    new_numbers := new_seqs;

    FOREACH request IN ARRAY requests LOOP
        status := 'o';
        details := '';

        -- Whose are the claims?
        FOR at IN first_claim .. first_claim + request.claims - 1 LOOP
            c := claims[at];
            IF NOT led[c.head] THEN
                status := 'm';
                EXIT;
            END IF;
            my_env := envs[c.head];
            IF c.earlier > 0 THEN
                own := owners[c.earlier];
                until := ends[c.earlier];
                is_there := own IS NOT NULL;
            ELSE
                SELECT k.owner, k.expires_at INTO own, until FROM claim k
                WHERE k.env = my_env AND k.kind = c.kind AND sha256(k.key) = sha256(c.key);
                is_there := FOUND;
            END IF;
            there[at] := is_there;
            IF c.release THEN
                own := nullif(own, c.owner);
                details := details || int4send(-1);
            ELSIF NOT is_there OR own = c.owner OR own = c.instead_of
                OR (until > 0 AND until <= request.now_ms)
            THEN
                own := c.owner;
                until := c.expires_at;
                details := details || int4send(-1);
            ELSE
                status := 't';
                details := details || int4send(octet_length(own)) || own;
            END IF;
            owners[at] := own;
            ends[at] := until;
        END LOOP;

        -- Are the changes made of what is there?
        in_runs := next_run;
        in_documents := next_document;
        FOR at IN 0 .. octet_length(request.changes) - 1 LOOP
            IF get_byte(request.changes, at) = 0 THEN
                r := runs[next_run];
                next_run := next_run + 1;
                CONTINUE WHEN status <> 'o';
                my_env := envs[r.head];
                IF NOT led[r.head] THEN
                    status := 'm';
                    CONTINUE;
                END IF;
                IF r.packet IS NOT NULL THEN -- alone, for what asks a table is slow even to begin
                    IF NOT EXISTS (SELECT 1 FROM document x
                        WHERE x.kind = 12 AND x.env = my_env AND x.name = r.packet)
                    THEN
                        status := 'p';
                        CONTINUE;
                    END IF;
                END IF;
                CONTINUE WHEN r.again OR (r.expected = 0 AND cardinality(requests) > 1);
                IF r.id = ANY (new_ids) THEN
                    PERFORM insert_runs_v101(envs, runs, new_seqs, new_numbers, unwritten, has);
                    unwritten := in_runs;
                    new_ids := '{}';
                END IF;
                SELECT x.version INTO found_version FROM run x
                WHERE x.env = my_env AND x.id = r.id;
                IF coalesce(found_version, 0) <> r.expected THEN
                    status := 'l';
                END IF;
            ELSE
                d := documents[next_document];
                next_document := next_document + 1;
                CONTINUE WHEN status <> 'o';
                IF NOT led[d.head] THEN
                    status := 'm';
                ELSIF NOT d.again THEN
                    SELECT x.version INTO found_version FROM document x
                    WHERE x.kind = d.kind AND x.env = envs[d.head] AND x.name = d.name;
                    IF coalesce(found_version, 0) <> d.expected THEN
                        status := 'l';
                    END IF;
                END IF;
            END IF;
        END LOOP;

        said := said || convert_to(status, 'SQL_ASCII');
        IF status = 't' THEN
            said := said || details;
        END IF;
        IF status <> 'o' THEN
            first_claim := first_claim + request.claims;
            CONTINUE;
        END IF;

        FOR at IN first_claim .. first_claim + request.claims - 1 LOOP
            c := claims[at];
            my_env := envs[c.head];
            IF c.release AND there[at] AND owners[at] IS NULL THEN
                DELETE FROM claim k
                WHERE k.env = my_env AND k.kind = c.kind AND sha256(k.key) = sha256(c.key);
                grown[c.head] := grown[c.head] - 128 - 2 * octet_length(c.key);
            ELSIF NOT c.release AND there[at] THEN
                UPDATE claim k SET owner = c.owner, expires_at = c.expires_at
                WHERE k.env = my_env AND k.kind = c.kind AND sha256(k.key) = sha256(c.key);
            ELSIF NOT c.release THEN
                INSERT INTO claim (env, kind, expires_at, owner, key)
                VALUES (my_env, c.kind, c.expires_at, c.owner, c.key);
                grown[c.head] := grown[c.head] + 128 + 2 * octet_length(c.key);
            END IF;
        END LOOP;
        first_claim := first_claim + request.claims;

        FOR at IN 0 .. octet_length(request.changes) - 1 LOOP
            IF get_byte(request.changes, at) <> 0 THEN
                d := documents[in_documents];
                in_documents := in_documents + 1;
                my_env := envs[d.head];
                my_seq := seqs[d.head] + 1;
                seqs[d.head] := my_seq;
                size := d.bytes;
                IF d.expected = 0 THEN
                    INSERT INTO document (kind, env, version, seq, written_at, stale_at, name, body)
                    VALUES (d.kind, my_env, 1, my_seq, request.now_ms, d.stale_at, d.name, d.body);
                ELSE
                    SELECT d.bytes - 128 - 2 * octet_length(d.name) - octet_length(x.body) INTO size
                    FROM document x
                    WHERE x.kind = d.kind AND x.env = my_env AND x.name = d.name;
                    IF d.body IS NULL THEN
                        DELETE FROM document x
                        WHERE x.kind = d.kind AND x.env = my_env AND x.name = d.name;
                    ELSE
                        UPDATE document x SET version = d.expected + 1, seq = my_seq,
                            body = d.body, written_at = request.now_ms, stale_at = d.stale_at
                        WHERE x.kind = d.kind AND x.env = my_env AND x.name = d.name;
                    END IF;
                END IF;
                grown[d.head] := grown[d.head] + size;
                CONTINUE;
            END IF;

            r := runs[in_runs];
            in_runs := in_runs + 1;
            my_env := envs[r.head];
            my_seq := seqs[r.head] + 1;
            seqs[r.head] := my_seq;
            size := r.bytes;
            IF r.expected = 0 THEN
                until := 0;
                IF r.task_at > 0 THEN
                    until := numbers[r.task_at] + 1;
                    numbers[r.task_at] := until;
                END IF;
                new_ids := new_ids || r.id;
                new_seqs[in_runs - 1] := my_seq;
                new_numbers[in_runs - 1] := until;
                has := has | r.puts | CASE WHEN r.tag_names IS NULL THEN 0 ELSE 8 END;
                grown[r.head] := grown[r.head] + size;
                CONTINUE;
            END IF;

            IF r.again AND r.id = ANY (new_ids) THEN
                PERFORM insert_runs_v101(envs, runs, new_seqs, new_numbers, unwritten, has);
                unwritten := in_runs;
                new_ids := '{}';
            END IF;
            SELECT x.tags, size - coalesce(octet_length(x.queue), 0)
                - coalesce(octet_length(x.concurrency_key), 0)
                - coalesce(octet_length(x.limits), 0)
                - coalesce(octet_length(x.worker_version), 0) - coalesce(octet_length(x.ttl), 0)
                - coalesce(octet_length(x.region), 0)
                - coalesce(octet_length(x.idempotency_key), 0)
                - coalesce(octet_length(x.idempotency_shown), 0)
                - coalesce(octet_length(x.worker_request), 0)
                - coalesce(octet_length(x.waits), 0) - coalesce(octet_length(x.streams), 0)
                - coalesce(octet_length(x.metadata_request), 0)
                - coalesce(octet_length(x.bulk), 0)
            INTO old_tags, size FROM run x WHERE x.env = my_env AND x.id = r.id;
            UPDATE run x SET version = r.expected + 1, snapshot = r.snapshot, rev = my_seq,
                whole_rev = CASE WHEN r.marks & 1 <> 0 THEN my_seq ELSE r.whole_rev END,
                metadata_rev = CASE WHEN r.marks & 4 <> 0 THEN my_seq ELSE r.metadata_rev END,
                output_rev = CASE WHEN r.marks & 8 <> 0 THEN my_seq ELSE r.output_rev END,
                tags = CASE WHEN r.marks & 1 <> 0 THEN r.tags ELSE x.tags END,
                status = r.status, execution = r.execution, machine = r.machine,
                flags = r.flags, attempt = r.attempt, max_attempts = r.max_attempts,
                dequeue_failures = r.dequeue_failures, priority_ms = r.priority_ms,
                max_duration_s = r.max_duration_s, usage_ms = r.usage_ms,
                updated_at = r.updated_at, queued_at = r.queued_at, started_at = r.started_at,
                attempt_at = r.attempt_at, finished_at = r.finished_at,
                delayed_until = r.delayed_until, expired_at = r.expired_at,
                queue_position = r.queue_position, due_at = r.due_at,
                cost_cents = r.cost_cents, base_cost_cents = r.base_cost_cents,
                queue = r.queue, concurrency_key = r.concurrency_key, limits = r.limits,
                worker_version = r.worker_version, ttl = r.ttl, region = r.region,
                idempotency_key = r.idempotency_key, idempotency_shown = r.idempotency_shown,
                worker_request = r.worker_request, waits = r.waits, streams = r.streams,
                metadata_request = r.metadata_request, bulk = r.bulk
            WHERE x.env = my_env AND x.id = r.id;
            IF r.marks & 1 <> 0 AND r.tags IS DISTINCT FROM old_tags THEN
                size := size + 2 * (coalesce(octet_length(r.tags), 0)
                    - coalesce(octet_length(old_tags), 0));
                DELETE FROM run_tag x USING tags_v101(old_tags) t
                WHERE x.env = my_env AND x.tag = t AND x.id = r.id;
                INSERT INTO run_tag (env, tag, id)
                SELECT DISTINCT my_env, t, r.id FROM unnest(r.tag_names) t;
            END IF;
            IF r.puts & 1 <> 0 THEN
                SELECT size - coalesce(octet_length(x.type), 0) - coalesce(octet_length(x.body), 0)
                INTO until FROM run_payload x WHERE x.env = my_env AND x.id = r.id;
                size := coalesce(until, size);
                INSERT INTO run_payload (env, id, type, body)
                VALUES (my_env, r.id, r.payload_type, r.payload)
                ON CONFLICT (env, id) DO UPDATE SET type = excluded.type, body = excluded.body;
            END IF;
            IF r.puts & 2 <> 0 THEN
                SELECT size - coalesce(octet_length(x.seed), 0) - coalesce(octet_length(x.body), 0)
                INTO until FROM run_metadata x WHERE x.env = my_env AND x.id = r.id;
                size := coalesce(until, size);
                INSERT INTO run_metadata (env, id, seed, body)
                VALUES (my_env, r.id, r.metadata_seed, r.metadata)
                ON CONFLICT (env, id) DO UPDATE SET seed = excluded.seed, body = excluded.body;
            END IF;
            IF r.puts & 4 <> 0 THEN
                SELECT size - coalesce(octet_length(x.type), 0) - coalesce(octet_length(x.body), 0)
                    - coalesce(octet_length(x.error), 0)
                INTO until FROM run_output x WHERE x.env = my_env AND x.id = r.id;
                size := coalesce(until, size);
                INSERT INTO run_output (env, id, type, error, body)
                VALUES (my_env, r.id, r.output_type, r.error, r.output)
                ON CONFLICT (env, id) DO UPDATE
                SET type = excluded.type, error = excluded.error, body = excluded.body;
            END IF;
            grown[r.head] := grown[r.head] + size;
        END LOOP;
    END LOOP;

    IF cardinality(new_ids) > 0 THEN
        PERFORM insert_runs_v101(envs, runs, new_seqs, new_numbers, unwritten, has);
    END IF;

    FOR at IN 1 .. task_count LOOP
        CONTINUE WHEN numbers[at] = numbers_before[at];
        INSERT INTO task_number (env, task, last) VALUES (task_envs[at], tasks[at], numbers[at])
        ON CONFLICT (env, task) DO UPDATE SET last = excluded.last;
        IF numbers_before[at] = 0 THEN
            in_runs := array_position(envs, task_envs[at]);
            grown[in_runs] := grown[in_runs] + 128 + octet_length(tasks[at]);
        END IF;
    END LOOP;

    IF sweep_ms > 0 THEN
        FOR e IN WITH over AS (SELECT k.ctid FROM claim k WHERE k.env = ANY (envs)
                AND k.expires_at > 0 AND k.expires_at <= sweep_ms LIMIT 64)
            DELETE FROM claim k USING over WHERE k.ctid = over.ctid
                AND led[array_position(envs, k.env)]
            RETURNING array_position(envs, k.env) AS head, octet_length(k.key) AS len
        LOOP
            grown[e.head] := grown[e.head] - 128 - 2 * e.len;
        END LOOP;
    END IF;

    reply := '\x61'::bytea || int4send(cardinality(requests)) || int4send(env_count)
        || int4send(task_count);
    FOR at IN 1 .. env_count LOOP
        reply := reply || int8send(before[at]) || int8send(grown[at]);
        CONTINUE WHEN seqs[at] = before[at] AND grown[at] = 0;
        UPDATE environment x SET seq = seqs[at], stored = x.stored + grown[at]
        WHERE x.env = envs[at];
    END LOOP;
    FOR at IN 1 .. task_count LOOP
        reply := reply || int8send(numbers_before[at]);
    END LOOP;
    reply := reply || said;
    UPDATE writer w SET grp = number, answer = reply WHERE w.id = writer_id;
    RETURN reply;
END $$;

-- ---- retention ----

-- Removes the documents with these names; of traces (kind 15) also the pieces, whose bytes count.
-- "0" is the character after "/".
CREATE FUNCTION remove_documents_v101(my_env int, my_kind int, names bytea[], OUT count int,
    OUT bytes bigint)
LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH gone AS (DELETE FROM document WHERE kind = my_kind AND env = my_env
            AND name = ANY (names)
            RETURNING 128 + 2 * octet_length(name) + octet_length(body) AS size),
        pieces AS (DELETE FROM document d USING unnest(names) n(name)
            WHERE my_kind = 15 AND d.kind = 19 AND d.env = my_env
                AND d.name > n.name || '/'::bytea AND d.name < n.name || '0'::bytea
            RETURNING 128 + 2 * octet_length(d.name) + octet_length(d.body) AS size)
    SELECT (SELECT count(*)::int FROM gone),
        (SELECT coalesce(sum(size), 0)::bigint FROM gone)
            + (SELECT coalesce(sum(size), 0)::bigint FROM pieces);
$$;

-- Carries out a store_purge. Returns a binary answer: 'p', the number of runs, 1 if more documents
-- (or claims, or counters) may be left, then seq, purged, floor and the growth; 'm': moved.
CREATE FUNCTION purge_v101(writer_id bigint, number bigint, durability text, my_env int,
    my_term bigint, before bigint, documents_before bigint, at_most int, whole boolean,
    now_ms bigint)
RETURNS bytea LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off SET lock_timeout = '4s' AS $$
DECLARE
    reply bytea;
    home environment;
    ids bytea[];
    runs int;
    highest bigint;
    next_floor bigint;
    freed bigint := 0;
    size bigint;
    removed int;
    names bytea[];
    more boolean := false;
BEGIN
    reply := begin_group_v101(writer_id, number, durability);
    IF reply IS NOT NULL THEN
        RETURN reply;
    END IF;
    SELECT x.* INTO home FROM environment x WHERE x.env = my_env FOR NO KEY UPDATE;
    IF home.term IS DISTINCT FROM my_term THEN
        reply := '\x6d'::bytea;
        UPDATE writer w SET grp = number, answer = reply WHERE w.id = writer_id;
        RETURN reply;
    END IF;

    -- Runs, with all that is theirs. What stays next says how far all are gone.
    SELECT array_agg(p.id) FILTER (WHERE p.place <= at_most),
        coalesce(max(p.rev) FILTER (WHERE p.place <= at_most), 0),
        coalesce(min(p.updated_at) FILTER (WHERE p.place > at_most), before)
    INTO ids, highest, next_floor
    FROM (SELECT y.*, row_number() OVER (ORDER BY y.updated_at, y.id) AS place
        FROM (SELECT x.id, x.rev, x.updated_at FROM run x
            WHERE x.env = my_env AND x.status >= 7 AND x.updated_at < before
            ORDER BY x.updated_at, x.id LIMIT at_most + 1) y) p;
    runs := coalesce(cardinality(ids), 0);
    IF runs > 0 THEN
        DELETE FROM run_tag t USING run x, tags_v101(x.tags) name
        WHERE x.env = my_env AND x.id = ANY (ids)
            AND t.env = my_env AND t.tag = name AND t.id = x.id;
        WITH gone AS (DELETE FROM run_payload x WHERE x.env = my_env AND x.id = ANY (ids)
            RETURNING coalesce(octet_length(type), 0) + coalesce(octet_length(body), 0) AS size)
        SELECT coalesce(sum(gone.size), 0) INTO size FROM gone;
        freed := freed + size;
        WITH gone AS (DELETE FROM run_metadata x WHERE x.env = my_env AND x.id = ANY (ids)
            RETURNING coalesce(octet_length(seed), 0) + coalesce(octet_length(body), 0) AS size)
        SELECT coalesce(sum(gone.size), 0) INTO size FROM gone;
        freed := freed + size;
        WITH gone AS (DELETE FROM run_output x WHERE x.env = my_env AND x.id = ANY (ids)
            RETURNING coalesce(octet_length(type), 0) + coalesce(octet_length(body), 0)
                + coalesce(octet_length(error), 0) AS size)
        SELECT coalesce(sum(gone.size), 0) INTO size FROM gone;
        freed := freed + size;
        WITH gone AS (DELETE FROM run x WHERE x.env = my_env AND x.id = ANY (ids)
            RETURNING 1536 + 2 * coalesce(octet_length(tags), 0) + coalesce(octet_length(task), 0)
                + coalesce(octet_length(queue), 0) + coalesce(octet_length(concurrency_key), 0)
                + coalesce(octet_length(limits), 0)
                + coalesce(octet_length(worker_version), 0) + coalesce(octet_length(ttl), 0)
                + coalesce(octet_length(region), 0) + coalesce(octet_length(batch), 0)
                + coalesce(octet_length(parent), 0) + coalesce(octet_length(root), 0)
                + coalesce(octet_length(schedule), 0)
                + coalesce(octet_length(idempotency_key), 0)
                + coalesce(octet_length(idempotency_shown), 0)
                + coalesce(octet_length(worker_request), 0) + coalesce(octet_length(waits), 0)
                + coalesce(octet_length(streams), 0)
                + coalesce(octet_length(metadata_request), 0) + coalesce(octet_length(bulk), 0)
                + coalesce(octet_length(external_deployment), 0) AS size)
        SELECT coalesce(sum(gone.size), 0) INTO size FROM gone;
        freed := freed + size;
        SELECT g.bytes INTO size FROM remove_documents_v101(my_env, 15, ids) g; -- traces
        freed := freed + size;
    END IF;

    -- Batches of which no run is left.
    SELECT array_agg(p.name) INTO names FROM (SELECT x.name FROM document x
        WHERE x.kind = 6 AND x.env = my_env AND x.written_at < documents_before
            AND NOT EXISTS (SELECT 1 FROM run y WHERE y.env = my_env AND y.batch = x.name)
        LIMIT at_most) p;
    SELECT g.count, freed + g.bytes INTO removed, freed
    FROM remove_documents_v101(my_env, 6, names) g;
    more := more OR removed = at_most;

    -- Packets that no run names.
    SELECT array_agg(p.name) INTO names FROM (SELECT x.name FROM document x
        WHERE x.kind = 12 AND x.env = my_env AND x.written_at < documents_before
            AND NOT EXISTS (SELECT 1 FROM run_payload y WHERE y.env = my_env
                AND sha256(y.body) = sha256(x.name) AND y.type = 'application/store')
            AND NOT EXISTS (SELECT 1 FROM run_output y WHERE y.env = my_env
                AND sha256(y.body) = sha256(x.name) AND y.type = 'application/store')
        LIMIT at_most) p;
    SELECT g.count, freed + g.bytes INTO removed, freed
    FROM remove_documents_v101(my_env, 12, names) g;
    more := more OR removed = at_most;

    -- Waitpoints that are stale, and that no unfinished run has among its waits.
    SELECT array_agg(p.name) INTO names FROM (SELECT x.name FROM document x
        WHERE x.kind = 9 AND x.env = my_env AND x.written_at < documents_before
            AND x.stale_at > 0 AND x.stale_at < documents_before
            AND NOT EXISTS (SELECT 1 FROM run y WHERE y.env = my_env AND y.status < 7
                AND position('"MANUAL"'::bytea IN y.waits) > 0
                AND position('"'::bytea || x.name || '"'::bytea IN y.waits) > 0)
        LIMIT at_most) p;
    SELECT g.count, freed + g.bytes INTO removed, freed
    FROM remove_documents_v101(my_env, 9, names) g;
    more := more OR removed = at_most;

    -- Claims that are over; of an environment that is over, all of them, and its counters.
    WITH over AS (SELECT k.ctid FROM claim k WHERE k.env = my_env
            AND (whole OR (k.expires_at > 0 AND k.expires_at <= now_ms)) LIMIT at_most),
        gone AS (DELETE FROM claim k USING over WHERE k.ctid = over.ctid
            RETURNING 128 + 2 * octet_length(k.key) AS size)
    SELECT count(*), freed + coalesce(sum(gone.size), 0) INTO removed, freed FROM gone;
    more := more OR removed = at_most;
    IF whole THEN
        WITH over AS (SELECT n.ctid FROM task_number n WHERE n.env = my_env LIMIT at_most),
            gone AS (DELETE FROM task_number n USING over WHERE n.ctid = over.ctid
                RETURNING 128 + octet_length(n.task) AS size)
        SELECT count(*), freed + coalesce(sum(gone.size), 0) INTO removed, freed FROM gone;
        more := more OR removed = at_most;
    END IF;

    UPDATE environment x SET purged = greatest(x.purged, highest),
        floor = greatest(x.floor, next_floor), stored = x.stored - freed
    WHERE x.env = my_env RETURNING x.* INTO home;
    reply := '\x70'::bytea || int4send(runs) || int4send(more::int) || int8send(home.seq)
        || int8send(home.purged) || int8send(home.floor) || int8send(-freed);
    UPDATE writer w SET grp = number, answer = reply WHERE w.id = writer_id;
    RETURN reply;
END $$;

-- ---- files ----

-- Returns true if the realm is led in that term. No other process can then take the lead before the
-- caller's transaction ends.
CREATE FUNCTION leads_v101(my_realm int, my_term bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM realm WHERE realm = my_realm AND term = my_term FOR KEY SHARE;
    RETURN FOUND;
END $$;

-- Inserts or replaces a piece, so that a call whose answer was lost can be repeated. Returns 'o':
-- written; 'm' (moved): another process leads; 'l' (lost): this is piece 0, and not all other pieces
-- exist. Piece 0 also removes extra pieces of an earlier file of that name.
CREATE FUNCTION put_piece_v101(durability text, my_realm int, my_term bigint, my_env int,
    my_name bytea, my_piece int, my_size bigint, my_body bytea)
RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '4s' AS $$
DECLARE
    others bigint := greatest(my_size - 1, 0) / 262144;
    found_others bigint;
BEGIN
    PERFORM set_config('synchronous_commit', durability, true);
    IF NOT leads_v101(my_realm, my_term) THEN
        RETURN 'm';
    END IF;
    IF my_piece = 0 THEN
        DELETE FROM deployed_file f WHERE f.env = my_env AND f.name = my_name AND f.piece > others;
        SELECT count(*) INTO found_others FROM deployed_file f
        WHERE f.env = my_env AND f.name = my_name AND f.piece > 0 AND f.size = my_size;
        IF found_others <> others THEN
            RETURN 'l';
        END IF;
    END IF;
    INSERT INTO deployed_file (env, piece, size, name, body)
    VALUES (my_env, my_piece, my_size, my_name, my_body)
    ON CONFLICT (env, name, piece) DO UPDATE SET size = excluded.size, body = excluded.body;
    RETURN 'o';
END $$;

-- Removes a file, even an incomplete one. Returns 'o' or 'm' as above.
CREATE FUNCTION remove_file_v101(durability text, my_realm int, my_term bigint, my_env int,
    my_name bytea)
RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '4s' AS $$
BEGIN
    PERFORM set_config('synchronous_commit', durability, true);
    IF NOT leads_v101(my_realm, my_term) THEN
        RETURN 'm';
    END IF;
    DELETE FROM deployed_file f WHERE f.env = my_env AND f.name = my_name;
    RETURN 'o';
END $$;
