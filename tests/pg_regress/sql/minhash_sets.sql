-- Signatures of sets: order, repetition, NULLs and dimension do not count.
SELECT minhash('{b,a,NULL,a}'::text[]) = minhash('{{a},{b}}'::text[]) AS texts,
       minhash('{2,1,NULL,1}'::bigint[]) = minhash('{{1},{2}}'::bigint[]) AS numbers,
       (minhash_describe(minhash('{a}'::text[], 16, 7))).parameters - 'seed_id' AS described;
SELECT minhash_sim(minhash('{}'::text[]), minhash('{}'::text[])) AS empty,
       (minhash_describe(minhash('{NULL}'::bigint[]))).parameters ->> 'empty' AS only_null;
-- True Jaccard 1/2.
SELECT abs(minhash_sim(minhash(a, 1024), minhash(b, 1024)) - jaccard(a, b)) < 0.05 AS near
FROM (SELECT array_agg(i) FILTER (WHERE i <= 3000) AS a, array_agg(i) FILTER (WHERE i > 1000) AS b
      FROM generate_series(1, 4000::bigint) i) v;
-- A document's signature is not comparable with a set's.
SELECT minhash_sim(minhash('a'), minhash('{a}'::text[]));

-- Lexemes: stemming and stop words of the configuration count.
SELECT minhash_sim(minhash(to_tsvector('english', 'The cats were sitting on the mats')),
                   minhash(to_tsvector('english', 'a cat sits, on a mat'))) AS english,
       minhash_sim(minhash(to_tsvector('simple', 'The cats were sitting on the mats')),
                   minhash(to_tsvector('simple', 'a cat sits, on a mat'))) AS simple;
-- Position order; several at one position by name; gaps ignored.
SELECT minhash('b:1 a:2 c:3'::tsvector, 3) = minhash('b:5 a:70 c:71A'::tsvector, 3) AS gaps,
       minhash('b:1 a:1 c:3'::tsvector, 3) = minhash('a:1 b:2 c:3'::tsvector, 3) AS same_position,
       minhash('b:1 a:2 c:3'::tsvector, 3) = minhash('a:1 b:2 c:3'::tsvector, 3) AS other_order,
       minhash('a:1,3 b:2'::tsvector, 2) = minhash('a:1 b:2'::tsvector, 2) AS repeated,
       minhash('a b'::tsvector, 1) = minhash('b:1 a:2'::tsvector, 1) AS stripped,
       (minhash_describe(minhash(''::tsvector))).parameters ->> 'empty' AS empty;
-- A wrong signature is rejected.
SELECT minhash('a b'::tsvector, 2);
SELECT minhash('a:1 b:16383'::tsvector, 2);
SELECT minhash(to_tsvector('simple', repeat('a b ', 300)), 2);
SELECT minhash(to_tsvector('simple', repeat('a b ', 300)), 1) = minhash('a:1 b:2'::tsvector, 1) AS k1;
SELECT minhash('a:1'::tsvector, 257);
\echo :LAST_ERROR_SQLSTATE

-- Boilerplate: found in a collection, and left out.
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages SELECT i, format('Home | News | Contact us. story %s of the %s day: %s. All rights reserved by the example press',
       i, i * 7, (SELECT string_agg('w' || (i * 131 + j * j) % 1009, ' ') FROM generate_series(1, 20) j))
FROM generate_series(1, 50) i;
INSERT INTO pages VALUES (0, NULL);
SELECT (SELECT count(*) FROM common_shingles('SELECT body FROM pages', 25)) AS common,
       ARRAY(SELECT hash FROM common_shingles('SELECT body FROM pages', 50)) <@ (shingle_hashes('home news contact us story') || shingle_hashes('all rights reserved by the example press')) AS menu,
       (SELECT count(*) FROM common_shingles('SELECT body::varchar FROM pages', 51)) AS in_more,
       (SELECT count(*) FROM common_shingles('SELECT body FROM pages WHERE false', 1)) AS none;
WITH b AS MATERIALIZED (SELECT array_agg(hash) AS shingles FROM common_shingles('SELECT body FROM pages', 25))
SELECT round(avg(minhash_sim(minhash(p.body), minhash(q.body)))::numeric, 1) AS with_boilerplate,
       round(avg(minhash_sim(minhash(p.body, shingles), minhash(q.body, shingles)))::numeric, 1) AS without
FROM b, pages p JOIN pages q ON p.id = q.id - 1 WHERE p.id > 0;
SELECT minhash('some text here', '{}'::bigint[]) = minhash('some text here') AS nothing_left_out,
       (minhash_describe(minhash('some text here', shingle_hashes('some text here')))).parameters ->> 'empty' AS all_left_out,
       minhash('a b c d e', shingle_hashes('b c d')) <=> minhash('a b c d e') < 1 AS some_left_out;
-- The same list for all rows, and another for each.
SELECT count(DISTINCT minhash(body, '{1,2}'::bigint[])) AS constant,
       count(DISTINCT minhash(body, shingle_hashes(body))) AS own
FROM pages WHERE id > 0;
SELECT common_shingles('SELECT id FROM pages', 2);
SELECT common_shingles('SELECT id, body FROM pages', 2);
SELECT common_shingles('SELECT body FROM pages', 0);
\echo :LAST_ERROR_SQLSTATE
DROP TABLE pages;
-- In PL/pgSQL, where a variable appears to stay the same.
CREATE FUNCTION excluding() RETURNS TABLE (excluded text, is_right boolean) LANGUAGE plpgsql AS $$
DECLARE
    hashes bigint[];
BEGIN
    FOREACH excluded IN ARRAY ARRAY['one two', 'three four', '', 'six', 'one two'] LOOP
        hashes := shingle_hashes(excluded, 1);
        is_right := minhash('one two three four five', hashes, 1)
            = minhash(replace('one two three four five', excluded, ''), 1);
        RETURN NEXT;
    END LOOP;
END $$;
SELECT * FROM excluding();
SELECT minhash('one two three', ARRAY[NULL, hash, NULL], 1) = minhash('two three', 1) AS without_nulls
FROM unnest(shingle_hashes('one one', 1)) hash;
