-- What version 2 adds: files of deployments, which any gateway that leads has then. It changes
-- nothing that version 1 sees: gateways that know that one alone go on beside it.

-- In a table without statistics all indexes that begin with the environment look alike, and of
-- those the planner takes the youngest. That has to be the key, or each commit searches all runs
-- of its environment until the first ANALYZE.
ALTER TABLE run DROP CONSTRAINT run_pkey, ADD PRIMARY KEY (env, id);
ALTER TABLE document DROP CONSTRAINT document_pkey, ADD PRIMARY KEY (kind, env, name);

-- Of which server and tables this is: in a dump that was put back it is another's.
INSERT INTO meta VALUES ('identity', '');

-- A gateway takes a new connection when a write gets no answer for 5 s. What waits for a lock has to
-- end before, or each repetition leaves a session behind, until the server takes no more.
ALTER FUNCTION commit_v1 SET lock_timeout = '4s';
ALTER FUNCTION purge_v1 SET lock_timeout = '4s';

-- A file, cut into pieces that are read and written one by one. It is there when its piece 0 is,
-- which comes last. Of size, which is that of the whole file, follows how long each piece is.
CREATE TABLE deployed_file (
    env int NOT NULL,
    piece int NOT NULL,
    size bigint NOT NULL,
    name bytea NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 95),
    body bytea NOT NULL,
    PRIMARY KEY (env, name, piece),
    CHECK (piece >= 0 AND octet_length(body) = least(262144, size - piece::bigint * 262144))
);

-- Archives are compressed already, and nobody reads a part of a piece.
ALTER TABLE deployed_file ALTER COLUMN body SET STORAGE EXTERNAL;

-- Whether the realm is led in that term. Until the caller's transaction has ended nobody else
-- takes the lead.
CREATE FUNCTION leads_v2(my_realm int, my_term bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM 1 FROM realm WHERE realm = my_realm AND term = my_term FOR KEY SHARE;
    RETURN FOUND;
END $$;

-- Writes a piece, whether it was there before or not: so whoever got no answer says it again.
-- 'o' written; 'm' moved: somebody else leads; 'l' lost: piece 0 came and not all of the others
-- are there. What another file of the name had more is gone with piece 0.
CREATE FUNCTION put_piece_v2(durability text, my_realm int, my_term bigint, my_env int,
    my_name bytea, my_piece int, my_size bigint, my_body bytea)
RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '4s' AS $$
DECLARE
    others bigint := greatest(my_size - 1, 0) / 262144;
    found_others bigint;
BEGIN
    PERFORM set_config('synchronous_commit', durability, true);
    IF NOT leads_v2(my_realm, my_term) THEN
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

-- Removes a file, or what there is of it; 'o' or 'm' as above.
CREATE FUNCTION remove_file_v2(durability text, my_realm int, my_term bigint, my_env int,
    my_name bytea)
RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET lock_timeout = '4s' AS $$
BEGIN
    PERFORM set_config('synchronous_commit', durability, true);
    IF NOT leads_v2(my_realm, my_term) THEN
        RETURN 'm';
    END IF;
    DELETE FROM deployed_file f WHERE f.env = my_env AND f.name = my_name;
    RETURN 'o';
END $$;
