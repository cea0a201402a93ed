-- Plans of near_dup and hamming_within.
CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature, b bit(64));
INSERT INTO docs SELECT i, minhash('word' || i || ' and some more', slots => 4), ('x' || md5(i::text))::bit(64)
FROM generate_series(1, 2000) i;
CREATE INDEX docs_sig ON docs USING neardup (sig minhash_ops (threshold = 0.7));
CREATE INDEX docs_b ON docs USING neardup (b hamming_ops);
CREATE TABLE queries (id int, sig minhash_signature, b bit(64));
INSERT INTO queries SELECT * FROM docs WHERE id % 200 = 0;
ANALYZE docs, queries;

-- Constants, on either side; the operators.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 0.85);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(minhash('some text', slots => 4), sig, 0.85);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(a => minhash('some text', slots => 4), b => sig);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <@ _ball(minhash('some text', slots => 4), 0.85);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE _ball(minhash('some text', slots => 4), 0.85) @> sig;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE hamming_within(b, B'0101'::bit(64), 3);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE _ball(B'0101'::bit(64), 3) @> b;

-- Not if the index cannot find everything by its keys, nor for a threshold out of range.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 0.2);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE hamming_within(b, B'0101'::bit(64), 4);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 1.5);
-- Below the option, but with one band per slot, it can still be used.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 0.7);

-- Prepared statements, custom and generic plans; at run time, even a threshold that is too low is exact.
PREPARE lookup (minhash_signature, float8) AS SELECT count(*) FROM docs WHERE near_dup(sig, $1, $2);
SET plan_cache_mode = force_custom_plan;
EXPLAIN (COSTS OFF) EXECUTE lookup (minhash('some text', slots => 4), 0.85);
EXPLAIN (COSTS OFF) EXECUTE lookup (minhash('some text', slots => 4), 0.2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE lookup (minhash('some text', slots => 4), 0.85);
EXECUTE lookup (minhash('word7 and some more', slots => 4), 0.85);
EXECUTE lookup (minhash('word7 and some more', slots => 4), 0.2);
SELECT count(*) FROM docs WHERE near_dup(sig, minhash('word7 and some more', slots => 4), 0.2) IS TRUE;
PREPARE closest (bit, int) AS SELECT count(*) FROM docs WHERE hamming_within(b, $1, $2);
EXPLAIN (COSTS OFF) EXECUTE closest (B'0101'::bit(64), 3);
RESET plan_cache_mode;

-- Subqueries, joins and lateral joins, with either table's index.
-- PostgreSQL 17 writes the results of subqueries differently.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        RETURN NEXT regexp_replace(replace(regexp_replace(line, 'InitPlan [a-z]+_', 'InitPlan ', 'g'), ' (returns $0)', ''), '\(InitPlan 1\)\.col1', '$0', 'g');
    END LOOP;
END $$;
SELECT explain('SELECT id FROM docs WHERE near_dup(sig, (SELECT sig FROM queries WHERE id = 200), 0.85)');
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON near_dup(q.sig, d.sig);
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON near_dup(d.sig, q.sig, 0.9) AND d.id <> q.id;
EXPLAIN (COSTS OFF) SELECT * FROM queries q LEFT JOIN docs d ON hamming_within(q.b, d.b, 3);
SELECT q.id, count(d.id) FROM queries q LEFT JOIN docs d ON near_dup(q.sig, d.sig, 1) GROUP BY 1 ORDER BY 1 LIMIT 3;

-- A condition on two columns of one table is not a lookup.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, sig, 0.85);

