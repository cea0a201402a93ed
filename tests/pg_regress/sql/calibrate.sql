-- near_dup_calibrate and near_dup_sample_pairs
\pset format unaligned
\pset null NULL

-- A hand-worked example: with k = 1 similarities are 1, 3/5, 1/3, 1/7 and 0.
CREATE TABLE labels (a text, b text, same boolean);
INSERT INTO labels VALUES
    ('a b c d', 'D c b a', true),
    ('a b c d', 'a b c x', true),
    ('a b c d', 'a b x y', true),
    ('a b c d', 'a x y z', false),
    ('a b c d', 'v x y z', false),
    ('a b c d', NULL, true);
SELECT measure, unit, k, fold, weighting, threshold, distance, precision, recall, f1,
       precision_low < 0.6 AS wide, precision_high, f1_low < 0.8 AS wide, f1_high
FROM near_dup_calibrate('TABLE labels', k => '{1}', unit => '{word}', fold => '{case}', weighting => '{}');
-- Two-word shingles tell the first two pairs apart by order.
SELECT k, threshold, precision, recall, f1
FROM near_dup_calibrate('TABLE labels', k => '{2,3}', unit => '{word}', fold => '{case}', weighting => '{}');
-- The default grid, best first.
SET client_min_messages = error;
SELECT count(*), count(DISTINCT (measure, unit, k, fold, weighting)), bool_and(in_order)
FROM (SELECT *, f1 <= lag(f1, 1, 2.0) OVER () AS in_order FROM near_dup_calibrate('TABLE labels')) c;
-- The same seed, the same intervals.
SELECT count(DISTINCT (f1_low, precision_low, recall_low))
FROM (SELECT * FROM near_dup_calibrate('TABLE labels', '{1}', '{word}', '{case}', '{}')
      UNION ALL SELECT * FROM near_dup_calibrate('TABLE labels', '{1}', '{word}', '{case}', '{}', seed => 0)) c;
RESET client_min_messages;

-- The statements run, whatever the names.
CREATE TABLE "Some Docs" (id int PRIMARY KEY, "The Text" text);
INSERT INTO "Some Docs" VALUES (1, 'a b c d'), (2, 'a b c x'), (3, 'v x y z');
SET client_min_messages = error;
SELECT unnest(statements) FROM near_dup_calibrate('TABLE labels', '{1}', '{word}', '{case}', '{}',
    relation => '"Some Docs"', document_column => 'The Text') \gexec
SELECT o.id FROM "Some Docs" d JOIN "Some Docs" o
    ON near_dup(shingle_hashes(o."The Text", 1), shingle_hashes(d."The Text", 1), 0.3) WHERE d.id = 1 ORDER BY 1;
-- From the lowest threshold on that an index on documents serves, that one.
SELECT unnest(statements) FROM near_dup_calibrate($$SELECT a, b, same AND b <> 'a b x y' FROM labels$$, '{1}', '{word}', '{case}', '{}',
    relation => '"Some Docs"', document_column => 'The Text') \gexec
SELECT o.id FROM "Some Docs" d JOIN "Some Docs" o
    ON near_dup(o."The Text", d."The Text", 0.5, k => 1) WHERE d.id = 1 ORDER BY 1;
SELECT unnest(statements) FROM (SELECT * FROM near_dup_calibrate('TABLE labels', '{1}', '{word}', '{case}', '{log}',
    '"Some Docs"', 'The Text') WHERE measure = 'simhash') c \gexec
-- Columns have names that the table does not have.
\d "Some Docs"
SELECT statements FROM near_dup_calibrate('TABLE labels', '{2}', '{char}', '{none}', '{}');
RESET client_min_messages;

-- Rejected arguments.
SELECT near_dup_calibrate('SELECT a, b, same FROM labels WHERE same');
SELECT near_dup_calibrate('SELECT a, b, same FROM labels WHERE NOT same');
SELECT near_dup_calibrate('SELECT a, b, same FROM labels WHERE a IS NULL');
SELECT near_dup_calibrate('SELECT a, b FROM labels');
SELECT near_dup_calibrate('SELECT a, b, 1 FROM labels');
SELECT near_dup_calibrate('SELECT a, 1, same FROM labels');
SELECT near_dup_calibrate('TABLE labels', k => '{0}');
SELECT near_dup_calibrate('TABLE labels', k => '{}');
SELECT near_dup_calibrate('TABLE labels', unit => '{word,sentence}');
SELECT near_dup_calibrate('TABLE labels', fold => '{upper}');
SELECT near_dup_calibrate('TABLE labels', weighting => '{idf}');
SELECT near_dup_calibrate('TABLE labels', k => (SELECT array_agg(i) FROM generate_series(1, 256) i));
SELECT near_dup_calibrate('TABLE labels', relation => 1::oid::regclass);
SELECT near_dup_calibrate(NULL);

-- Pairs worth a label.
CREATE TABLE docs (id int, part int, body text, PRIMARY KEY (part, id));
INSERT INTO docs
SELECT d * 10 + c, d % 2, (SELECT string_agg(CASE WHEN w % 40 < c * 4 THEN 'n' || d || '-' || c || '-' || w ELSE 'w' || d || '-' || w END, ' ')
                           FROM generate_series(1, 80) w)
