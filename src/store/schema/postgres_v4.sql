-- What version 4 adds: traces in pieces, documents of kind 19 named after their run, a slash and a
-- number. Gateways that know version 3 alone write none, and remove these with their run as well.

-- Removes the documents of those names; with traces (kind 15) their pieces, too, whose bytes count.
-- 0 is the character after the slash.
CREATE OR REPLACE FUNCTION remove_documents_v1(my_env int, my_kind int, names bytea[], OUT count int,
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
