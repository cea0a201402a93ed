-- All similar pairs of a collection.
SELECT setseed(0.5);
CREATE TABLE docs (id bigint, body text, sig minhash_signature);
-- 60 documents of 40 words in 20 families; a member differs from its family in a few words.
INSERT INTO docs (id, body)
SELECT family * 10 + member, string_agg(
    CASE WHEN member > 0 AND word % 13 = member THEN 'edit' || family || member
         ELSE 'w' || (family * 7919 + word * 31) % 5000 END, ' ' ORDER BY word)
FROM generate_series(1, 20) family, generate_series(0, 2) member, generate_series(1, 40) word
GROUP BY family, member;
UPDATE docs SET sig = minhash(body);
INSERT INTO docs VALUES (901, NULL, NULL), (902, '', minhash('')), (903, '?!', minhash('?!'));
INSERT INTO docs SELECT id + 1000, body, sig FROM docs WHERE id IN (10, 20);

CREATE VIEW brute AS
SELECT x.id AS a, y.id AS b, minhash_sim(x.sig, y.sig) AS similarity
FROM docs x JOIN docs y ON x.id < y.id;

-- Equals comparing all pairs, whatever the threshold.
SELECT t AS threshold,
       (SELECT count(*) FROM brute WHERE similarity >= t) AS brute,
       (SELECT count(*) FROM (
            SELECT least(a, b), greatest(a, b), similarity
            FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', t)
            EXCEPT ALL SELECT a, b, similarity FROM brute WHERE similarity >= t) extra) AS extra,
       (SELECT count(*) FROM (
            SELECT a, b, similarity FROM brute WHERE similarity >= t
            EXCEPT ALL SELECT least(a, b), greatest(a, b), similarity
            FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', t)) missing) AS missing
FROM unnest(ARRAY[0.05, 0.2, 0.5, 0.55, 0.8, 0.9, 1]) t;

-- The earlier row of the query comes first.
SELECT a, b FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs WHERE id IN (10, 1010) ORDER BY id DESC', 1);

-- Packed signatures, keys of other types, and keys that are NULL.
SELECT count(*) FROM near_dup_pairs(NULL::text, 'SELECT ''d'' || id, minhash_pack(sig, 8) FROM docs', 0.5);
SELECT count(*) FROM brute JOIN docs x ON x.id = a JOIN docs y ON y.id = b
WHERE minhash_sim(minhash_pack(x.sig, 8), minhash_pack(y.sig, 8)) >= 0.5;
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT NULLIF(id, 10)::int, sig FROM docs WHERE id IN (10, 1010)', 1);

-- Verified with the documents, as text or as sets: the true similarity.
CREATE VIEW exact AS
SELECT x.id AS a, y.id AS b, resemblance(x.body, y.body) AS similarity
FROM docs x JOIN docs y ON x.id < y.id;
SELECT count(*), count(*) FILTER (WHERE p.similarity = e.similarity)
FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig, body FROM docs', 0.5) p
FULL JOIN (SELECT * FROM exact WHERE similarity >= 0.5) e ON e.a = least(p.a, p.b) AND e.b = greatest(p.a, p.b);
SELECT count(*), count(*) FILTER (WHERE p.similarity = e.similarity)
FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig, shingle_hashes(body) FROM docs', 0.5) p
FULL JOIN (SELECT * FROM exact WHERE similarity >= 0.5) e ON e.a = least(p.a, p.b) AND e.b = greatest(p.a, p.b);
SELECT count(*), count(*) FILTER (WHERE p.similarity = e.similarity)
FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig, shingles(body) FROM docs', 0.5) p
FULL JOIN (SELECT * FROM exact WHERE similarity >= 0.5) e ON e.a = least(p.a, p.b) AND e.b = greatest(p.a, p.b);
-- The same signature, but not the same document.
SELECT a, b, similarity FROM near_dup_pairs(NULL::int,
    $$VALUES (1, minhash('x y z'), 'a b c d'), (2, minhash('x y z'), 'A, b c d!'), (3, minhash('x y z'), 'e f g h')$$, 0.8);
-- Without a shingle, a document is not similar even to itself.
CREATE TABLE blank AS SELECT i AS id, minhash('x y z') AS sig, repeat('?! ', i % 3) AS body, repeat('?! ', 9999) AS large FROM generate_series(1, 4) i;
SELECT document, (SELECT count(*) FROM near_dup_pairs(NULL::int, query, 0.8)) AS pairs,
       (SELECT count(*) FROM near_dup_pairs(NULL::int, query, 0.8, most => 5)) AS partners,
       (SELECT count(*) FROM near_dup_join(NULL::int, query, query, 0.8)) AS joined,
       (SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::int, query, 0.8)) AS stars,
       (SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::int, query, 0.8, 'connected')) AS components
