-- Containment of sets: the condition, its index, plans and bad input.
SET client_min_messages = warning;
SELECT near_contained('{1,2,3,4}'::bigint[], '{2,3,4,5}', 0.75) AS reached, near_contained('{1,2,3,4}'::bigint[], '{2,3,4,5}', 0.76) AS missed,
       near_contained('{1,1,1,2}'::bigint[], '{1}', 0.5) AS once, near_contained('{NULL,1}'::bigint[], '{1,NULL}', 1) AS nulls;
SELECT near_contained('{}'::bigint[], '{1}', 0.1) AS empty_part, near_contained('{NULL}'::bigint[], '{1,NULL}', 0.1) AS null_part,
       near_contained('{1}'::bigint[], '{}', 0.1) AS empty_whole, near_contained('{}'::bigint[], '{}', 1) AS both;
SELECT near_contained('{{1,2},{3,4}}'::bigint[], '[5:6]={4,3}', 0.5) AS dimensions, near_contained('{{{1}}}'::bigint[], '{1}', 1) AS three;
SELECT near_contained(NULL::bigint[], '{1}', 0.5) IS NULL AS part, near_contained('{1}'::bigint[], NULL, 0.5) IS NULL AS whole,
       near_contained('{1}'::bigint[], '{1}', NULL) IS NULL AS threshold;
SELECT near_contained('{1}'::bigint[], '{1}', 0);
SELECT near_contained('{1}'::bigint[], '{1}', 1.0000001);
SELECT near_contained('{1}'::bigint[], '{1}', 'nan');

SELECT _ball('{3,1,NULL,3}'::bigint[], 0.5), _ball('{}'::bigint[], 1), _ball('{{1},{2}}'::bigint[], 1e-300);
SELECT _ball('{1}'::bigint[], 0);
SELECT '{1,2}'::bigint[] %> _ball('{1,9}'::bigint[], 0.5) AS contains, _ball('{1,9}'::bigint[], 0.5) <% '{1,2}'::bigint[] AS commuted,
       '{1,2}'::bigint[] <% _ball('{1,3,4}'::bigint[], 0.5) AS contained, _ball('{1,3,4}'::bigint[], 0.5) %> '{1,2}'::bigint[] AS commuted;
-- Array operators keep their meaning.
SELECT '{1,2}'::bigint[] @> '{1}' AS contains, '{1}'::bigint[] <@ '{1,2}' AS contained, '{1}'::bigint[] && '{1}' AS overlaps;

CREATE TABLE pages (id int PRIMARY KEY, prints bigint[]);
INSERT INTO pages SELECT i, array(SELECT 100 * i + j FROM generate_series(1, 20) j) FROM generate_series(1, 2000) i;
INSERT INTO pages VALUES (2001, '{101,102,103,104}'), (2002, '{101,102,103,999999}'), (2003, '{}'), (2004, NULL);
CREATE INDEX pages_prints ON pages USING neardup (prints);
ANALYZE pages;
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE near_contained('{101,102}', prints, 0.8);
SELECT id FROM pages WHERE near_contained('{101,102}', prints, 0.8) ORDER BY id;
-- PostgreSQL 17 and later name the results of subqueries differently, and 18 reports which scans are disabled.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        RETURN NEXT replace(replace(regexp_replace(line, 'InitPlan [a-z]+_', 'InitPlan ', 'g'), ' (returns $0)', ''), '(InitPlan 1).col1', '$0');
    END LOOP;
END $$;
SELECT explain('SELECT id FROM pages WHERE near_contained(prints, array(SELECT generate_series(101, 120))::bigint[], 0.8)');
SELECT id FROM pages WHERE near_contained(prints, array(SELECT generate_series(101, 120))::bigint[], 0.75) ORDER BY id;
SELECT id FROM pages WHERE near_contained(prints, array(SELECT generate_series(101, 120))::bigint[], 0.76) ORDER BY id;
SELECT id FROM pages WHERE prints %> _ball('{102,104,7}'::bigint[], 0.5) ORDER BY id;
SELECT id FROM pages WHERE _ball('{101,102,103,104,7}'::bigint[], 1) %> prints ORDER BY id;
SELECT id FROM pages WHERE near_contained(NULL, prints, 0.5);
SELECT id FROM pages WHERE near_contained('{}', prints, 0.5);
SELECT id FROM pages WHERE near_contained('{1}', prints, 1.5);

