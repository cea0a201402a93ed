-- Clusters of similar rows.
CREATE TABLE docs (id int PRIMARY KEY, body text, sig minhash_signature GENERATED ALWAYS AS (minhash(body, slots => 256)) STORED);
-- A chain: each document is near the next one, but the ends are not near each other.
INSERT INTO docs (id, body)
SELECT n, string_agg('w' || (n * 4 + word), ' ' ORDER BY word)
FROM generate_series(1, 8) n, generate_series(1, 40) word GROUP BY n;
INSERT INTO docs (id, body) SELECT 20 + n, 'something else altogether in eight words or so' FROM generate_series(1, 3) n;
INSERT INTO docs (id, body) VALUES (30, NULL), (31, ''), (32, 'alone among many documents with words of its own');

SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs ORDER BY id', 0.6) ORDER BY key;
SELECT key, cluster, similarity >= 0.6 AS near FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs ORDER BY id', 0.6, 'connected') ORDER BY key;

-- Star clusters according to their definition, row by row.
CREATE FUNCTION stars(t float8) RETURNS TABLE (key int, cluster int, similarity float8) LANGUAGE plpgsql AS $$
DECLARE
    canonical int[] := '{}'; doc record; best record;
BEGIN
    FOR doc IN SELECT * FROM docs ORDER BY docs.id LOOP
        SELECT d.id, minhash_sim(d.sig, doc.sig) AS s INTO best FROM docs d
        WHERE d.id = ANY (canonical) AND minhash_sim(d.sig, doc.sig) >= t ORDER BY s DESC, d.id LIMIT 1;
        IF FOUND THEN
            RETURN QUERY SELECT doc.id, best.id, best.s;
        ELSE
            canonical := canonical || doc.id;
            RETURN QUERY SELECT doc.id, doc.id, CASE WHEN doc.body > '' THEN 1::float8 END;
        END IF;
    END LOOP;
END $$;
SELECT t, (SELECT count(*) FROM (
    SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs ORDER BY id', t)
    EXCEPT ALL SELECT * FROM stars(t)) x) AS different, (SELECT count(*) FROM stars(t)) AS rows
FROM unnest(ARRAY[0.2, 0.4, 0.6, 0.8, 1]) t;

-- The order of the query determines which row is canonical.
SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs WHERE id > 20 AND id < 30 ORDER BY id DESC', 0.6);

-- Verified with the documents.
SELECT c.key, c.cluster, c.similarity = resemblance(a.body, b.body) AS exact
FROM near_dup_clusters(NULL::int, 'SELECT id, sig, body FROM docs ORDER BY id', 0.6) c
JOIN docs a ON a.id = c.key JOIN docs b ON b.id = c.cluster ORDER BY key;

-- Components of any edges; a NULL end names a key without an edge.
SELECT * FROM connected_components(NULL::text, $$VALUES ('d', 'c'), ('a', 'b'), ('b', 'c'), ('x', 'x'), ('y', NULL), (NULL, NULL)$$);
SELECT count(*) FROM (
    SELECT key, component FROM connected_components(NULL::int, 'SELECT a, b FROM near_dup_pairs(NULL::int, ''SELECT id, sig FROM docs'', 0.6)')
    EXCEPT SELECT key, cluster FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs ORDER BY id', 0.6, 'connected')) x;
SELECT * FROM connected_components(NULL::int, 'SELECT 1, 2 WHERE false');

-- Rejected.
SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs', 0.6, 'best');
SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs', 2);
SELECT * FROM connected_components(NULL::int, 'SELECT 1');
SELECT * FROM connected_components(NULL::int, 'SELECT 1, ''a''::text');
SELECT * FROM connected_components(NULL::point, 'SELECT point(1,1), point(1,1)');

-- Star clusters of stored pairs equal those of a search, at every threshold at or above the pairs' threshold.
CREATE TABLE stored AS SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, sig FROM docs', 0.1);
SELECT t, (SELECT count(*) FROM (
    SELECT * FROM near_dup_clusters(NULL::int, $$SELECT id, sig FROM docs WHERE body > '' ORDER BY id DESC$$, t)
    EXCEPT SELECT * FROM star_clusters(NULL::int, $$SELECT id FROM docs WHERE body > '' ORDER BY id DESC$$,
        format('SELECT b, a, similarity FROM stored WHERE similarity >= %s', t))) x) AS differing
FROM unnest('{0.1, 0.4, 0.6, 0.7, 0.9, 1}'::float8[]) t;
SELECT * FROM star_clusters(NULL::text, $$VALUES ('c'), ('b'), (NULL), ('a'), ('lone')$$,
    $$VALUES ('a', 'b', 0.9::float8), ('a', 'c', 0.8), ('b', 'c', 0.7), ('a', 'a', 1), ('a', 'none', 1), (NULL, 'a', 1), ('a', 'lone', NULL)$$);
SELECT * FROM star_clusters(NULL::text, 'SELECT NULL::text WHERE false', $$VALUES ('a', 'b', 0.9::float8)$$);
SELECT * FROM star_clusters(NULL::text, $$VALUES ('a'), ('a')$$, $$VALUES ('a', 'b', 0.9::float8)$$);
SELECT * FROM star_clusters(NULL::text, $$VALUES ('a', 1)$$, $$VALUES ('a', 'b', 0.9::float8)$$);
SELECT * FROM star_clusters(NULL::text, $$VALUES ('a')$$, $$VALUES ('a', 'b')$$);
SELECT * FROM star_clusters(NULL::text, $$VALUES ('a')$$, $$VALUES ('a', 'b', 0.9)$$);
SELECT * FROM star_clusters(NULL::int, $$VALUES ('a')$$, $$VALUES ('a', 'b', 0.9::float8)$$);
SELECT * FROM star_clusters(NULL::int, NULL, $$VALUES (1, 2, 0.9::float8)$$);