FROM unnest(ARRAY['body', 'large', 'shingles(body)', 'shingle_hashes(body)']) document, format('SELECT id, sig, %s FROM blank', document) query;
SELECT unit, left(body, 20), similarity
FROM (VALUES ('word', '?!'), ('word', repeat('?!', 40) || 'a'), ('char', repeat(U&'\3000', 30)), ('char', '?'), ('stop', 'theory'), ('stop', 'in it')) v (unit, body),
     near_dup_clusters(NULL::int, 'SELECT 1, minhash(''in the sea'', 1, $1), $2', 0.8, params => ROW(unit, body));
DROP TABLE blank;

-- The padding of char(n) does not count, as in a cast to text.
CREATE TABLE padded (id int, c char(40));
INSERT INTO padded VALUES (1, 'abcdefghij'), (2, 'abcdefghijk'), (3, ''), (4, 'abc'), (5, 'xyz'), (6, '');
SELECT k, measure, a, b, p.similarity = CASE measure WHEN 'resemblance' THEN resemblance(x.c, y.c, k, 'char', 'none') ELSE containment(x.c, y.c, k, 'char', 'none') END AS same
FROM unnest('{3,5}'::int[]) k, unnest('{resemblance,containment}'::text[]) measure,
     near_dup_pairs(NULL::int, 'TABLE padded', 0.3, k, 'char', 'none', measure => measure) p JOIN padded x ON x.id = a JOIN padded y ON y.id = b;
SELECT count(*) FROM near_dup_join(NULL::int, 'TABLE padded', 'SELECT id, c::text FROM padded', 0.8, 5, 'char', 'none');
SELECT count(*) FROM near_dup_clusters(NULL::int, 'TABLE padded', 0.8, 'star', 5, 'char', 'none') WHERE similarity IS NULL;
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'TABLE padded', 0.8, 9, 5, 'char', 'none');
SELECT count(*), max(length(a)) FROM near_dup_sample_pairs(NULL::int, 'TABLE padded', 20, 5, 'char', 'none');
SELECT common_shingles('SELECT c FROM padded', 2, 5, 'char', 'none') LIMIT 1;
SELECT DISTINCT pg_typeof(a), octet_length(a) FROM near_dup_pairs(NULL::char(9), $$SELECT id::char(9), c FROM padded$$, 0.8, 5, 'char', 'none');
DROP TABLE padded;

-- Documents without a signature are signed and verified, as if the query had signed them.
CREATE FUNCTION signed(arguments text) RETURNS TABLE (rows bigint, matching bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT count(*), count(*) FILTER (WHERE (x.a, x.b, x.similarity) = (y.a, y.b, y.similarity))
         FROM near_dup_pairs(NULL::bigint, ''SELECT id, body FROM docs'', 0.4, %s) WITH ORDINALITY x
         FULL JOIN near_dup_pairs(NULL::bigint, %L, 0.4) WITH ORDINALITY y USING (ordinality)',
        arguments, format('SELECT id, minhash(body, %s), body FROM docs', arguments));