-- A generic plan, whose threshold may be out of range.
SET plan_cache_mode = force_generic_plan;
PREPARE within (bigint[], float8) AS SELECT id FROM pages WHERE near_contained(prints, $1, $2) ORDER BY id;
EXPLAIN (COSTS OFF) EXECUTE within ('{}', 1);
EXECUTE within ('{101,102,103,104}', 0.7);
EXECUTE within ('{}', 0.7);
EXECUTE within (NULL, 0.7);
EXECUTE within ('{101}', 0);
RESET plan_cache_mode;

-- Joins in both directions.
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM pages a JOIN pages b ON near_contained(a.prints, b.prints, 0.7) WHERE a.id > 2000;
SELECT a.id AS part, b.id AS whole FROM pages a JOIN pages b ON near_contained(a.prints, b.prints, 0.7)
WHERE a.id > 2000 ORDER BY 1, 2;
SELECT a.id AS part, b.id AS whole FROM pages a JOIN pages b ON near_contained(a.prints, b.prints, 0.7)
WHERE b.id > 2000 OR b.id = 1 ORDER BY 1, 2;

-- Comparisons of the measures with constants use the index, too.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE containment(prints, '{101,102}') >= 0.8;
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE 0.8 < containment('{101,102}', prints);
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE jaccard('{101,102}', prints) = 1;
SELECT explain('SELECT id FROM pages WHERE containment(''{101,102}'', prints) < 0.8');
SELECT explain('SELECT id FROM pages WHERE containment(''{101,102}'', prints) >= 0');
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM pages a JOIN pages b ON containment(a.prints, b.prints) > 0.7 WHERE a.id > 2000;
DO $$
DECLARE
    condition text;
    by_index bigint;
    by_scan bigint;
BEGIN
    FOREACH condition IN ARRAY ARRAY['containment(a.prints, b.prints) > 0.5', 'containment(b.prints, a.prints) >= 1.0 / 3',
                                     'jaccard(a.prints, b.prints) > 0.25', 'containment(b.prints, a.prints) = 1'] LOOP
        EXECUTE 'SELECT count(*) FROM pages a, pages b WHERE a.id % 50 = 0 AND ' || condition INTO by_index;
        EXECUTE 'SELECT count(*) FROM pages a, pages b WHERE a.id % 50 = 0 AND (' || condition || ') IS TRUE' INTO by_scan;
        IF by_index <> by_scan OR by_index = 0 THEN
            RAISE '% by index, % by scan: %', by_index, by_scan, condition;
        END IF;
    END LOOP;
END $$;
RESET enable_seqscan;

-- Rows with more elements than fit on a page, the log before and after them, and a scope.
CREATE TABLE books (tenant int, id int, prints bigint[]);
CREATE INDEX books_prints ON books USING neardup (tenant, prints);
INSERT INTO books SELECT i % 2, i, array(SELECT generate_series(1, CASE WHEN i % 5 = 0 THEN 6000 ELSE 3 END) * 7::bigint * i)
FROM generate_series(1, 40) i;
INSERT INTO books SELECT 0, 41, array_agg(i * 14) FROM generate_series(1, 1000000) i;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM books WHERE tenant = 0 AND near_contained('{70,140,210}', prints, 1);
SELECT id FROM books WHERE tenant = 0 AND near_contained('{70,140,210}', prints, 1) ORDER BY id;
SELECT id FROM books WHERE tenant = 1 AND near_contained(prints, (SELECT array_agg(i * 7::bigint) FROM generate_series(1, 30000) i), 0.5)
ORDER BY id;
SELECT count(*) FROM books b JOIN books c ON b.tenant = c.tenant AND near_contained(b.prints, c.prints, 1);
SELECT near_dup_index_check('books_prints'), near_dup_index_check('pages_prints');
VACUUM books;
SELECT count(*) FROM books b JOIN books c ON b.tenant = c.tenant AND near_contained(b.prints, c.prints, 1);
RESET enable_seqscan;
SELECT count(*) FROM books b JOIN books c ON b.tenant = c.tenant AND near_contained(b.prints, c.prints, 1) IS TRUE;

