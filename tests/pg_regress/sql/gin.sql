-- The GIN operator classes: index = sequential scan, whatever is in the column.
SET client_min_messages = warning;

-- Query types: text form, arguments out of range, damaged text.
SELECT minhash_ball(minhash('', slots => 4), 0.8), bit_ball(B'0110', 2), bit_ball(B'', 0);
SELECT ball::text::minhash_ball::text = ball::text AS same
FROM (SELECT minhash_ball(minhash('some more text'), 0.1 + 0.2) AS ball) b;
SELECT ' <0110 , 2> '::bit_ball, '<,0>'::bit_ball;
SELECT minhash_ball(minhash('some text'), 0);
SELECT bit_ball(B'0110', -1);
SELECT '<0120,2>'::bit_ball;
SELECT '<0110,-2>'::bit_ball;
SELECT '<minhash:1:word:3:case:4x32:6f7d37eeb3134a5b:empty,1.5>'::minhash_ball;
SELECT 'minhash:1:word:3:case:4x32:6f7d37eeb3134a5b:empty'::minhash_ball;

-- The predicates: empty, incomparable, NULL.
SELECT near_dup(minhash('a b c d'), minhash('A, b, c, d!')) AS equal,
       near_dup(minhash('a b c d'), minhash('e f g h')) AS other,
       near_dup(minhash(''), minhash('')) AS empty,
       near_dup(minhash('a b c d'), minhash('a b c d', k => 2)) AS incomparable,
       near_dup(minhash('a b c d'), NULL) AS null;
SELECT near_dup(minhash('a b c d'), minhash('a b c d'), 1.5);
SELECT hamming_within(B'0110', B'0101', 2) AS near, hamming_within(B'0110', B'0101', 1) AS far,
       hamming_within(B'0110', B'01100', 9) AS lengths, hamming_within(B'', B'', 0) AS empty;
SELECT hamming_within(B'0110', B'0101', -1);

-- Options of the operator classes.
CREATE TABLE options (sig minhash_signature, b varbit);
CREATE INDEX ON options USING gin (sig minhash_ops (threshold = 0));
CREATE INDEX ON options USING gin (sig minhash_ops (threshold = nan));
CREATE INDEX ON options USING gin (sig minhash_ops (key_bits = 25));
CREATE INDEX ON options USING gin (b hamming_ops (distance = 64));
CREATE INDEX ON options USING gin (b hamming_ops (distance = 3, blocks = 3));
CREATE INDEX ON options USING gin (b hamming_ops (blocks = 65));
CREATE INDEX ON options USING gin (b hamming_ops (distance = 63));
SELECT opcname, amvalidate(oid) FROM pg_opclass WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'gin') AND opcname IN ('minhash_ops', 'hamming_ops') ORDER BY 1;
DROP TABLE options;

-- Documents of 60 words in groups of 20 with up to 40 % of the words changed; empty ones, NULLs,
-- and some whose signatures compare with none of the others.
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

CREATE TABLE sigs (id int, sig minhash_signature);
CREATE INDEX sigs_sig ON sigs USING gin (sig);
DO $$
DECLARE
    n int;
    bits int;
    t float8;
    found record;
BEGIN
    FOREACH n IN ARRAY '{1, 100}'::int[] LOOP
        FOREACH bits IN ARRAY '{8, 24}'::int[] LOOP
            TRUNCATE sigs;
            INSERT INTO sigs SELECT id, minhash(body, slots => n) FROM docs WHERE id % 3 > 0;
            INSERT INTO sigs SELECT id, minhash(body, slots => n, seed => 1) FROM docs WHERE id % 20 = 9;
            INSERT INTO sigs SELECT id, minhash(body, slots => n + 1) FROM docs WHERE id % 20 = 6;
            INSERT INTO sigs SELECT id, minhash(body, 2, slots => n) FROM docs WHERE id % 20 = 3;
            DROP INDEX sigs_sig;
            EXECUTE format('CREATE INDEX sigs_sig ON sigs USING gin (sig minhash_ops (threshold = %s, key_bits = %s))',
                           0.6 + bits / 100.0, bits);
            FOREACH t IN ARRAY '{0.3, 0.8, 1}'::float8[] LOOP
                SELECT * INTO found FROM differing('sigs', t);
                IF found.differing > 0 OR found.answers < 50 THEN
                    RAISE WARNING '% slots, % bits, threshold %: %', n, bits, t, found;
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- Changes: pending list, deletes, vacuum, updates, REINDEX, an unlogged table.
CREATE FUNCTION refill() RETURNS void LANGUAGE sql AS $$
    TRUNCATE sigs;
    INSERT INTO sigs SELECT id, minhash(body) FROM docs