END $$;
SELECT arguments, s.* FROM unnest(ARRAY['k => 3', 'k => 2, slots => 96, seed => 7', $$unit => 'char', k => 20, fold => 'marks'$$,
    $$k => 5, unit => 'stop', fold => 'none'$$]) arguments, signed(arguments) s;
SELECT key, cluster FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs WHERE id > 200 ORDER BY id', 0.5) LIMIT 5;
SELECT a, b FROM near_dup_join(NULL::int, $$VALUES (1, 'one two three four')$$, $$VALUES (2, minhash('ONE two three four!'), 'ONE two three four!')$$, 1);
SELECT * FROM near_dup_join(NULL::int, $$VALUES (1, 'one two three four')$$, $$VALUES (2, minhash('one two three four', 2), 'one two three four')$$, 1);

-- A low threshold uses more slots automatically.
SELECT a, b FROM near_dup_join(NULL::int, $$VALUES (1, 'one two three four five six')$$, $$VALUES (2, 'one two three 4 5 6')$$, 0.1);

-- A new batch, compared with a base.
SELECT count(*), min(a % 2), max(b % 2)
FROM near_dup_join(NULL::bigint, 'SELECT id, sig FROM docs WHERE id % 2 = 1', 'SELECT id, sig FROM docs WHERE id % 2 = 0', 0.5);
SELECT count(*) FROM docs x JOIN docs y ON x.id % 2 = 1 AND y.id % 2 = 0 AND minhash_sim(x.sig, y.sig) >= 0.5;
SELECT count(*) FROM near_dup_join(NULL::bigint, 'SELECT id, sig FROM docs', 'SELECT id, sig FROM docs', 1);
SELECT count(*) FROM near_dup_join(NULL::bigint, 'SELECT id, sig, body FROM docs', 'SELECT id, sig, body FROM docs', 1);

-- Bit strings of mixed lengths.
CREATE TABLE bits (id int, b varbit);
INSERT INTO bits SELECT n, (CASE WHEN n % 4 = 0 THEN B'1010' ELSE B'' END) || (n / 40 * 7919)::bit(32) # (1 << (n % 32))::bit(32)
FROM generate_series(1, 200) n WHERE n % 4 > 0;
INSERT INTO bits SELECT n, n::bit(8) FROM generate_series(201, 240) n;
SELECT d AS distance,
       (SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits', d)) AS found,
       (SELECT count(*) FROM bits x JOIN bits y ON x.id < y.id AND length(x.b) = length(y.b)
            AND length(replace((x.b # y.b)::text, '0', '')) <= d) AS brute
FROM unnest(ARRAY[0, 1, 2, 3, 8, 12, 40]) d;
SELECT min(similarity), max(similarity) FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits', 3);
-- Their clusters equal those of all pairs; a row without a string is alone.
SELECT d AS distance,
       (SELECT count(*) FROM (
            SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, b FROM bits ORDER BY id', d)
            EXCEPT SELECT * FROM star_clusters(NULL::int, 'SELECT id FROM bits ORDER BY id',
                format('SELECT a, b, similarity FROM near_dup_pairs(NULL::int, ''SELECT id, b FROM bits'', %s)', d))) x) AS other_stars,
       (SELECT count(*) FROM (
            SELECT key, cluster FROM near_dup_clusters(NULL::int, 'SELECT id, b FROM bits ORDER BY id', d, 'connected')
            EXCEPT SELECT * FROM connected_components(NULL::int, format(
                'SELECT a, b FROM near_dup_pairs(NULL::int, ''SELECT id, b FROM bits'', %s) UNION ALL SELECT id, id FROM bits', d))) x) AS other_components,
       (SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::int, 'SELECT id, b FROM bits ORDER BY id', d)) AS clusters
FROM unnest(ARRAY[0, 1, 3, 12]) d;
SELECT * FROM near_dup_clusters(NULL::int, $$VALUES (1, B'0110'), (2, NULL), (3, B'0111'), (4, B'1000'), (5, B'0111')$$, 1) ORDER BY key;

-- Sets, signed on the fly, with their exact similarity; an empty set is similar to nothing.
CREATE TABLE sets (id int, s bigint[]);
INSERT INTO sets SELECT n, ARRAY(SELECT e * (1 + n / 10) + n % 10 FROM generate_series(1, 30) e) FROM generate_series(0, 199) n;
INSERT INTO sets VALUES (200, '{}'), (201, '{}'), (202, NULL);
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, s FROM sets', 0.5);
SELECT count(*) FROM sets x JOIN sets y ON x.id < y.id AND jaccard(x.s, y.s) >= 0.5;
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, s FROM sets', 0.5) p
JOIN sets x ON x.id = p.a JOIN sets y ON y.id = p.b AND jaccard(x.s, y.s) = p.similarity;
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, s::text[] FROM sets', 0.5);
SELECT count(*), count(DISTINCT cluster), count(similarity) FROM near_dup_clusters(NULL::int, 'SELECT id, s FROM sets', 0.5);

-- Rejected.
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', 0);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', NULL);
SELECT * FROM near_dup_pairs(NULL::bigint, NULL, 0.5);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, sig FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, id FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body, body FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.5, 0);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.5, unit => 'line');
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.5, fold => NULL);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.5, slots => 1025);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.01);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.1, slots => 128);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig, id FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::int, $$VALUES (1, minhash('a b c')), (2, minhash('a b c', 2))$$, 0.5);
SELECT * FROM near_dup_pairs(NULL::int, $$VALUES (1, minhash(ARRAY['a']), 'a')$$, 0.5);
SELECT * FROM near_dup_join(NULL::bigint, 'SELECT id, sig FROM docs', 'SELECT id, sig, body FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits', -1);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits', 1.5);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits', NULL);