-- Parts that the operator class does not have.
SELECT id FROM pages ORDER BY prints %> _ball('{1}'::bigint[], 1), id LIMIT 1;
\set VERBOSITY sqlstate
CREATE INDEX ON pages USING neardup (prints set_ops (threshold = 0.5));
\set VERBOSITY default
CREATE INDEX ON pages USING neardup ((prints::int[]));

-- Resemblance of sets, and containment of documents, use the same index.
SELECT near_dup('{1,2,3}'::bigint[], '{2,3,4}', 0.5) AS reached, near_dup('{1,2,3}'::bigint[], '{2,3,4}', 0.51) AS missed,
       near_dup('{}'::bigint[], '{}', 0.1) AS empty, near_dup(NULL::bigint[], '{1}', 0.5) IS NULL AS null;
SELECT near_dup('{1}'::bigint[], '{1}', 2);
SELECT '{1,2,3}'::bigint[] <%> _ball('{2,3,4}'::bigint[], 0.5) AS resembles, _ball('{2,3,4}'::bigint[], 0.51) <%> '{1,2,3}'::bigint[] AS not;
SELECT id FROM pages WHERE near_dup(prints, '{101,102,103,104}', 0.6) ORDER BY id;
CREATE TABLE notes (id int PRIMARY KEY, body text);
INSERT INTO notes SELECT i, 'note ' || i || ' about ' || string_agg('topic' || i * w, ' ') FROM generate_series(1, 2000) i, generate_series(1, 20) w GROUP BY i;
INSERT INTO notes VALUES (3001, 'Note 7, ABOUT ' || (SELECT string_agg('topic' || 7 * w, E'\n' ORDER BY w) FROM generate_series(1, 19) w)), (3002, ''), (3003, NULL);
CREATE INDEX notes_shingles ON notes USING neardup (shingle_hashes(body));
ANALYZE notes;
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE near_contained('some text of five words', body);
SELECT id FROM notes WHERE near_contained((SELECT body FROM notes WHERE id = 7), body) ORDER BY id;
SELECT id FROM notes WHERE near_contained(body, (SELECT body FROM notes WHERE id = 7), 0.99) ORDER BY id;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM notes a JOIN notes b ON near_contained(a.body, b.body, 0.7) AND a.id < b.id WHERE a.id < 20;
SELECT a.id, b.id FROM notes a JOIN notes b ON near_contained(a.body, b.body, 0.7) AND a.id < b.id WHERE a.id < 20;
-- The index does not contain shingles of another kind.
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE near_contained('some text', body, 0.8, 4);
-- A comparison with a constant uses it, too, and is checked row by row.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE containment('some text of five words', body) > 0.8;
SELECT id FROM notes WHERE containment(body, (SELECT body FROM notes WHERE id = 7)) >= 0.99 ORDER BY id;
RESET enable_seqscan;
SELECT near_contained('a b c', NULL) IS NULL AS null, near_contained('', '', 0.1) AS empty, near_contained('b c d', 'a b c d e', 1) AS part;
\set SHOW_CONTEXT never
SELECT near_contained('a', 'b', 0);
SELECT near_contained('a', 'b', unit => 'byte');
\set SHOW_CONTEXT errors

