-- The access method neardup: index = sequential scan, whatever the column contains, in every state of
-- the index.
-- Parameters are mixed, and sessions are warned about this.
SET client_min_messages = error;

-- Options of the operator classes.
CREATE TABLE options (sig minhash_signature, b varbit, t text);
CREATE INDEX ON options USING neardup (sig minhash_ops (threshold = 0));
CREATE INDEX ON options USING neardup (sig minhash_ops (threshold = 1.5));
CREATE INDEX ON options USING neardup (sig minhash_ops (threshold = nan));
CREATE INDEX ON options USING neardup (sig minhash_ops (key_bits = 16));
CREATE INDEX ON options USING neardup (b hamming_ops (distance = 64));
CREATE INDEX ON options USING neardup (b hamming_ops (distance = 63));
CREATE INDEX ON options USING neardup (sig) WITH (fillfactor = 70);
CREATE INDEX ON options USING neardup (sig, b);
CREATE UNIQUE INDEX ON options USING neardup (sig);
SELECT opcname, amvalidate(oid) FROM pg_opclass
WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'neardup') ORDER BY 1;
DROP TABLE options;

-- Documents of 60 words in groups of 20 with up to 40 % of the words changed; empty ones, NULLs,
-- and some whose signatures are not comparable with any of the others.
CREATE TABLE docs (id int PRIMARY KEY, body text);
INSERT INTO docs
SELECT i, string_agg('w' || CASE WHEN (w * 7919 + i * 104729) % 100 < i % 20 * 2
                                 THEN i * 1000 + w ELSE w + i / 20 * 1000 END, ' ' ORDER BY w)
FROM generate_series(1, 200) i, generate_series(1, 60) w GROUP BY i;
INSERT INTO docs VALUES (201, ''), (202, '!'), (203, NULL);

-- For every document as query: rows that only one of index and sequential scan returns. IS TRUE
-- keeps the planner from using the index.
CREATE FUNCTION differing(of regclass, threshold float8, OUT answers bigint, OUT differing bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    EXECUTE format(
        'WITH scan AS MATERIALIZED (SELECT q.id AS q, d.id FROM %1$s q, %1$s d
                       WHERE near_dup(d.sig, q.sig, %2$s) IS TRUE),
              found AS MATERIALIZED (SELECT q.id AS q, d.id FROM %1$s q, %1$s d
                        WHERE near_dup(d.sig, q.sig, %2$s))
         SELECT (SELECT count(*) FROM found),
                (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
              + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x)',
        of, threshold) INTO answers, differing;
END $$;

-- Autovacuum would change the statistics of the index.
CREATE TABLE sigs (id int, sig minhash_signature) WITH (autovacuum_enabled = off);
CREATE INDEX sigs_sig ON sigs USING neardup (sig);
DO $$
DECLARE
    n int;
    build bool;
    t float8;
    index_threshold float8;
    found record;
BEGIN
    FOREACH n IN ARRAY '{1, 7, 100}'::int[] LOOP
        FOREACH build IN ARRAY '{f, t}'::bool[] LOOP
            index_threshold := 0.6 + n / 1000.0;
            TRUNCATE sigs;
            DROP INDEX sigs_sig;
            IF NOT build THEN
                EXECUTE format('CREATE INDEX sigs_sig ON sigs USING neardup (sig minhash_ops (threshold = %s))', index_threshold);
            END IF;
            INSERT INTO sigs SELECT id, minhash(body, slots => n) FROM docs WHERE id % 3 > 0;
            INSERT INTO sigs SELECT id, minhash(body, slots => n, seed => 1) FROM docs WHERE id % 20 = 9;
            INSERT INTO sigs SELECT id, minhash(body, slots => n + 1) FROM docs WHERE id % 20 = 6;
            INSERT INTO sigs SELECT id, minhash(body, 2, slots => n) FROM docs WHERE id % 20 = 3;
            IF build THEN
                EXECUTE format('CREATE INDEX sigs_sig ON sigs USING neardup (sig minhash_ops (threshold = %s))', index_threshold);
            END IF;
            FOREACH t IN ARRAY '{0.3, 0.8, 1}'::float8[] LOOP
                SELECT * INTO found FROM differing('sigs', t);
                IF found.differing > 0 OR found.answers < 50 THEN
                    RAISE EXCEPTION '% slots, built: %, threshold %: %', n, build, t, found;
                END IF;
            END LOOP;
            PERFORM near_dup_index_check('sigs_sig');
        END LOOP;
    END LOOP;
