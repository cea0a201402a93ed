-- ORDER BY through an index of the access method neardup: the same order as by a sort, complete.
SET client_min_messages = warning;

-- Clusters with edits of many sizes, some of them equal; empty documents and NULLs.
CREATE TABLE docs (id int PRIMARY KEY, kind int, sig minhash_signature);
INSERT INTO docs
SELECT i, i % 3, minhash(string_agg('w' || CASE WHEN (w * 7919 + i * 104729) % 100 < i % 20 * 4
                                 THEN i * 1000 + w ELSE w + i / 40 * 1000 END, ' ' ORDER BY w))
FROM generate_series(1, 400) i, generate_series(1, 60) w GROUP BY i;
INSERT INTO docs VALUES (401, 1, minhash('')), (402, 2, minhash('!')), (403, 0, NULL), (404, 1, NULL);
INSERT INTO docs SELECT id + 1000, kind, sig FROM docs WHERE id % 50 = 20;
CREATE INDEX docs_sig ON docs USING neardup (sig);
DELETE FROM docs WHERE id % 17 = 5;
VACUUM docs;
UPDATE docs SET sig = (SELECT sig FROM docs WHERE id = 41) WHERE id % 23 = 7;
ANALYZE docs;

CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        line := regexp_replace(line, ' \(returns \$\d\)', '');
        line := replace(replace(regexp_replace(line, 'InitPlan [a-z]+_', 'InitPlan ', 'g'), '(InitPlan 1).col1', '$0'), '(InitPlan 2).col1', '$1');
        RETURN NEXT regexp_replace(line, '''minhash:.*?''', '''...''', 'g');
    END LOOP;
END $$;

SET enable_seqscan = off;
SELECT explain('SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20) LIMIT 3');
SET enable_sort = off;
SELECT explain('SELECT id FROM docs WHERE near_dup(sig, (SELECT sig FROM docs WHERE id = 20), 0.9)
    ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20) LIMIT 3');
RESET enable_sort;
SELECT id, sig <=> (SELECT sig FROM docs WHERE id = 20) AS distance FROM docs
ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20), id LIMIT 8;

-- The distances in the order in which the index returns the rows are the same as from a sort, and the rows
-- are the same as in the table.
CREATE FUNCTION differing(query int, condition text, most text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    by_index float8[];
    by_sort float8[];
    rows bigint;
    used text;
    statement text := replace(format(
        'SELECT array_agg(d), (SELECT count(DISTINCT r) FROM unnest(array_agg(id)) r) FROM (
             SELECT id, sig <=> $q AS d FROM docs WHERE %s ORDER BY sig <=> $q LIMIT %s) x', condition, most),
        '$q', quote_nullable((SELECT sig FROM docs WHERE id = query)) || '::minhash_signature');
BEGIN
    SET LOCAL enable_seqscan = off;
    SET LOCAL enable_sort = off;
    EXECUTE statement INTO by_index, rows;
    EXECUTE 'EXPLAIN (FORMAT json) ' || statement INTO used;
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_sort = on;
    EXECUTE statement INTO by_sort;
    SET LOCAL enable_indexscan = on;
    RETURN CASE WHEN by_index IS DISTINCT FROM by_sort OR coalesce(rows <> cardinality(by_index), rows <> 0) 
             OR used !~ 'Order By' AND EXISTS (SELECT FROM docs WHERE id = query AND sig IS NOT NULL)
           THEN format('query %s, %s, limit %s: %s instead of %s', query, condition, most, by_index, by_sort) END;
END $$;
SELECT count(*), array_remove(array_agg(differing(id, condition, most)), NULL)
FROM docs, unnest(ARRAY['true', 'kind = 1', 'near_dup(sig, $q, 0.9)', 'near_dup(sig, $q)', 'near_dup(sig, $q, 0.3) AND kind = 2',
                        'near_dup(sig, minhash(''w1 w2 w3 w4''))']) condition,
     unnest(ARRAY['1', '3', '30', 'ALL']) most
WHERE id % 13 = 7 OR id > 400;

-- Empty and NULL queries.
SELECT id, sig <=> minhash('') AS distance FROM docs ORDER BY sig <=> minhash('') LIMIT 2;
SELECT count(*), count(distance) FROM (SELECT sig <=> NULL AS distance FROM docs ORDER BY sig <=> NULL) x;
-- Two orders: the executor breaks ties of the first.
SELECT explain('SELECT id FROM docs ORDER BY sig <=> minhash(''w1 w2 w3 w4''), sig <=> minhash(''w5 w6 w7 w8'') LIMIT 2');
SELECT count(*), (SELECT count(DISTINCT r) FROM unnest(array_agg(id)) r),
       array_agg(row(a, b)) = (SELECT array_agg(r ORDER BY r) FROM unnest(array_agg(row(a, b))) r(a float8, b float8)) AS ordered FROM (
    SELECT id, sig <=> (SELECT sig FROM docs WHERE id = 20) AS a, sig <=> (SELECT sig FROM docs WHERE id = 21) AS b
    FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20), sig <=> (SELECT sig FROM docs WHERE id = 21)) x;
