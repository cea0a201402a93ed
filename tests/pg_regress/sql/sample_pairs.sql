\pset format unaligned
\pset null NULL

-- Pairs that are worth labeling.
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
-- The most similar first, according to the documents themselves.
SELECT bool_and(similarity <= before) FROM (SELECT similarity, lag(similarity, 1, 1.0) OVER () AS before FROM :sample)) s;
SELECT count(*) FROM (SELECT * FROM :sample) EXCEPT SELECT * FROM :sample)) s;
SELECT count(*) > 0 AS another FROM (SELECT * FROM :sample) EXCEPT SELECT * FROM :sample, seed => 1)) s;
SELECT count(*) < 60 AS fewer, count(DISTINCT key) <= 10 AS of_ten
FROM :sample, sample_rows => 10) s, LATERAL (VALUES (a_key), (b_key)) k (key);
-- The weights of a stratum add up to the number of pairs in it, here according to the documents themselves.
CREATE TABLE pairs AS
SELECT x.id AS a_key, y.id AS b_key, resemblance(x.body, y.body) AS similarity, x.body AS a, y.body AS b,
       abs(hashint4(1000 * x.id + y.id) % 100) < 130 * resemblance(x.body, y.body) AS same
FROM docs x JOIN docs y ON x.id < y.id WHERE x.body <> '' AND y.body <> '';
SELECT bool_and(drawn.pairs BETWEEN 0.7 * there.pairs AND 1.4 * there.pairs) AS alike, sum(drawn.pairs)::int AS all
FROM (SELECT width_bucket(similarity, '{0.1,0.4,0.7}'), sum(weight) AS pairs FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 600) GROUP BY 1) drawn (stratum, pairs)
JOIN (SELECT width_bucket(similarity, '{0.1,0.4,0.7}'), count(*) FROM pairs GROUP BY 1) there (stratum, pairs) USING (stratum);
-- So precision and recall of the drawn pairs, weighted, equal those of all pairs.
CREATE TABLE drawn AS
SELECT p.same, p.similarity, s.weight FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 400) s
JOIN pairs p ON (p.a_key, p.b_key) = (least(s.a_key, s.b_key), greatest(s.a_key, s.b_key));
SELECT abs(d.precision - p.precision) < 0.06 AND abs(d.recall - p.recall) < 0.06 AS near_the_truth
FROM (SELECT sum(weight) FILTER (WHERE same AND similarity >= 0.3) / sum(weight) FILTER (WHERE similarity >= 0.3),
             sum(weight) FILTER (WHERE same AND similarity >= 0.3) / sum(weight) FILTER (WHERE same) FROM drawn) d (precision, recall),
     (SELECT (count(*) FILTER (WHERE same AND similarity >= 0.3))::float8 / count(*) FILTER (WHERE similarity >= 0.3),
             (count(*) FILTER (WHERE same AND similarity >= 0.3))::float8 / count(*) FILTER (WHERE same) FROM pairs) p (precision, recall);
-- Every row is equally likely to be drawn: here 20 of 400, twenty times.
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
