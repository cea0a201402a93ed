-- Exclusion constraints that keep near-duplicates out.
SET client_min_messages = warning;
CREATE TABLE docs (id int PRIMARY KEY, body text, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
ALTER TABLE docs ADD CONSTRAINT docs_no_near_dup EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'docs_no_near_dup';
CREATE FUNCTION document(n int) RETURNS text IMMUTABLE LANGUAGE sql AS
$$ SELECT string_agg('word' || n * 100 + i, ' ') FROM generate_series(1, 60) i $$;

INSERT INTO docs SELECT i, document(i) FROM generate_series(1, 200) i;
INSERT INTO docs VALUES (1001, document(1) || ' and a little');
INSERT INTO docs VALUES (1001, document(1) || ' and a little') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (1001, document(1) || ' and a little') ON CONFLICT ON CONSTRAINT docs_no_near_dup DO NOTHING;
INSERT INTO docs VALUES (1001, document(1)) ON CONFLICT ON CONSTRAINT docs_no_near_dup DO UPDATE SET body = '';
INSERT INTO docs VALUES (1002, document(1002)), (1003, document(1003)), (1004, document(1002));
INSERT INTO docs SELECT 2000 + i, document(150 + i) FROM generate_series(1, 100) i ON CONFLICT DO NOTHING;
SELECT count(*), max(id) FROM docs;
UPDATE docs SET body = document(2) WHERE id = 1;
UPDATE docs SET body = document(1) || ' edited' WHERE id = 1;
UPDATE docs SET id = -id;
-- NULL and empty documents do not conflict, nor do signatures made with different parameters.
INSERT INTO docs SELECT 3000 + i, CASE WHEN i % 2 = 0 THEN '' END FROM generate_series(1, 4) i;
SELECT count(*) FROM docs;
-- It names every near-duplicate, at its threshold and above.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup_key(sig, 0.85) % near_dup_key(minhash('some text'), 0.9);
SELECT id FROM docs WHERE near_dup_key(sig, 0.85) % near_dup_key(minhash(document(7) || ' more'), 0.9);
SELECT id FROM docs WHERE near_dup_key(sig, 0.85) % near_dup_key(minhash(document(7) || ' more'), 0.5);
SELECT id FROM docs WHERE near_dup_key(sig, 0.85) % near_dup_key(minhash(document(7) || ' more'), 1);
RESET enable_seqscan;
SELECT near_dup_index_check('docs_no_near_dup');

-- Each is within the other's threshold.
SELECT ta, tb, near_dup_key(a, ta) % near_dup_key(b, tb) AS ab, near_dup_key(b, tb) % near_dup_key(a, ta) AS ba
FROM (SELECT minhash(document(1)), minhash(document(1) || ' and five words more here')) s (a, b),
     unnest('{0.5, 0.95}'::float8[]) ta, unnest('{0.5, 0.95}'::float8[]) tb ORDER BY 1, 2;
SELECT near_dup_key(minhash('some text'), 0.85), near_dup_key(minhash('', slots => 64), 1), near_dup_key(B'0110', 2);
SELECT near_dup_key(minhash('a'), 0);
SELECT near_dup_key(minhash('a'), 'nan');
SELECT near_dup_key(B'1', -1);
SELECT '<a,0.8>'::near_dup_key;
SELECT ''::near_dup_key;
SELECT near_dup_key(NULL, 0.8) IS NULL AS sig, near_dup_key(minhash('a'), NULL) IS NULL AS threshold;
SELECT near_dup_key(B'0000', 2) % near_dup_key(B'0011', 3) AS within, near_dup_key(B'0000', 1) % near_dup_key(B'0011', 3) AS beyond,
       near_dup_key(B'0000', 4) % near_dup_key(B'00000', 4) AS of_other_length,
       near_dup_key(B'0000', 4) % near_dup_key(minhash('a'), 0.1) AS of_other_kind;

-- A label identifies the row in messages, and is ignored otherwise.
CREATE TABLE labeled (id int, sig minhash_signature, hash bit(64));
INSERT INTO labeled SELECT i, minhash(document(i % 10)), i::bit(64) FROM generate_series(1, 20) i;
SET search_path = pg_catalog;
ALTER TABLE public.labeled ADD CONSTRAINT by_label EXCLUDE USING neardup (public.near_dup_key(sig, 0.85, label => id::text) WITH OPERATOR(public.%));
RESET search_path;
DELETE FROM labeled WHERE id > 10;
ALTER TABLE labeled ADD CONSTRAINT by_label EXCLUDE USING neardup (near_dup_key(sig, 0.85, label => id::text) WITH %);
INSERT INTO labeled (id, sig) SELECT 11, sig FROM labeled WHERE id = 7;
INSERT INTO labeled (id, sig) SELECT NULL, sig FROM labeled WHERE id = 7;
INSERT INTO labeled (id, sig) SELECT 11, sig FROM labeled WHERE id = 7 ON CONFLICT DO NOTHING;
ALTER TABLE labeled ADD EXCLUDE USING neardup (near_dup_key(hash, 0, 'number ' || id) WITH %);
INSERT INTO labeled (id, hash) VALUES (11, 7::bit(64));
SELECT near_dup_index_check('by_label');
SELECT near_dup_key(minhash('a'), 0.5, 'one') % near_dup_key(minhash('a'), 0.5, 'another') AS "same",
       near_dup_key(B'01', 0, 'one') % near_dup_key(B'11', 0, 'one') AS other;
SELECT near_dup_key(minhash('a'), 0.5, NULL), near_dup_key(minhash('a'), 0.5, ''), near_dup_key(B'01', 0, NULL);
SELECT near_dup_key(NULL::minhash_signature, 0.5, 'a') IS NULL AS sig, near_dup_key(minhash('a'), NULL, 'a') IS NULL AS threshold;
SELECT length(near_dup_key(minhash('a'), 0.5, repeat('x', 1000000))::text) AS letters,
       near_dup_key(minhash('a'), 0.5, 'x' || repeat('é', 1000))::text = 'x' || repeat('é', 99) AS whole_characters;
SELECT near_dup_key(minhash('a'), 0, 'a');
SELECT near_dup_key(B'01', -1, 'a');

-- The threshold is a constant of the index.
CREATE TABLE thresholds (sig minhash_signature, t float8, key near_dup_key, b bit(8), d int);
CREATE INDEX ON thresholds USING neardup (near_dup_key(sig, t));
CREATE INDEX ON thresholds USING neardup (key);
ALTER TABLE thresholds ADD EXCLUDE USING neardup (key WITH %);
CREATE INDEX ON thresholds USING neardup (near_dup_key(b, d));
CREATE INDEX ON thresholds USING neardup (near_dup_key(b, 64));
CREATE INDEX ON thresholds USING neardup (near_dup_key(sig, 1.5));
ALTER TABLE thresholds ADD EXCLUDE USING neardup (near_dup_key(sig, 0.3 + 0.2) WITH %);
-- PostgreSQL 17 and later qualify names in such messages.
\set VERBOSITY sqlstate
ALTER TABLE thresholds ADD EXCLUDE USING neardup (sig WITH <=>);
\set VERBOSITY default
\d thresholds
DROP TABLE thresholds;

-- A table that has near-duplicates cannot get the constraint.
CREATE TABLE copies AS SELECT i AS id, minhash(document(i % 10)) AS sig FROM generate_series(1, 20) i;
\set VERBOSITY terse
ALTER TABLE copies ADD EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %);
\set VERBOSITY default
DELETE FROM copies WHERE id > 10;
ALTER TABLE copies ADD EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %) WHERE (id < 5);
INSERT INTO copies SELECT 11, sig FROM copies WHERE id = 3;
INSERT INTO copies SELECT 4, sig FROM copies WHERE id = 3;