-- The statistics show a tail: rows that were read in addition to those returned.
BEGIN;
SELECT pg_stat_get_xact_tuples_returned('docs_sig'::regclass) AS before \gset
SELECT count(*) FROM (SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20) LIMIT 2) x;
SELECT pg_stat_get_xact_tuples_returned('docs_sig'::regclass) - :before AS rows_read;
SELECT count(*) FROM (SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20) LIMIT 30) x;
SELECT pg_stat_get_xact_tuples_returned('docs_sig'::regclass) - :before > 300 AS has_read_all;
COMMIT;
-- A cursor does not see changes made while it is open.
BEGIN;
DECLARE nearest CURSOR FOR SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20);
FETCH 1 FROM nearest;
MOVE 300 FROM nearest;
DELETE FROM docs WHERE id % 2 = 1;
SELECT count(*) FROM docs;
MOVE ALL FROM nearest;
ROLLBACK;
-- Rescans, under a nested loop.
SELECT q.id, n.ids FROM docs q, LATERAL (
    SELECT array_agg(id ORDER BY id) AS ids FROM (
        SELECT d.id FROM docs d ORDER BY d.sig <=> q.sig LIMIT 2) d) n
WHERE q.id % 50 = 20 AND q.id < 1000 ORDER BY 1;

-- Signatures that are not comparable with the query raise an error of the operator when such a row is
-- requested, but not if a condition excludes it.
INSERT INTO docs SELECT 2000 + i, 7, minhash('other parameters ' || i, 2) FROM generate_series(1, 10) i;
SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20) LIMIT 1;
SELECT count(*) FROM (SELECT id FROM docs WHERE kind < 7 ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20)) x;
SELECT count(*) FROM (SELECT id FROM docs ORDER BY sig <=> (SELECT sig FROM docs WHERE id = 20)) x;
RESET enable_seqscan;

-- The order of an expression, a partial index.
CREATE TABLE bodies (id int, body text);
INSERT INTO bodies SELECT i, 'the document number ' || i / 3 || CASE i % 3 WHEN 0 THEN ' and no more' ELSE ' and much more of it' END
FROM generate_series(1, 300) i;
CREATE INDEX ON bodies USING neardup (minhash(body)) WHERE id > 0;
SET enable_seqscan = off;
SELECT explain($$SELECT id FROM bodies WHERE id > 0 ORDER BY minhash(body) <=> minhash('the document number 7 and no more') LIMIT 2$$);
SELECT id, body FROM bodies WHERE id > 0 ORDER BY minhash(body) <=> minhash('the document number 7 and no more') LIMIT 1;

-- Bit strings by Hamming distance, of several lengths: strings of another length raise an error.
CREATE TABLE hashes (id int, b varbit);
INSERT INTO hashes SELECT i, ('x' || md5((i / 4)::text))::bit(64) # (i % 4)::bit(64) FROM generate_series(1, 400) i;
INSERT INTO hashes VALUES (0, NULL);
CREATE INDEX hashes_b ON hashes USING neardup (b);
SELECT explain($$SELECT id FROM hashes ORDER BY b <-> X'c4ca4238a0b92382' LIMIT 3$$);
SELECT id, b <-> X'c4ca4238a0b92382' AS distance FROM hashes ORDER BY b <-> X'c4ca4238a0b92382' LIMIT 4;
SELECT array_agg(d) = (SELECT array_agg(r ORDER BY r) FROM unnest(array_agg(d)) r) AS ordered, count(*), count(d) FROM (
    SELECT b <-> X'c4ca4238a0b92382' AS d FROM hashes ORDER BY b <-> X'c4ca4238a0b92382') x;
SELECT id FROM hashes WHERE hamming_within(b, X'c4ca4238a0b92382', 1) ORDER BY b <-> X'c4ca4238a0b92382';
INSERT INTO hashes VALUES (500, B'1');
SELECT id FROM hashes ORDER BY b <-> X'c4ca4238a0b92382' LIMIT 1;
SELECT count(*) FROM (SELECT id FROM hashes ORDER BY b <-> X'c4ca4238a0b92382' OFFSET 0) x;
RESET enable_seqscan;