END $$;

-- Changes: log, segments, deletes, vacuum, updates, REINDEX, an unlogged and a temporary table.
CREATE FUNCTION refill() RETURNS void LANGUAGE sql AS $$
    TRUNCATE sigs;
    INSERT INTO sigs SELECT id, minhash(body) FROM docs
$$;
DROP INDEX sigs_sig;
CREATE INDEX sigs_sig ON sigs USING neardup (sig);
SELECT refill();
SELECT * FROM differing('sigs', 0.8);
SELECT rows, dead_rows, log_rows, segments, merging, next_vacuum FROM near_dup_index_stats('sigs_sig');
DO $$
BEGIN
    FOR i IN 1 .. 40 LOOP
        INSERT INTO sigs SELECT id + 1000 * i, minhash(body, 2, slots => 64 + i) FROM docs;
    END LOOP;
END $$;
SELECT * FROM differing('sigs', 0.8);
SELECT near_dup_index_check('sigs_sig');
SELECT rows, dead_rows, log_rows, segments > 1 AS segments FROM near_dup_index_stats('sigs_sig');
DELETE FROM sigs WHERE id % 7 = 0 OR id > 20000;
UPDATE sigs SET sig = (SELECT minhash(body) FROM docs WHERE docs.id = sigs.id + 1) WHERE id % 5 = 0;
SELECT * FROM differing('sigs', 0.8);
VACUUM sigs;
SELECT * FROM differing('sigs', 0.8);
SELECT near_dup_index_check('sigs_sig');
SELECT rows, dead_rows, segments, merging, next_vacuum FROM near_dup_index_stats('sigs_sig');
DELETE FROM sigs;
VACUUM sigs;
SELECT rows, dead_rows, segments, merging, next_vacuum FROM near_dup_index_stats('sigs_sig');
SELECT near_dup_index_check('sigs_sig');
INSERT INTO sigs SELECT id, minhash(body) FROM docs;
SELECT * FROM differing('sigs', 0.8);
REINDEX INDEX sigs_sig;
SELECT * FROM differing('sigs', 0.8);
REINDEX INDEX CONCURRENTLY sigs_sig;
SELECT * FROM differing('sigs', 0.8);
SELECT near_dup_index_check('sigs_sig');
CREATE UNLOGGED TABLE unlogged_sigs (LIKE sigs);
CREATE INDEX unlogged_sigs_sig ON unlogged_sigs USING neardup (sig);
INSERT INTO unlogged_sigs TABLE sigs;
SELECT * FROM differing('unlogged_sigs', 0.8);
SELECT near_dup_index_check('unlogged_sigs_sig');
ALTER TABLE unlogged_sigs SET LOGGED;
SELECT * FROM differing('unlogged_sigs', 0.8);
CREATE TEMPORARY TABLE temporary_sigs (LIKE sigs);
CREATE INDEX temporary_sigs_sig ON temporary_sigs USING neardup (sig);
INSERT INTO temporary_sigs TABLE sigs;
SELECT * FROM differing('temporary_sigs', 0.8);
SELECT near_dup_index_check('temporary_sigs_sig');

-- A build in little memory writes several segments and merges them.
SET maintenance_work_mem = '1MB';
CREATE TABLE many (id int, sig minhash_signature);
INSERT INTO many SELECT n, minhash('a document ' || n || ' of ' || n % 100 || ' and ' || n % 1000) FROM generate_series(1, 60000) n;
CREATE INDEX many_sig ON many USING neardup (sig);
SELECT near_dup_index_check('many_sig');
SELECT rows, log_rows, segments FROM near_dup_index_stats('many_sig');
-- Checked in several passes; a row that is missing in the index.
UPDATE pg_index SET indisready = false WHERE indexrelid = 'many_sig'::regclass;
INSERT INTO many VALUES (0, minhash('some text'));
UPDATE pg_index SET indisready = true WHERE indexrelid = 'many_sig'::regclass;
SELECT near_dup_index_check('many_sig');
DELETE FROM many WHERE id = 0;
SELECT near_dup_index_check('many_sig');
RESET maintenance_work_mem;