-- Comparisons of minhash_sim and of the distance with a constant use the index, too, and stay as a filter.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) > 0.8;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE 0.8 <= minhash_sim(minhash('some text', slots => 4), sig) AND id < 9;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <=> minhash('some text', slots => 4) < 0.2;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_distance(sig, minhash('some text', slots => 4)) <= 0.2;
PREPARE similar_to (minhash_signature) AS SELECT count(*) FROM docs WHERE minhash_sim(sig, $1) >= 0.75;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE similar_to (minhash('word7 and some more', slots => 4));
RESET plan_cache_mode;
EXECUTE similar_to (minhash('word7 and some more', slots => 4));
SELECT count(*) FROM docs WHERE near_dup(sig, minhash('word7 and some more', slots => 4), 0.75) IS TRUE;
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON minhash_sim(q.sig, d.sig) > 0.8;
EXPLAIN (COSTS OFF) SELECT * FROM queries q LEFT JOIN docs d ON minhash_sim(d.sig, q.sig) > 0.8 AND d.id <> q.id;
SELECT q.id, count(d.id) FROM queries q LEFT JOIN docs d ON minhash_sim(d.sig, q.sig) > 0.8 GROUP BY 1 ORDER BY 1 LIMIT 3;
-- Every spelling at the index's own threshold, 0.7.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 0.7);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <@ _ball(minhash('some text', slots => 4), 0.7);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) >= 0.7;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <=> minhash('some text', slots => 4) <= 0.3;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE 0.3 > minhash_distance(minhash('some text', slots => 4), sig);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE NOT minhash_sim(sig, minhash('some text', slots => 4)) < 0.7;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) BETWEEN 0.7 AND 0.9;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) = 1;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE bit_hamming(b, B'0101'::bit(64)) <= 3;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE 3 > bit_hamming(B'0101'::bit(64), b);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE NOT bit_hamming(b, B'0101'::bit(64)) > 3;
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON d.sig <=> q.sig <= 0.3;
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON minhash_sim(d.sig, q.sig) BETWEEN 0.7 AND 0.9;
EXPLAIN (COSTS OFF) SELECT * FROM queries q JOIN docs d ON bit_hamming(q.b, d.b) <= 3 AND d.id <> q.id;
-- A bound of any type of number.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) >= 0.8::real;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE 0.8::real < minhash_sim(sig, minhash('some text', slots => 4));
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) >= 0.8::numeric;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) >= 1::bigint;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <=> minhash('some text', slots => 4) < 0.2::real;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE bit_hamming(b, B'0101'::bit(64)) <= 3::bigint;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE 4::smallint > bit_hamming(b, B'0101'::bit(64));
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE bit_hamming(b, B'0101'::bit(64)) <= 3000000000;
CREATE TABLE bodies AS SELECT i AS id, 'word' || i % 400 || ' and some more words of a text ' || i AS body FROM generate_series(1, 2000) i;
CREATE INDEX ON bodies USING neardup (body);
CREATE INDEX ON bodies USING neardup (shingle_hashes(body));
ANALYZE bodies;
EXPLAIN (COSTS OFF) SELECT id FROM bodies WHERE resemblance(body, 'some more words of a text') >= 0.8::real;
EXPLAIN (COSTS OFF) SELECT id FROM bodies WHERE 0.8::numeric <= resemblance('some more words of a text', body);
EXPLAIN (COSTS OFF) SELECT id FROM bodies WHERE resemblance(body, 'some more words of a text') >= 1;
EXPLAIN (COSTS OFF) SELECT id FROM bodies WHERE jaccard(shingle_hashes(body), '{1,2,3}') >= 0.8::real;
EXPLAIN (COSTS OFF) SELECT id FROM bodies WHERE 0.8::real <= containment('{1,2,3}', shingle_hashes(body));
PREPARE resembling (text, real) AS SELECT count(*) FROM bodies WHERE resemblance(body, $1) >= $2;
EXPLAIN (COSTS OFF) EXECUTE resembling ('word7 and some more words of a text 7', 0.8);
EXECUTE resembling ('word7 and some more words of a text 7', 0.7);
SELECT count(*) FROM bodies WHERE resemblance(body, 'word7 and some more words of a text 7') + 0 >= 0.7::real;
PREPARE real_sim (minhash_signature, real) AS SELECT count(*) FROM docs WHERE minhash_sim(sig, $1) >= $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE real_sim (minhash('word7 and some more', slots => 4), 0.75);
EXECUTE real_sim (minhash('word7 and some more', slots => 4), 0.75);
RESET plan_cache_mode;
-- Bounds that are not known, either; any bound gives the same answers as the sequential scan.
PREPARE sim (minhash_signature, float8) AS SELECT count(*) FROM docs WHERE minhash_sim(sig, $1) >= $2;
PREPARE distance (minhash_signature, float8) AS SELECT count(*) FROM docs WHERE sig <=> $1 < $2;
PREPARE bits (bit, int) AS SELECT count(*) FROM docs WHERE $2 >= bit_hamming($1, b);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE sim (minhash('word7 and some more', slots => 4), 0.7);
EXPLAIN (COSTS OFF) EXECUTE distance (minhash('word7 and some more', slots => 4), 0.3);
EXPLAIN (COSTS OFF) EXECUTE bits (B'0101'::bit(64), 3);
EXPLAIN (COSTS OFF)
SELECT * FROM queries q JOIN docs d ON minhash_sim(d.sig, q.sig) >= 1 - q.id / 10000.0;
CREATE TABLE answers (how text, bound text, sim bigint, distance bigint, bits bigint);
CREATE FUNCTION record_answers(how text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q minhash_signature := minhash('word7 and some more', slots => 4);
    bound float8;
BEGIN
    FOREACH bound IN ARRAY ARRAY[-1, 0, 0.2, 0.5, 0.7, 0.75, 0.8, 1, 1.5, 'NaN', 'Infinity', NULL] LOOP
        INSERT INTO answers SELECT how, bound::text,
            (SELECT count(*) FROM docs WHERE minhash_sim(sig, q) >= bound),
            (SELECT count(*) FROM docs WHERE sig <=> q <= 1 - bound),
            (SELECT count(*) FROM docs WHERE bit_hamming(b, (SELECT b FROM queries WHERE id = 200)) <=
                CASE WHEN bound BETWEEN -1 AND 1 THEN (bound * 40)::int END);
    END LOOP;
END $$;
INSERT INTO docs VALUES (3001, minhash('', slots => 4), NULL), (3002, NULL, NULL);
SET enable_seqscan = off;
SELECT record_answers('index');
SET enable_seqscan = on;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT record_answers('scan');
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET plan_cache_mode;
SELECT bound, sim, distance, bits, count(*) FROM answers GROUP BY 1, 2, 3, 4 ORDER BY 5, 2 DESC, 3 DESC, 1;
DELETE FROM docs WHERE id > 3000;
-- Semijoins and antijoins; parallel plans.
EXPLAIN (COSTS OFF) SELECT * FROM queries q WHERE NOT EXISTS (SELECT FROM docs d WHERE minhash_sim(d.sig, q.sig) > 0.8 AND d.id < q.id);
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 1;
EXPLAIN (COSTS OFF) SELECT count(*) FROM queries q JOIN docs d ON minhash_sim(d.sig, q.sig) > 0.8;
EXPLAIN (COSTS OFF) SELECT count(*) FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) > 0.2;
SELECT count(*) FROM queries q JOIN docs d ON minhash_sim(d.sig, q.sig) > 0.8;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET max_parallel_workers_per_gather;
-- Not comparisons that do not imply near_dup, nor thresholds below the index's; not a sample.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('', slots => 4)) < 0.8;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE sig <=> minhash('', slots => 4) > 0.2;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('', slots => 4)) > 1.5;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('some text', slots => 4)) > 0.2;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('', slots => 4)) > 0.8 OR id = 7;
EXPLAIN (COSTS OFF) SELECT id FROM docs TABLESAMPLE SYSTEM (50) WHERE minhash_sim(sig, minhash('', slots => 4)) > 0.8;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE minhash_sim(sig, minhash('', slots => 4)) > 0.8;
RESET enable_bitmapscan;
-- Behind a security barrier, functions that could leak are not called on rows that the barrier hides.
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM docs WHERE id % 2 = 0 AND hamming_within(b, b, 0);
EXPLAIN (COSTS OFF) SELECT id FROM barrier WHERE minhash_sim(sig, minhash('', slots => 4)) > 0.8;
-- Both partitions, and a first query of a session that has not loaded the library.
CREATE TABLE parts (LIKE docs) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (1000) TO (MAXVALUE);
CREATE INDEX ON parts USING neardup (sig);
INSERT INTO parts TABLE docs;
ANALYZE parts;
\c -
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE minhash_sim(sig, 'minhash:1:word:3:case:4x32:6f7d37eeb3134a5b:empty') > 0.8;