-- Deferrable: checked at the end of the statement, or of the transaction; ON CONFLICT is rejected.
ALTER TABLE docs DROP CONSTRAINT docs_no_near_dup;
ALTER TABLE docs ADD CONSTRAINT docs_no_near_dup EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %) DEFERRABLE;
UPDATE docs SET body = document(CASE id WHEN -5 THEN 6 ELSE 5 END) WHERE id IN (-5, -6);
INSERT INTO docs VALUES (4000, document(7)) ON CONFLICT DO NOTHING;
BEGIN;
SET CONSTRAINTS docs_no_near_dup DEFERRED;
INSERT INTO docs VALUES (4000, document(7));
DELETE FROM docs WHERE id = -7;
COMMIT;
BEGIN;
SET CONSTRAINTS docs_no_near_dup DEFERRED;
INSERT INTO docs VALUES (4001, document(7));
SELECT count(*) FROM docs WHERE id > 4000;
COMMIT;
BEGIN;
SET CONSTRAINTS docs_no_near_dup DEFERRED;
INSERT INTO docs VALUES (4001, document(7));
SET CONSTRAINTS docs_no_near_dup IMMEDIATE;
ROLLBACK;
SELECT near_dup_index_check('docs_no_near_dup');
REINDEX INDEX docs_no_near_dup;
INSERT INTO docs VALUES (4001, document(7));

-- Checks do not warn about parameters; a lookup does.
RESET client_min_messages;
INSERT INTO docs (id, body) VALUES (5001, document(5001));
CREATE TABLE parameters (sig minhash_signature, EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %));
INSERT INTO parameters VALUES (minhash('some text of a document')), (minhash('some text of a document', 2));
SET enable_seqscan = off;
SELECT count(*) FROM parameters WHERE near_dup_key(sig, 0.85) % near_dup_key(minhash('some text', 4), 0.9);
RESET enable_seqscan;
SET client_min_messages = warning;

