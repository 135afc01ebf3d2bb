-- Schema version 102: the step from 101, which a new database takes, too.

-- The session that sent the gateway's last beat; NULL: the gateway has registered none.
ALTER TABLE gateway ADD COLUMN session_pid int, ADD COLUMN session_start timestamptz;

-- As lead_v101, except that gateways take turns, by a lock that they hold to the end of their
-- transactions. Gateways of schema 101 take that lock before they call their function.
--
-- The leader and its beat are read after all locks, by a statement of their own: PostgreSQL reads a
-- row again if it has waited for it, but not the rows that were joined to it. A leader's beat cannot
-- overlap the loss of its lead: the beat comes before and is seen, or it waits and sees the loss.
CREATE FUNCTION lead_v102(me bigint, my_realms int[], envs int[], env_realms int[],
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
    IF EXISTS (SELECT 1 FROM unnest(my_realms) m(realm) LEFT JOIN realm r USING (realm)
        WHERE r.leader IS DISTINCT FROM me)
    THEN
        PERFORM pg_advisory_xact_lock(hashtext('runcast lead'), hashtext(current_schema()));
    END IF;
    INSERT INTO realm (realm, changed)
    SELECT r, nextval('realm_change') FROM unnest(my_realms) r ORDER BY r ON CONFLICT DO NOTHING;
    PERFORM 1 FROM realm r WHERE r.realm = ANY (my_realms) ORDER BY r.realm FOR UPDATE;
    PERFORM 1 FROM gateway g WHERE g.id <> me
        AND g.id IN (SELECT r.leader FROM realm r WHERE r.realm = ANY (my_realms))
    ORDER BY g.id FOR NO KEY UPDATE;
    FOR one IN SELECT r.realm, r.leader, g.id AS alive, g.beat FROM realm r
        LEFT JOIN gateway g ON g.id = r.leader
        WHERE r.realm = ANY (my_realms) ORDER BY r.realm
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

-- Returns when the session began, to the role that has it; NULL: it cannot be read.
CREATE FUNCTION session_start_v102(pid int) RETURNS timestamptz
LANGUAGE plpgsql AS $$
BEGIN
    IF has_function_privilege('pg_catalog.pg_stat_get_activity(integer)', 'EXECUTE') THEN
        RETURN (SELECT a.backend_start FROM pg_catalog.pg_stat_get_activity(pid) a);
    END IF;
    RETURN NULL;
END $$;

-- Returns 1 if the session is open, and 2 if it has ended. 0: unknown; none is registered, it
-- belongs to another role, or it ended with the server, as all did.
CREATE FUNCTION session_state_v102(pid int, start timestamptz) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    found_start timestamptz;
BEGIN
    IF pid IS NULL OR start < pg_postmaster_start_time()
        OR NOT has_function_privilege('pg_catalog.pg_stat_get_activity(integer)', 'EXECUTE')
    THEN
        RETURN 0;
    END IF;
    SELECT a.backend_start INTO found_start FROM pg_catalog.pg_stat_get_activity(pid) a;
    RETURN CASE WHEN NOT FOUND THEN 2 WHEN found_start IS NULL THEN 0
        WHEN found_start = start THEN 1 ELSE 2 END;
END $$;

-- As beat_v101, and registers the session of this call: my_pid is the process that the gateway has
-- connected to. 0: it registers none. Behind a pooler the call may be executed by another process;
-- then none is registered, either.
CREATE FUNCTION beat_v102(me bigint, my_draining int, my_pid int)
RETURNS TABLE (seen_clock bigint, seen_leader bigint, seen_id bigint, seen_beat bigint,
    seen_draining boolean, seen_name text, seen_url text, seen_session int)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    my_start timestamptz;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM set_config('lock_timeout', '1500', true);
    IF my_pid = pg_backend_pid() THEN
        my_start := session_start_v102(my_pid);
    END IF;
    UPDATE gateway g SET beat = g.beat + 1, draining = my_draining <> 0,
        session_pid = CASE WHEN my_start IS NOT NULL THEN my_pid END, session_start = my_start
    WHERE g.id = me;
    RETURN QUERY SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        coalesce((SELECT r.leader FROM realm r WHERE r.realm = 0), 0),
        g.id, g.beat, g.draining, g.name, g.peer_url,
        session_state_v102(g.session_pid, g.session_start)
    FROM gateway g;
END $$;