-- Partitions; an index on an expression, a partial one, one built concurrently.
CREATE TABLE parts (LIKE sigs) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
CREATE INDEX parts_sig ON parts USING neardup (sig);
INSERT INTO parts TABLE sigs;
SELECT * FROM differing('parts', 0.8);
SELECT near_dup_index_check('parts_sig');
SELECT near_dup_index_check('docs');
SELECT near_dup_index_stats('docs_pkey');
CREATE INDEX CONCURRENTLY docs_sig ON docs USING neardup (minhash(body)) WHERE body > '';
SELECT near_dup_index_check('docs_sig');
SET enable_seqscan = off;
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        RETURN NEXT regexp_replace(replace(regexp_replace(line, 'InitPlan [a-z]+_', 'InitPlan ', 'g'), ' (returns $0)', ''), '\(InitPlan 1\)\.col1', '$0', 'g');
    END LOOP;
END $$;
PREPARE of_expression AS
SELECT count(*) FROM docs WHERE near_dup(minhash(body), (SELECT minhash(body) FROM docs WHERE id = 20)) AND body > '';
SELECT explain('EXECUTE of_expression');
EXECUTE of_expression;
RESET enable_seqscan;

-- Without a condition, the index is not used.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT explain('SELECT count(*) FROM sigs');
SELECT explain($$SELECT count(*) FROM sigs WHERE sig <@ _ball(minhash('some text', slots => 4), 0.8)$$);
RESET enable_bitmapscan;
RESET enable_seqscan;

-- Parameters that no row has cause a warning, once per session; an empty index does not.
\c -
SET enable_seqscan = off;
CREATE FUNCTION lookup_with(k int) RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM sigs WHERE near_dup(sig, minhash('some text', k)) $$;
SELECT lookup_with(3), lookup_with(2), lookup_with(2);
SELECT lookup_with(2);
TRUNCATE sigs;
SELECT lookup_with(2);
RESET enable_seqscan;
SET client_min_messages = error;

-- Bit strings of several lengths in one column: clusters, with up to 12 bits flipped.
CREATE FUNCTION flip(b varbit, bits int[]) RETURNS varbit LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. coalesce(cardinality(bits), 0) LOOP
        b := set_bit(b::bit varying, bits[i] % length(b), 1 - get_bit(b, bits[i] % length(b)));
    END LOOP;
    RETURN b;
END $$;
CREATE TABLE hashes (id int, b varbit);
CREATE INDEX hashes_b ON hashes USING neardup (b);
INSERT INTO hashes
SELECT i, flip(substring(repeat(('x' || md5((i / 13)::text))::bit(128)::text, 2)::varbit FOR n),
               ARRAY(SELECT j * 41 + i * 7 FROM generate_series(1, i % 13) j))
FROM generate_series(1, 390) i, unnest('{8, 64, 100, 256}'::int[]) n;
INSERT INTO hashes VALUES (0, B''), (0, B''), (0, NULL), (0, B'1');
SELECT near_dup_index_check('hashes_b');
DO $$
DECLARE
    index_distance int;
    most int;
    differing bigint;
    answers bigint;
BEGIN
    SET LOCAL enable_seqscan = off;
    FOREACH index_distance IN ARRAY '{3, 0, 12, 63}'::int[] LOOP
        DROP INDEX hashes_b;
        EXECUTE format('CREATE INDEX hashes_b ON hashes USING neardup (b hamming_ops (distance = %s))', index_distance);
        FOREACH most IN ARRAY '{0, 1, 3, 5, 12}'::int[] LOOP
            WITH scan AS MATERIALIZED (SELECT q.ctid AS q, d.ctid AS d FROM hashes q, hashes d
                                       WHERE q.id % 40 = 0 AND hamming_within(d.b, q.b, most) IS TRUE),
                 found AS MATERIALIZED (SELECT q.ctid AS q, d.ctid AS d FROM hashes q, hashes d
                                        WHERE q.id % 40 = 0 AND hamming_within(d.b, q.b, most))
            SELECT (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
                 + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x),
                   (SELECT count(*) FROM found)
            INTO differing, answers;
            IF differing > 0 OR answers < 50 THEN
                RAISE EXCEPTION 'index distance %, distance %: % differ of %', index_distance, most, differing, answers;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- A damaged catalog: an error, and no such index in a plan.
CREATE INDEX damaged ON sigs USING neardup (sig);
UPDATE pg_attribute SET attoptions = '{threshold=7}' WHERE attrelid = 'damaged'::regclass;
\c -
INSERT INTO sigs VALUES (1, minhash('some text'));