-- Bit strings.
CREATE TABLE hashes (id int, b bit(64), EXCLUDE USING neardup (near_dup_key(b, 3) WITH %));
INSERT INTO hashes SELECT i, ('x' || md5(i::text))::bit(64) FROM generate_series(1, 500) i;
INSERT INTO hashes SELECT 0, b # 7::bit(64) FROM hashes WHERE id = 9;
INSERT INTO hashes SELECT 0, b # 15::bit(64) FROM hashes WHERE id = 9;
SELECT count(*) FROM hashes;

-- Partitioned tables: on each partition; in PostgreSQL 17 and later, with the partition key, on the parent.
CREATE TABLE parts (tenant int, sig minhash_signature) PARTITION BY LIST (tenant);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
ALTER TABLE parts_1 ADD EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %);
INSERT INTO parts VALUES (1, minhash(document(1)));
INSERT INTO parts VALUES (1, minhash(document(1)));
INSERT INTO parts VALUES (1, minhash(document(1))) ON CONFLICT DO NOTHING;

DELETE FROM copies WHERE id > 10;
-- MERGE, a temporary and an unlogged table.
CREATE TEMPORARY TABLE temporary (LIKE copies, EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %));
CREATE UNLOGGED TABLE unlogged (LIKE copies, EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %));
INSERT INTO temporary TABLE copies;
INSERT INTO unlogged SELECT id, sig FROM copies WHERE id < 5;
MERGE INTO unlogged u USING copies c ON c.id = u.id WHEN MATCHED THEN UPDATE SET sig = c.sig WHEN NOT MATCHED THEN INSERT VALUES (c.id, c.sig);
MERGE INTO unlogged u USING copies c ON c.id = u.id - 100 WHEN NOT MATCHED THEN INSERT VALUES (c.id, c.sig);
SELECT count(*) FROM unlogged;

-- The constraint's index supports lookups at or above its threshold, however they are written.
CREATE TABLE kept (id int, tenant int, sig minhash_signature, hash bit(64),
    EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %),
    EXCLUDE USING neardup (tenant WITH =, near_dup_key(hash, 3) WITH %));
INSERT INTO kept SELECT i, i % 2, minhash(document(i)), ('x' || md5(i::text))::bit(64) FROM generate_series(1, 500) i;
ANALYZE kept;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        RETURN NEXT regexp_replace(regexp_replace(line, '<word:.*?>', '<...>', 'g'), 'minhash:[^'']*', '...', 'g');
    END LOOP;
END $$;
SELECT plan($$SELECT id FROM kept WHERE near_dup(sig, minhash(document(7)), 0.9)$$);
SELECT plan($$SELECT id FROM kept WHERE minhash_sim(sig, minhash(document(7))) > 0.85$$);
SELECT plan($$SELECT id FROM kept WHERE sig <=> minhash(document(7)) < 0.1$$);
SELECT plan($$SELECT id FROM kept WHERE hamming_within(hash, B'0', 2) AND tenant = 1$$);
SELECT plan($$SELECT a.id, b.id FROM kept a JOIN kept b ON near_dup(a.sig, b.sig, 0.9) WHERE a.id < 3$$);
-- It does not support lower thresholds, nor thresholds that are not known yet.
SELECT plan($$SELECT id FROM kept WHERE near_dup(sig, minhash(document(7)), 0.8)$$);
SELECT plan($$SELECT id FROM kept WHERE near_dup(sig, minhash(document(7)), random())$$);
SELECT plan($$SELECT id FROM kept WHERE hamming_within(hash, B'0', 4) AND tenant = 1$$);
SELECT count(*) FROM kept a JOIN kept b ON near_dup(a.sig, b.sig, 0.9);
SELECT id FROM kept WHERE near_dup(sig, minhash(document(7) || ' edited'), 0.85);
SELECT id FROM kept WHERE minhash_sim(sig, minhash(document(7))) = 1;
SELECT id FROM kept WHERE hamming_within(hash, ('x' || md5('7'))::bit(64) # 1::bit(64), 1) AND tenant = 1;
PREPARE kept_like (text) AS SELECT id FROM kept WHERE near_dup(sig, minhash($1), 0.9);
SET plan_cache_mode = force_generic_plan;
SELECT plan($$EXECUTE kept_like ('some text')$$);
RESET plan_cache_mode;
-- The label does not matter.
SELECT plan($$SELECT id FROM labeled WHERE near_dup(sig, minhash(document(7)), 0.9)$$);
SELECT id FROM labeled WHERE near_dup(sig, minhash(document(7)), 0.9);
SELECT id FROM labeled WHERE near_dup_key(sig, 0.85, id::text) % near_dup_key(minhash(document(7)), 0.9, 'wanted');
RESET enable_seqscan;
RESET enable_bitmapscan;

-- A key of another kind finds nothing, and the planner knows it.
CREATE TABLE kinds (sig minhash_signature, EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %));
INSERT INTO kinds SELECT minhash('text ' || i) FROM generate_series(1, 9) i;
ANALYZE kinds;
SET enable_seqscan = off;
SELECT count(*) FROM kinds WHERE near_dup_key(sig, 0.85) % near_dup_key(B'01', 1);
RESET enable_seqscan;
