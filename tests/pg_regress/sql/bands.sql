-- B-tree lookup: the pigeonhole over bands that use every slot.
SELECT cardinality(minhash_bands(minhash('some text'), 0.8)) AS b_08,
       cardinality(minhash_bands(minhash('some text'), 0.9)) AS b_09,
       cardinality(minhash_bands(minhash('some text'), 1.0)) AS b_10,
       cardinality(minhash_bands(minhash(''), 0.8)) AS b_empty,
       minhash_bands(NULL, 0.8) IS NULL AS b_null;

-- 0.55 * 200 is 110.00000000000001 in float8: ceil would demand 111 slots, but 110 / 200 >= 0.55.
SELECT (110 / 200::float8) >= 0.55 AS reached, ceil(0.55::float8 * 200) AS ceil,
       cardinality(minhash_bands(minhash('some text', slots => 200), 0.55)) AS bands;

-- A probe is the first m(t) + 1 keys.
SELECT t, cardinality(minhash_probe(minhash('some text'), 0.8, t)) AS probes,
       minhash_probe(minhash('some text'), 0.8, t) <@ minhash_bands(minhash('some text'), 0.8) AS among
FROM (VALUES (0.8), (0.85), (0.9), (1.0)) v (t);

-- Lookup = sequential scan: of b keys, b - m(t) are shared, where m(t) is the maximum number of slots that may differ.
CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature);
INSERT INTO docs
SELECT i, minhash(string_agg('w' || CASE WHEN (w * 7919 + i * 104729) % 100 < i % 40 THEN i * 1000 + w ELSE w + i % 5 * 1000 END, ' ' ORDER BY w))
FROM generate_series(1, 200) i, generate_series(1, 60) w GROUP BY i;
INSERT INTO docs VALUES (0, minhash(''));
CREATE TABLE doc_bands AS SELECT id, unnest(minhash_bands(sig, 0.5)) AS band FROM docs;
CREATE INDEX ON doc_bands (band, id);
ANALYZE docs, doc_bands;
WITH scan AS (
    SELECT t, q.id AS q, d.id FROM (VALUES (0.5), (0.6), (0.8), (1.0)) v (t), docs q JOIN docs d ON true
    WHERE minhash_sim(q.sig, d.sig) >= t
), counted AS (
    SELECT t, q.id AS q, d.id
    FROM (VALUES (0.5), (0.6), (0.8), (1.0)) v (t), docs q,
    LATERAL (SELECT b.id FROM doc_bands b WHERE b.band = ANY (minhash_bands(q.sig, 0.5))
             GROUP BY b.id HAVING count(*) >= cardinality(minhash_bands(q.sig, 0.5)) - floor((1 - t) * 128)) c
    JOIN docs d USING (id) WHERE minhash_sim(q.sig, d.sig) >= t
), probed AS (
    SELECT t, q.id AS q, d.id
    FROM (VALUES (0.5), (0.6), (0.8), (1.0)) v (t), docs q,
    LATERAL (SELECT DISTINCT b.id FROM doc_bands b WHERE b.band = ANY (minhash_probe(q.sig, 0.5, t))) c
    JOIN docs d USING (id) WHERE minhash_sim(q.sig, d.sig) >= t
)
SELECT (SELECT count(*) > 1000 FROM scan) AS many,
       (SELECT count(*) FROM (TABLE scan EXCEPT TABLE counted) x) AS lost_by_count,
       (SELECT count(*) FROM (TABLE counted EXCEPT TABLE scan) x) AS added_by_count,
       (SELECT count(*) FROM (TABLE scan EXCEPT TABLE probed) x) AS lost_by_probe,
       (SELECT count(*) FROM (TABLE probed EXCEPT TABLE scan) x) AS added_by_probe;
-- A join of bands lists a pair once, in the first band that it shares; the empty document shares no band.
WITH joined AS (
    SELECT a.id AS a, b.id AS b FROM doc_bands x JOIN doc_bands y USING (band)
    JOIN docs a ON a.id = x.id JOIN docs b ON b.id = y.id
    WHERE x.id < y.id AND band = minhash_shared_band(a.sig, b.sig, 0.5)
), sharing AS (
    SELECT DISTINCT x.id AS a, y.id AS b FROM doc_bands x JOIN doc_bands y USING (band) WHERE x.id < y.id
)
SELECT (SELECT count(*) > 1000 FROM joined) AS many,
       (SELECT count(*) FROM (TABLE joined EXCEPT ALL TABLE sharing) x) AS added,
       (SELECT count(*) FROM (TABLE sharing EXCEPT ALL TABLE joined) x) AS lost;
SELECT count(*) AS others FROM docs a, docs b
WHERE minhash_shared_band(a.sig, b.sig, 0.5) IS DISTINCT FROM
      (SELECT x FROM unnest(minhash_bands(a.sig, 0.5)) WITH ORDINALITY AS k (x, place)
       WHERE x = ANY (minhash_bands(b.sig, 0.5)) ORDER BY place LIMIT 1);
DROP TABLE docs, doc_bands;

-- Bad arguments.
SELECT minhash_shared_band(minhash('some text'), minhash('some text', seed => 1), 0.8);
SELECT minhash_shared_band(minhash('some text'), minhash('some text'), 0);
SELECT minhash_bands(minhash('some text'), 0);
SELECT minhash_bands(minhash('some text'), 1.01);
SELECT minhash_bands(minhash('some text'), 'NaN');
SELECT minhash_probe(minhash('some text'), 0.8, 0.5);
\echo :LAST_ERROR_SQLSTATE