-- An index on the documents themselves, some of which have more shingles than the number of keys.
SELECT 'a b c d e' %> _ball('b c d x', 0.5, 3, 'word', 'case') AS contains, _ball('b c d x', 0.51, 3, 'word', 'case') <% 'a b c d e' AS commuted,
       'a b c d' <% _ball('b c d e f', 0.5, 3, 'word', 'case') AS contained, _ball('b c d e f', 0.51, 3, 'word', 'case') %> 'a b c d' AS commuted,
       '' <% _ball('a', 0.1, 3, 'word', 'case') AS empty_part, 'a' %> _ball('', 0.1, 3, 'word', 'case') AS empty_center;
DROP INDEX notes_shingles;
CREATE INDEX notes_body ON notes USING neardup (body text_ops (keys = 64));
INSERT INTO notes SELECT 4000 + n, string_agg(body, ' ' ORDER BY id) FROM notes, generate_series(0, 2) n
WHERE id BETWEEN 1 + 4 * n AND 4 + 12 * n GROUP BY n;
ANALYZE notes;
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE near_contained('some text of five words', body);
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE near_contained(body, 'some text of five words', 0.5);
SELECT id FROM notes WHERE near_contained((SELECT body FROM notes WHERE id = 7), body) ORDER BY id;
SELECT id FROM notes WHERE near_contained('topic7 topic14 topic21', body, 0.5) ORDER BY id;
SELECT id FROM notes WHERE near_contained(body, (SELECT body FROM notes WHERE id = 4001), 0.9) ORDER BY id;
SELECT id FROM notes WHERE _ball((SELECT body FROM notes WHERE id = 4000), 1, 3, 'word', 'case') %> body ORDER BY id;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM notes a JOIN notes b ON near_contained(a.body, b.body, 0.7) AND a.id < b.id WHERE a.id < 20;
SELECT a.id, b.id FROM notes a JOIN notes b ON near_contained(a.body, b.body, 0.7) AND a.id < b.id WHERE a.id < 20;
SET plan_cache_mode = force_generic_plan;
PREPARE quoting (text, float8) AS SELECT id FROM notes WHERE near_contained($1, body, $2) ORDER BY id;
EXPLAIN (COSTS OFF) EXECUTE quoting ('', 1);
EXECUTE quoting ('NOTE 9 about', 1);
EXECUTE quoting ('', 0.7);
EXECUTE quoting (NULL, 0.7);
EXECUTE quoting ('a', 0);
RESET plan_cache_mode;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE containment('some text of five words', body) > 0.8;
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE 0.5 <= containment(body, 'some text of five words');
-- There is an index on sets, too; neither supports shingles of another kind.
CREATE INDEX notes_chars ON notes USING neardup (shingle_hashes(body, 5, 'char'));
EXPLAIN (COSTS OFF) SELECT id FROM notes WHERE near_contained('some text of five words', body, 0.9, 5, 'char');
SELECT explain('SELECT id FROM notes WHERE near_contained(''some text'', body, 0.8, 4)');
RESET enable_seqscan;
-- In a scope, on an expression, on some of the rows, and on partitions.
CREATE TABLE letters (tenant int, id int, title text, body varchar) PARTITION BY LIST (tenant);
CREATE TABLE letters_1 PARTITION OF letters FOR VALUES IN (1);
CREATE TABLE letters_2 PARTITION OF letters FOR VALUES IN (2);
INSERT INTO letters SELECT 1 + id % 2, id, 'About', body FROM notes;
CREATE INDEX letters_body ON letters USING neardup (tenant, body text_ops (keys = 64));
CREATE INDEX letters_all ON letters USING neardup ((title || ' ' || body)) WHERE id > 3000;
ANALYZE letters;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM letters WHERE tenant = 2 AND near_contained('some text of five words', body);
EXPLAIN (COSTS OFF) SELECT id FROM letters WHERE id > 3000 AND near_contained('some text of five words', title || ' ' || body);
DO $$
DECLARE
    condition text;
    by_index bigint;
    by_scan bigint;