-- Nothing to find.
SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs WHERE false', 0.5);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, b FROM bits WHERE false', 1);

-- The planner's estimate of a job is reported before it starts.
SET neardup.progress = on;
SELECT count(*) FROM near_dup_pairs(NULL::int, $$VALUES (1, 'one two three'), (2, 'four five six')$$, 0.5);
RESET neardup.progress;

-- Exceptions: in either order, of identical texts, with keys that no row has, and invalid ones.
CREATE TABLE texts (id int, body text);
INSERT INTO texts SELECT i, 'one two three four five' FROM generate_series(1, 4) i;
SELECT a, b FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM texts ORDER BY id', 0.8, exceptions => 'VALUES (2, 1), (3, 9), (NULL, 4)') ORDER BY a, b;
SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, body FROM texts ORDER BY id', 0.8, exceptions => 'VALUES (2, 1)');
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'SELECT id, body FROM texts ORDER BY id', 0.8, exceptions => 'VALUES (2, 1), (1, 4)');
SELECT near_dup_pairs(NULL::int, 'SELECT id, body FROM texts', 0.8, exceptions => 'SELECT 1');
SELECT near_dup_clusters(NULL::int, 'SELECT id, body FROM texts', 0.8, exceptions => 'SELECT 1, 2::bigint');
SELECT near_dup_distinct(NULL::int, 'SELECT id, body FROM texts', 0.8, exceptions => 'SELECT nothing');
SELECT near_dup_pairs(NULL::point, 'SELECT point(id, 0), body FROM texts', 0.8, exceptions => 'SELECT point(1, 0), point(2, 0)');
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM texts', 0.8, exceptions => 'VALUES ($1, $2)', params => ROW(1, 2));

-- A limited number of partners of each row.
SELECT a, b FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM texts ORDER BY id', 0.8, most => 1) ORDER BY a, b;
SELECT near_dup_pairs(NULL::int, 'SELECT id, body FROM texts', 0.8, most => 0);
SELECT near_dup_pairs(NULL::int, 'SELECT id, body FROM texts', 0.8, most => 2, measure => 'containment');
DROP TABLE texts;