-- Another operator family for the same type is not used.
CREATE OPERATOR CLASS minhash_hash_text FOR TYPE minhash_signature USING spgist AS
    STORAGE text;
DROP INDEX docs_sig;
CREATE INDEX docs_hash ON docs USING hash (sig);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(sig, minhash('some text', slots => 4), 0.85);

-- Support functions can only be called by the planner: nobody else can make a value of type internal.
SELECT oid::regprocedure AS support FROM pg_proc
WHERE proname = '_near_dup_support' ORDER BY proname;

-- A foreign function with our planner support is not replaced.
CREATE FUNCTION like_near_dup(a minhash_signature, b minhash_signature, threshold float8) RETURNS boolean
LANGUAGE sql IMMUTABLE RETURN a = b AND threshold > 0;
CREATE FUNCTION like_near_dup(a text, b text, threshold float8) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT SUPPORT _near_dup_support AS 'BEGIN RETURN a = b; END';
CREATE TABLE texts (t text);
CREATE INDEX ON texts USING gin (to_tsvector('simple', t));
CREATE INDEX ON texts USING gin ((ARRAY[t]));
CREATE INDEX ON texts (t);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM texts WHERE like_near_dup(t, 'x', 0.85);

-- An operator of keys with a value of another type, with our estimate.
CREATE FUNCTION like_key(near_dup_key, bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $2 > 0; END';
CREATE OPERATOR @@@ (LEFTARG = near_dup_key, RIGHTARG = bigint, FUNCTION = like_key, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel);
EXPLAIN (COSTS OFF) SELECT FROM texts WHERE near_dup_key(t, 0.8) @@@ 16::bigint;

-- A user's function may return a ball; its arguments are not taken for ours.
CREATE FUNCTION pg_temp.made(text, float8, int, int, int) RETURNS _ball LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
EXPLAIN (COSTS OFF) SELECT FROM pg_class WHERE relname::text <@ pg_temp.made('x', 0.8, 3, 1, 2);