BEGIN
    FOREACH condition IN ARRAY ARRAY['near_contained(b.body, a.body, 0.5)', 'near_contained(a.body, b.body, 0.3)',
                                     'containment(b.body, a.body) >= 1', 'containment(a.body, b.body) > 0.05'] LOOP
        EXECUTE 'SELECT count(*) FROM letters a JOIN letters b USING (tenant) WHERE (a.id < 40 OR a.id > 3000) AND ' || condition INTO by_index;
        EXECUTE 'SELECT count(*) FROM letters a JOIN letters b USING (tenant) WHERE (a.id < 40 OR a.id > 3000) AND (' || condition || ') IS TRUE'
        INTO by_scan;
        IF by_index <> by_scan OR by_index = 0 THEN
            RAISE '% by index, % by scan: %', by_index, by_scan, condition;
        END IF;
    END LOOP;
END $$;
SELECT id FROM letters WHERE id > 3000 AND near_contained('ABOUT note 1 about', title || ' ' || body, 1) ORDER BY id;
RESET enable_seqscan;
SELECT near_dup_index_check('notes_body'), near_dup_index_check('letters_1_tenant_body_idx');
DROP TABLE letters;

-- All pairs in which one contains the other.
CREATE TABLE parts (key text, body text);
INSERT INTO parts VALUES ('whole', 'one two three four five six seven eight'), ('part', E'THREE, four,\nfive'), ('copy', 'three four five'),
    ('half', 'six seven eight nine ten'), ('short', 'one two'), ('empty', ''), ('null', NULL);
SELECT a, b, round(similarity::numeric, 3) AS share
FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts', 0.3, measure => 'containment') ORDER BY a COLLATE "C", b COLLATE "C";
SELECT a, b, similarity FROM near_dup_pairs(NULL::text, 'SELECT key, shingle_hashes(body, 1) FROM parts', 1, measure => 'containment')
ORDER BY a COLLATE "C", b COLLATE "C";
SELECT a, b, similarity FROM near_dup_pairs(NULL::text, 'SELECT key, shingles(body, 2) FROM parts', 1, measure => 'containment')
ORDER BY a COLLATE "C", b COLLATE "C";
SELECT a, b, similarity FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts', 1, k => 3, unit => 'char', measure => 'containment')
ORDER BY a COLLATE "C", b COLLATE "C";
SELECT a, b, similarity
FROM near_dup_join(NULL::text, $$SELECT key, body FROM parts WHERE key <> 'copy'$$, $$SELECT key, body FROM parts WHERE key IN ('whole', 'copy')$$,
                   0.9, measure => 'containment') ORDER BY a COLLATE "C", b COLLATE "C";
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts WHERE false', 1, measure => 'containment');
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts', 1, measure => 'Containment');
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts', 1, measure => NULL);
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key, minhash(body) FROM parts', 1, measure => 'containment');
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key FROM parts', 1, measure => 'containment');
SELECT * FROM near_dup_pairs(NULL::text, 'SELECT key, body FROM parts', 0, measure => 'containment');

-- Boilerplate as text.
SELECT shingle, documents, hash = ANY (shingle_hashes(shingle)) AS is_its_hash
FROM common_shingles('SELECT body FROM parts', 2) ORDER BY documents DESC, shingle COLLATE "C";
SELECT shingle, documents FROM common_shingles('SELECT body FROM parts', 4, k => 4, unit => 'char') ORDER BY shingle COLLATE "C";
SELECT array_agg(hash ORDER BY hash) = (SELECT array_agg(DISTINCT hash ORDER BY hash) FROM parts, unnest(shingle_hashes(body, 2, seed => 7)) hash) AS same
FROM common_shingles('SELECT body FROM parts', 1, 2, seed => 7);
SELECT * FROM common_shingles('SELECT body FROM parts', 0);
SELECT * FROM common_shingles('SELECT key, body FROM parts', 2);