$$;
SELECT refill();
SELECT * FROM differing('sigs', 0.8);
SELECT gin_clean_pending_list('sigs_sig') > 0 AS flushed;
SELECT * FROM differing('sigs', 0.8);
DELETE FROM sigs WHERE id % 7 = 0;
UPDATE sigs SET sig = (SELECT minhash(body) FROM docs WHERE docs.id = sigs.id + 1) WHERE id % 5 = 0;
SELECT * FROM differing('sigs', 0.8);
VACUUM sigs;
SELECT * FROM differing('sigs', 0.8);
REINDEX INDEX sigs_sig;
SELECT * FROM differing('sigs', 0.8);
CREATE UNLOGGED TABLE unlogged_sigs (LIKE sigs);
CREATE INDEX ON unlogged_sigs USING gin (sig) WITH (fastupdate = off);
INSERT INTO unlogged_sigs TABLE sigs;
SELECT * FROM differing('unlogged_sigs', 0.8);

-- Partitions; an index on an expression, a partial one, one built concurrently.
CREATE TABLE parts (LIKE sigs) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
CREATE INDEX ON parts USING gin (sig);
INSERT INTO parts TABLE sigs;
SELECT * FROM differing('parts', 0.8);
CREATE INDEX CONCURRENTLY ON docs USING gin (minhash(body)) WHERE body > '';
SET enable_seqscan = off;
PREPARE of_expression AS
SELECT count(*) FROM docs WHERE near_dup(minhash(body), (SELECT minhash(body) FROM docs WHERE id = 20)) AND body > '';
-- PostgreSQL 17 spells the results of subqueries otherwise, PostgreSQL 18 tells what is disabled.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        RETURN NEXT regexp_replace(replace(line, ' (returns $0)', ''), '\(InitPlan 1\)\.col1', '$0', 'g');
    END LOOP;
END $$;
SELECT explain('EXECUTE of_expression');
EXECUTE of_expression;
RESET enable_seqscan;

-- Bit strings of several lengths in one column: clusters, with up to 12 bits flipped.
CREATE FUNCTION flip(b varbit, bits int[]) RETURNS varbit LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. coalesce(cardinality(bits), 0) LOOP
        b := set_bit(b::bit varying, bits[i] % length(b), 1 - get_bit(b, bits[i] % length(b)));
    END LOOP;
    RETURN b;
END $$;
CREATE TABLE hashes (id int, b varbit);
INSERT INTO hashes
SELECT i, flip(substring(repeat(('x' || md5((i / 13)::text))::bit(128)::text, 2)::varbit FOR n),
               ARRAY(SELECT j * 41 + i * 7 FROM generate_series(1, i % 13) j))
FROM generate_series(1, 390) i, unnest('{8, 64, 100, 256}'::int[]) n;
INSERT INTO hashes VALUES (0, B''), (0, B''), (0, NULL), (0, B'1');
CREATE INDEX hashes_b ON hashes USING gin (b hamming_ops);
DO $$
DECLARE
    options text;
    most int;
    differing bigint;
    answers bigint;
BEGIN
    SET LOCAL enable_seqscan = off;
    FOREACH options IN ARRAY '{"distance = 3", "blocks = 6", "distance = 0", "distance = 12, blocks = 64"}'::text[] LOOP
        DROP INDEX hashes_b;
        EXECUTE format('CREATE INDEX hashes_b ON hashes USING gin (b hamming_ops (%s))', options);
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
                RAISE WARNING '%, distance %: % differ of %', options, most, differing, answers;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- A damaged catalogue: an error, and no such index in a plan.
CREATE INDEX damaged ON sigs USING gin (sig);
UPDATE pg_attribute SET attoptions = '{threshold=7}' WHERE attrelid = 'damaged'::regclass;
UPDATE pg_attribute SET attoptions = '{distance=7,blocks=3}' WHERE attrelid = 'hashes_b'::regclass;
\c -
INSERT INTO sigs VALUES (1, minhash('some text'));
INSERT INTO hashes VALUES (1, B'0110');
DROP INDEX sigs_sig;
SET enable_seqscan = off;
SELECT explain($$SELECT count(*) FROM sigs WHERE near_dup(sig, minhash('', slots => 4), 1)$$);
SELECT explain($$SELECT count(*) FROM hashes WHERE hamming_within(b, B'0110', 1)$$);
SELECT count(*) FROM sigs WHERE sig <@ minhash_ball(minhash('some text'), 1);
