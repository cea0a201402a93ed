-- near_dup_advise: a table smaller than the sample, so that the figures do not depend on chance.
CREATE TABLE docs (id int, "The Body" text, sig minhash_signature);
INSERT INTO docs
SELECT i, body, minhash(body) FROM (
    SELECT i, string_agg('w' || CASE WHEN (w * 7919 + i * 104729) % 100 < i % 20
                                     THEN i * 1000 + w ELSE w + i / 20 * 1000 END, ' ' ORDER BY w) AS body
    FROM generate_series(1, 400) i, generate_series(1, 60) w GROUP BY i) d;
INSERT INTO docs VALUES (401, '', minhash('')), (402, NULL, NULL);
\x on
SELECT rows, sampled, bands, intact, round(bytes_per_row) AS bytes_per_row,
       round(candidates::numeric, 2) AS candidates, crowded, relaxed_threshold, true_pairs, recall, recall_relaxed
FROM near_dup_advise('docs', 'sig');
SELECT bands, intact, round(candidates::numeric, 2) AS candidates, relaxed_threshold, true_pairs,
       round(recall::numeric, 3) AS recall, recall_low = recall AND recall_high = recall AS certain,
       round(recall_relaxed::numeric, 3) AS recall_relaxed
FROM near_dup_advise('docs', 'sig', 0.7, document_column => 'The Body');
\x off

-- The pairs that it counts.
SELECT count(*), round(avg((minhash_sim(a.sig, b.sig) >= 0.7)::int), 3) AS recall FROM docs a JOIN docs b ON a.id < b.id
WHERE minhash_sim(a.sig, b.sig) > 0.4 AND resemblance(a."The Body", b."The Body") >= 0.7;

-- Bad arguments.
SELECT * FROM near_dup_advise('docs', 'sig', 0);
SELECT * FROM near_dup_advise('docs', 'sig', sample_rows => 1);
SELECT * FROM near_dup_advise('docs', 'id');
SELECT * FROM near_dup_advise('docs', NULL);
SELECT * FROM near_dup_advise(0, 'sig');
DELETE FROM docs WHERE id <= 400;
SELECT * FROM near_dup_advise('docs', 'sig');

-- The bytes of an index.
CREATE TABLE many AS
SELECT minhash(concat_ws(' ', md5(i::text), md5(i || 'a'), md5(i || 'b'), md5(i || 'c'), md5(i || 'd'))) AS sig
FROM generate_series(1, 20000) i;
CREATE INDEX many_sig ON many USING neardup (sig);
SELECT bytes_per_row / (pg_relation_size('many_sig') / 20000.0) BETWEEN 0.9 AND 1.1 AS is_forecast
FROM near_dup_advise('many', 'sig');

-- Pairs of the sample are searched for: comparing all 200 million would take a minute.
CREATE TABLE sampled AS
SELECT body, minhash(body) AS sig
FROM (SELECT concat_ws(' ', md5(i::text), md5(i || 'a'), md5(i || 'b'), md5(i || 'c'), md5(i || 'd'), md5((i % 2)::text)) AS body
      FROM generate_series(0, 19999) j, LATERAL (SELECT j / 2) AS halved(i)) docs;
SET statement_timeout = '15s';
SELECT true_pairs, recall FROM near_dup_advise('sampled', 'sig', sample_rows => 20000, document_column => 'body');
