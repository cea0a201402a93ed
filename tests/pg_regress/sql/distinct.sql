-- near_dup_distinct, and parameters of every function that takes a query
CREATE TABLE docs (id int PRIMARY KEY, body text, score int);
INSERT INTO docs VALUES
    (1, 'The new pier opens in March, two months later than planned.', 90),
    (2, 'UPDATE: The new pier opens in March, two months later than planned.', 80),
    (3, 'Bake the onions slowly until they are brown, then add the stock.', 70),
    (4, 'The new pier opens in March, two months later than planned!', 60),
    (5, NULL, 50),
    (6, '', 40),
    (7, '', 30),
    (8, 'Bake the onions slowly until they are brown; then add the cold stock.', 20),
    (9, 'Nothing else is like this.', 10);
\set ranked '''SELECT id, body FROM docs ORDER BY score DESC'''
SELECT * FROM near_dup_distinct(NULL::int, :ranked, 0.5);
SELECT * FROM near_dup_distinct(NULL::int, :ranked, 0.5, 2);
SELECT * FROM near_dup_distinct(NULL::int, :ranked, 0.95, 2);
SELECT * FROM near_dup_distinct(NULL::int, :ranked, 0.5, 3, k => 1, unit => 'char', fold => 'none');
-- The query is not read further for rows that nobody has requested.
SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT i, i || '' a b'' FROM (VALUES (1), (2), (0)) v (i) WHERE 1 / i > -1', 0.5, 2);
SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT i, i || '' a b'' FROM (VALUES (1), (2), (0)) v (i) WHERE 1 / i > -1', 0.5, 3);
-- Every form, a domain, a key by reference, a NULL key.
SELECT key, repeats FROM near_dup_distinct(NULL::text, 'SELECT ''no. '' || id, minhash(body) FROM docs ORDER BY score DESC', 0.5);
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'SELECT id, simhash(body) FROM docs ORDER BY id', 20);
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'SELECT id, shingle_hashes(body) FROM docs ORDER BY id', 0.5);
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'SELECT id, shingles(body) FROM docs ORDER BY id', 0.5);
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'VALUES (NULL, B''1010''), (2, B''1011''), (NULL, B''1010''), (3, B''10101'')', 1);
CREATE DOMAIN title AS varchar(80);
SELECT key, repeat_keys FROM near_dup_distinct(NULL::int, 'SELECT id, body::title FROM docs ORDER BY id', 0.5, 1);
SELECT * FROM near_dup_distinct(NULL::int, 'SELECT 1, ''x'' WHERE false', 0.5);

-- Rejected.
SELECT near_dup_distinct(NULL::int, NULL, 0.5);
SELECT near_dup_distinct(NULL::int, :ranked, NULL);
SELECT near_dup_distinct(NULL::int, :ranked, 0.5, NULL);
SELECT near_dup_distinct(NULL::int, :ranked, 0);
SELECT near_dup_distinct(NULL::int, :ranked, 1.5);
SELECT near_dup_distinct(NULL::int, 'SELECT 1, B''1''', 0.5);
SELECT near_dup_distinct(NULL::int, :ranked, 0.5, 0);
SELECT near_dup_distinct(NULL::int, :ranked, 0.5, 10001);
SELECT near_dup_distinct(NULL::int, :ranked, 0.5, unit => 'line');
SELECT near_dup_distinct(NULL::int, 'SELECT id FROM docs', 0.5);
SELECT near_dup_distinct(NULL::int, 'SELECT id, score FROM docs', 0.5);
SELECT near_dup_distinct(NULL::bigint, :ranked, 0.5);
SELECT near_dup_distinct(NULL::int, 'DELETE FROM docs', 0.5);
SELECT near_dup_distinct(NULL::int, 'no query', 0.5);
SELECT near_dup_distinct(NULL::int, 'VALUES (1, minhash(''a b c'', 1)), (2, minhash(''a b c'', 2))', 0.5);

-- Parameters: of any type, a literal as text, NULL, a row of a table, in every function that takes a query.
SELECT key FROM near_dup_distinct(NULL::int, 'SELECT id, body FROM docs WHERE score < $1 AND body LIKE $2 ORDER BY score DESC', 0.5,
                                  params => ROW(75, 'Bake%'));
SELECT key FROM near_dup_distinct(NULL::text, 'VALUES (coalesce($1, ''was NULL'') || pg_typeof($1) || pg_typeof($2), $3)', 0.5,
                                  params => ROW(NULL, NULL::date, repeat('long ', 10000)));
SELECT key FROM docs d, near_dup_distinct(NULL::int, 'SELECT id, body FROM docs WHERE id > $1 AND body <> $2 ORDER BY id', 0.5, 1, params => d) r
WHERE d.id = 1;
SELECT near_dup_distinct(NULL::int, 'SELECT $1, $2', 0.5, params => ROW(1));
SELECT near_dup_distinct(NULL::int, 'SELECT $1, ''x''', 0.5, params => ROW('1'));
SELECT near_dup_distinct(NULL::int, 'SELECT $1, ''x''', 0.5);
CREATE TABLE changed (gone int, id int, text text);
ALTER TABLE changed DROP COLUMN gone;
INSERT INTO changed VALUES (7, 'x y z');
SELECT key FROM changed c, near_dup_distinct(NULL::int, 'SELECT $1, $2', 0.5, params => c);
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM docs WHERE id < $1 ORDER BY id', 0.5, params => ROW(4));
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM docs WHERE id < $1 ORDER BY id', 0.5, measure => 'containment', params => ROW(4));
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, simhash(body) FROM docs WHERE id < $1 ORDER BY id', 20, params => ROW(4));
SELECT count(*) FROM near_dup_join(NULL::int, 'SELECT id, body FROM docs WHERE id < $1', 'SELECT id, body FROM docs WHERE id >= $1', 0.5, params => ROW(4));
SELECT count(*) FROM near_dup_join(NULL::int, 'SELECT id, body FROM docs WHERE id < $1', 'SELECT id, body FROM docs WHERE id >= $1', 0.5,
                                   measure => 'containment', params => ROW(4));
SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, body FROM docs WHERE id < $1 ORDER BY id', 0.5, params => ROW(4));
SELECT * FROM connected_components(NULL::int, 'VALUES ($1, 2)', params => ROW(1));
SELECT * FROM star_clusters(NULL::int, 'VALUES ($1), ($2)', 'VALUES ($1, $2, 0.9::float8)', params => ROW(1, 2));
SELECT key, words FROM copied_passages(NULL::int, 'SELECT id, body FROM docs WHERE id < $1 ORDER BY id', 5, params => ROW(4));
SELECT shingle, documents FROM common_shingles('SELECT body FROM docs WHERE id < $1', 2, 8, params => ROW(4)) ORDER BY 1;
SELECT count(*) FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM docs WHERE id < $1 ORDER BY id', params => ROW(4));