FROM generate_series(1, 40) d, generate_series(0, 9) c;
INSERT INTO docs VALUES (1, 0, NULL), (2, 0, '');
\set sample 'near_dup_sample_pairs(NULL::int, ''SELECT id, body FROM docs ORDER BY id'', 60'
SELECT floor(similarity * 10) AS tenth, count(*) FROM :sample) GROUP BY 1 ORDER BY 1;
SELECT count(*), bool_and(similarity = resemblance(s.a, s.b)), bool_and(x.body = s.a AND y.body = s.b), bool_and(a_key <> b_key)
FROM :sample) s JOIN docs x ON x.id = a_key JOIN docs y ON y.id = b_key;
-- The most similar first, by the documents themselves.
SELECT bool_and(similarity <= before) FROM (SELECT similarity, lag(similarity, 1, 1.0) OVER () AS before FROM :sample)) s;
SELECT count(*) FROM (SELECT * FROM :sample) EXCEPT SELECT * FROM :sample)) s;
SELECT count(*) > 0 AS another FROM (SELECT * FROM :sample) EXCEPT SELECT * FROM :sample, seed => 1)) s;
SELECT count(*) < 60 AS fewer, count(DISTINCT key) <= 10 AS of_ten
FROM :sample, sample_rows => 10) s, LATERAL (VALUES (a_key), (b_key)) k (key);
-- The weights of a stratum add up to the pairs that are in it, here by the documents themselves.
CREATE TABLE pairs AS
SELECT x.id AS a_key, y.id AS b_key, resemblance(x.body, y.body) AS similarity, x.body AS a, y.body AS b,
       abs(hashint4(1000 * x.id + y.id) % 100) < 130 * resemblance(x.body, y.body) AS same
FROM docs x JOIN docs y ON x.id < y.id WHERE x.body <> '' AND y.body <> '';
SELECT bool_and(drawn.pairs BETWEEN 0.7 * there.pairs AND 1.4 * there.pairs) AS alike, sum(drawn.pairs)::int AS all
FROM (SELECT width_bucket(similarity, '{0.1,0.4,0.7}'), sum(weight) AS pairs FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 600) GROUP BY 1) drawn (stratum, pairs)
JOIN (SELECT width_bucket(similarity, '{0.1,0.4,0.7}'), count(*) FROM pairs GROUP BY 1) there (stratum, pairs) USING (stratum);
-- So the precision is that of all pairs.
SET client_min_messages = error;
CREATE TABLE drawn AS
SELECT s.a, s.b, p.same, s.weight FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 400) s
JOIN pairs p ON (p.a_key, p.b_key) = (least(s.a_key, s.b_key), greatest(s.a_key, s.b_key));
SELECT pairs, abs(precision - true_precision) < 0.06 AND abs(recall - true_recall) < 0.06 AS near_the_truth,
       true_precision BETWEEN precision_low AND precision_high AND true_recall BETWEEN recall_low AND recall_high AS covered
FROM (SELECT 'weighted' AS pairs, * FROM near_dup_calibrate('SELECT a, b, same, weight FROM drawn', '{3}', '{word}', '{case}', '{}')
      UNION ALL SELECT 'plain', * FROM near_dup_calibrate('SELECT a, b, same FROM drawn', '{3}', '{word}', '{case}', '{}')) c,
     LATERAL (SELECT (count(*) FILTER (WHERE same))::float8 / count(*) AS true_precision,
                     (count(*) FILTER (WHERE same))::float8 / (SELECT count(*) FROM pairs WHERE same) AS true_recall
              FROM pairs WHERE similarity >= c.threshold) t;
-- A weight counts as that many pairs.
SELECT threshold, precision, recall FROM near_dup_calibrate('SELECT a, b, same, 1 + 2 * (NOT same)::int::float8 FROM labels', '{1}', '{word}', '{case}', '{}')
UNION SELECT threshold, precision, recall FROM near_dup_calibrate('SELECT a, b, same FROM labels, generate_series(1, 1 + 2 * (NOT same)::int)', '{1}', '{word}', '{case}', '{}');
RESET client_min_messages;
SELECT near_dup_calibrate('SELECT a, b, same, 0::float8 FROM labels');
SELECT near_dup_calibrate('SELECT a, b, same, ''NaN''::float8 FROM labels');
SELECT near_dup_calibrate('SELECT a, b, same, 1 FROM labels');
SELECT count(*) FROM near_dup_calibrate('SELECT a, b, same, CASE WHEN a < b THEN 1 END::float8 FROM labels', '{1}', '{word}', '{case}', '{}');
-- Every row is as likely to be drawn: here 20 of 400, twenty times.
SELECT bool_and(n BETWEEN 70 AND 130) AS fair FROM (
    SELECT (key - 10) / 100 AS quarter, count(*) AS n
    FROM generate_series(1, 20) seed, LATERAL (SELECT DISTINCT key FROM
        near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 1000, sample_rows => 20, seed => seed) s,
        LATERAL (VALUES (a_key), (b_key)) k (key)) k GROUP BY 1) q;
CREATE TABLE one (id int, body varchar(10));
SELECT count(*) FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM one');
INSERT INTO one VALUES (1, 'a b c'), (2, 'a b c'), (3, 'x y z');
SELECT * FROM near_dup_sample_pairs(NULL::text, 'SELECT ''row '' || id, body FROM one', k => 1);

SELECT near_dup_sample_pairs(NULL::int, 'TABLE docs');
SELECT near_dup_sample_pairs(NULL::bigint, 'TABLE one');
SELECT near_dup_sample_pairs(NULL::int, 'SELECT 1, 2');
SELECT near_dup_sample_pairs(NULL::int, 'SELECT id, none FROM docs');
SELECT near_dup_sample_pairs(NULL::int, 'TABLE one', 0);
SELECT near_dup_sample_pairs(NULL::int, 'TABLE one', sample_rows => 1);
SELECT near_dup_sample_pairs(NULL::int, 'TABLE one', unit => 'x');
SELECT near_dup_sample_pairs(NULL::int, NULL);
