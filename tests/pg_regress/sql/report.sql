-- near_dup_report, and diff_html of several documents, as text without markup.
CREATE FUNCTION read(page text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT line FROM regexp_split_to_table(
        regexp_replace(regexp_replace(page, '<style>.*</style>', ''), '<[^>]*>', '|', 'g'), '\n') line
    WHERE line ~ '[^|]' $$;
\pset format unaligned
\pset tuples_only on
CREATE TABLE notes (id int PRIMARY KEY, body text, origin text, written date);
INSERT INTO notes VALUES
    (1, 'the harbor bridge is closed until the first of May', 'East', '2025-01-01'),
    (2, 'The Harbor Bridge is closed until the first of May!', 'West', '2025-01-03'),
    (3, 'the harbor bridge is closed until the first of June', NULL, '2025-01-03'),
    (4, 'something else', 'East', 'infinity'),
    (5, '', 'East', NULL),
    (6, NULL, 'East', NULL);
SELECT read(near_dup_report(NULL::int,
    'SELECT id, minhash(body), body, origin AS source, written AS day FROM notes ORDER BY id', 0.5, title => 'Some <notes>'));
-- Groups are those of near_dup_clusters.
SELECT count(*) FILTER (WHERE key = cluster AND n > 1), count(*) FILTER (WHERE key <> cluster)
FROM (SELECT *, count(*) OVER (PARTITION BY cluster) AS n
      FROM near_dup_clusters(NULL::int, 'SELECT id, minhash(body), body FROM notes ORDER BY id', 0.5)) c;
-- Without signatures, and of clusters that are known: the same page.
SELECT near_dup_report(NULL::int, 'SELECT id, body, origin AS source FROM notes ORDER BY id', 0.5)
    = near_dup_report(NULL::int, 'SELECT id, minhash(body), body, origin AS source FROM notes ORDER BY id', 0.5);
CREATE TABLE kept (LIKE notes);
ALTER TABLE kept ADD PRIMARY KEY (id);
INSERT INTO kept SELECT * FROM notes WHERE id < 4;
ALTER TABLE kept ADD sig minhash_signature GENERATED ALWAYS AS (minhash(body, slots => 1024)) STORED;
CREATE INDEX ON kept USING neardup (sig minhash_ops (threshold = 0.5));
SELECT near_dup_track('kept', 'sig', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, body, origin AS source, canonical,
                                          resemblance(body, (SELECT body FROM kept WHERE id = canonical)) AS similarity
                                   FROM kept_clusters JOIN kept ON id = key ORDER BY key', 0.5)
    = near_dup_report(NULL::int, 'SELECT id, body, origin AS source FROM kept ORDER BY id', 0.5);
SELECT read(near_dup_report(NULL::int, 'SELECT id, body, 1 AS canonical, NULL::float8 AS similarity FROM notes', 0.5, groups => 0));
SELECT near_dup_report(NULL::int, 'SELECT id, body, 9 AS canonical, 0.5::float8 AS similarity FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, body, 9 AS canonical FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, id, body FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, body, ''x'' AS canonical, 0.5::float8 AS similarity FROM notes', 0.5);
SELECT read(near_dup_report(NULL::text, 'SELECT NULL::text, minhash(body), body FROM notes ORDER BY id', 0.5, groups => 0));
SELECT read(near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes WHERE false', 0.5));
SELECT read(near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes WHERE id > 3', 0.5));
-- Days are named as PostgreSQL counts them, the year before 1 as 0.
SELECT day, label
FROM (VALUES (date '0044-03-15 BC'), ('2024-02-29'), ('5874897-12-31')) v (day),
     LATERAL read(near_dup_report(NULL::int, format('SELECT 1, minhash(''a''), ''a'', %L::date AS day', day), 0.5)) label
WHERE label ~ '\d-\d\d-\d\d';
SELECT read(diff_html('one two three', ARRAY['one two four', NULL, 'one two three']));
SELECT read(diff_html('one', ARRAY[]::text[]));
SELECT diff_html('one', NULL::text[]) IS NULL;
SELECT pg_typeof(diff_html('a', 'b')), left(diff_html('a', 'b'), 15);

SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body) FROM notes', 0.5);
SELECT near_dup_report(NULL::bigint, 'SELECT id, minhash(body), body FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, body, body FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), id FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body, origin FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body, id AS source FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body, now() AS day FROM notes', 0.5);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes', 0);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes', 0.5, groups => 10001);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes', 0.5, groups => -1);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(body), body FROM notes', 0.5, title => NULL);
SELECT near_dup_report(NULL::int, 'SELECT id, minhash(ARRAY[1::bigint]), body FROM notes', 0.5);
SELECT diff_html('a', ARRAY['b'], 0);
