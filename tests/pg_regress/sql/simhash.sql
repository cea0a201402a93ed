-- SimHash of documents, of weighted terms, of lexemes.
-- Known answers, as in the tests of the algorithm.
CREATE TEMP TABLE fox AS
SELECT 'The quick brown fox jumps over the lazy dog. The dog sleeps.' AS doc;
SELECT w, simhash(doc, weighting => w), to_hex(simhash(doc, weighting => w)::bigint)
FROM fox, unnest('{tf,log,set}'::text[]) w;
SELECT to_hex(simhash(doc, 3)::bigint) AS k3,
       length(simhash(doc, bits => 4096)) AS bits,
       simhash(doc, bits => 256)::bit(64) = simhash(doc) AS narrow_begins_wide,
       simhash(doc, seed => 1) <> simhash(doc) AS seed_counts,
       simhash(upper(doc)) = simhash(doc) AS case_folded,
       simhash(upper(doc), fold => 'none') <> simhash(doc, fold => 'none') AS case_kept
FROM fox;

-- One term: the result is its own hash, whatever its weight.
SELECT simhash('word word', weighting => w)::bigint = (shingle_hashes('word', 1))[1] AS own_hash
FROM unnest('{tf,log,set}'::text[]) w;

-- Nothing to compare: NULL, which is close to nothing.
SELECT simhash('') IS NULL, simhash(' ... ') IS NULL, simhash(NULL) IS NULL,
       simhash('{}'::text[], '{}') IS NULL, simhash('{a}'::text[], '{0}') IS NULL,
       simhash('{a,NULL}'::text[], '{NULL,1}') IS NULL,
       simhash(''::tsvector) IS NULL;

-- Documents equal their terms with their weights.
WITH terms AS (
    SELECT word, count(*)::float8 AS tf FROM fox, regexp_split_to_table(lower(doc), '\W+') word
    WHERE word <> '' GROUP BY word
)
SELECT simhash(array_agg(word), array_agg(tf)) = simhash(min(doc), weighting => 'tf') AS tf,
       simhash(array_agg(word), array_agg(1 + ln(tf))) = simhash(min(doc)) AS log,
       simhash(array_agg(word), array_agg(1)) = simhash(min(doc), weighting => 'set') AS set,
       simhash_agg(word, tf) = simhash(min(doc), weighting => 'tf') AS agg,
       simhash_agg(word, 1 + ln(tf), 256) = simhash(min(doc), bits => 256) AS agg_256,
       simhash_agg(word, tf, 128, 5) = simhash(min(doc), bits => 128, weighting => 'tf', seed => 5) AS agg_seed
FROM terms, fox;

-- Weights of a term add up; only ratios matter; signs count.
SELECT simhash('{a,b,a}'::text[], '{1,5,2}') = simhash('{b,a}'::text[], '{5,3}') AS summed,
       simhash('{a,b,c}'::text[], '{1,5,2}') = simhash('{a,b,c}'::text[], '{0.25,1.25,0.5}') AS scaled,
       simhash('{a,b}'::text[], '{1,-3}') = ~simhash('{b}'::text[], '{1}') AS negative,
       simhash('{a,b}'::text[], '{1,1}') = (simhash('{a}'::text[], '{1}') & simhash('{b}'::text[], '{1}')) AS tie_is_0;

-- Lexemes: frequency by positions, classes A to D as in ts_rank.
SELECT simhash('a:1,2 b:3'::tsvector) = simhash('{a,b}'::text[], ARRAY[1 + ln(2::float8), 1]) AS log,
       simhash('a:1,2 b:3'::tsvector, weighting => 'tf') = simhash('{a,b}'::text[], '{2,1}') AS tf,
       simhash('a:1,2 b:3'::tsvector, weighting => 'set') = simhash('{a,b}'::text[], '{1,1}') AS set,
       simhash('a:1A b:2B c:3C d:4 e:5'::tsvector, weighting => 'tf')
           = simhash('{a,b,c,d,e}'::text[], '{1,0.4,0.2,0.1,0.1}') AS classes,
       simhash('a:1A,2 b:3B c:4B'::tsvector, 128, 'tf')
           = simhash('{a,b,c}'::text[], '{1.1,0.4,0.4}', 128) AS mixed,
       simhash('a b'::tsvector) = simhash('{a,b}'::text[], '{1,1}') AS stripped;

-- The aggregate: NULLs ignored, no rows, groups, any order, parallel workers.
SELECT simhash_agg(t, w) IS NULL FROM (VALUES (NULL::text, 1::float8), ('a', NULL)) v (t, w);
SELECT simhash_agg(t, w) IS NULL FROM (VALUES ('a', 1::float8)) v (t, w) WHERE false;
SELECT g, to_hex(simhash_agg(t, w)::bigint)
FROM (VALUES (1, 'a', 1::float8), (2, 'b', 2), (1, 'c', 3)) v (g, t, w) GROUP BY g ORDER BY g;
SELECT to_hex(simhash_agg(t, w) OVER (ORDER BY t)::bigint) FROM (VALUES ('a', 1::float8), ('b', 2)) v (t, w);
CREATE TABLE terms AS SELECT 'w' || i % 1000 AS t, ln(1 + i % 77)::float8 - 2 AS w, i % 3 AS g
FROM generate_series(1, 60000) i;
ANALYZE terms;
SET max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE serial AS SELECT g, simhash_agg(t, w ORDER BY w, t) AS s, simhash_agg(t, w, 1024, 9) AS wide FROM terms GROUP BY g;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT g, simhash_agg(t, w) FROM terms GROUP BY g;
SELECT count(*) FILTER (WHERE p.s = serial.s AND p.wide = serial.wide) AS equal
FROM (SELECT g, simhash_agg(t, w) AS s, simhash_agg(t, w, 1024, 9) AS wide FROM terms GROUP BY g) p
JOIN serial USING (g);
RESET ALL;

-- Rejected.
SELECT simhash('a', bits => 100);
SELECT simhash('a', bits => 0);
SELECT simhash('a', bits => 8192);
SELECT simhash('a', weighting => 'idf');
SELECT simhash('a', k => 0);
SELECT simhash('a', unit => 'line');
SELECT simhash('{a,b}'::text[], '{1}');
SELECT simhash('{a}'::text[], '{NaN}');
SELECT simhash('{a}'::text[], '{Infinity}');
SELECT simhash('{a}'::text[], '{-Infinity}');
SELECT simhash('{a}'::text[], '{1e10}');
SELECT simhash('{a,b,c}'::text[], '{2e9,2e9,2e9}');
SELECT simhash_agg(t, 'NaN') FROM terms;
SELECT simhash_agg(t, 1e6) FROM terms;
SELECT simhash_agg(t, w, CASE WHEN g = 0 THEN 64 ELSE 128 END) FROM terms;

-- Many groups spill and still give the same answers.
SET work_mem = '64kB';
SET enable_sort = off;
SELECT count(*) FILTER (WHERE s = simhash(ARRAY['w' || i, 'x'], ARRAY[i, 1.5]))
FROM (SELECT i, simhash_agg(t, w) AS s
      FROM generate_series(1, 3000) i, LATERAL (VALUES ('w' || i, i::float8), ('x', 1.5)) v (t, w)
      GROUP BY i) groups;
RESET ALL;
