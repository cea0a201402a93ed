-- An index on text: exact results for documents.
\pset format unaligned
\pset tuples_only on
CREATE TABLE docs (id int PRIMARY KEY, tenant text, title text, body varchar);
INSERT INTO docs SELECT i, 'tenant' || i % 3, 'Note ' || i, (SELECT string_agg('topic' || i / 2 * w, ' ' ORDER BY w) FROM generate_series(1, 20) w) || repeat(' more', i % 2)
FROM generate_series(1, 2000) i;
INSERT INTO docs VALUES (3001, 'tenant1', '', ''), (3002, 'tenant1', '...', '...'), (3003, NULL, NULL, NULL), (3004, 'tenant1', 'one', 'one'), (3005, 'tenant1', 'one', 'One!');

SELECT near_dup('one two three four', 'One, two, three FOUR!') AS copy, near_dup('a b c d e', 'a b c d f', 0.5) AS half, near_dup('a b c d e', 'a b c d f', 0.51) AS above,
       near_dup('', '') AS empty, near_dup('...', '...', 0.1) AS no_words, near_dup('a b c', NULL) IS NULL AS null, near_dup('one', 'One!') AS one_word,
       near_dup('abcd', 'abce', 0.5, 3, 'char') AS characters, near_dup('É', 'e', 1, 1, 'word', 'marks') AS marks;
\set SHOW_CONTEXT never
SELECT near_dup('a', 'b', 0);
SELECT near_dup('a', 'b', unit => 'byte');
SELECT near_dup('a', 'b', k => 0);

CREATE INDEX docs_body ON docs USING neardup (body);
ANALYZE docs;
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2 topic3 topic4');
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE resemblance('topic1 topic2 topic3 topic4', body) > 0.9;
SELECT id FROM docs WHERE near_dup(body, (SELECT body FROM docs WHERE id = 7)) ORDER BY id;
SELECT id FROM docs WHERE near_dup((SELECT body FROM docs WHERE id = 7), body, 0.99) ORDER BY id;
SELECT id FROM docs WHERE near_dup(body, 'one') ORDER BY id;
SELECT id FROM docs WHERE near_dup(body, '');
SELECT id FROM docs WHERE near_dup(body, (SELECT body FROM docs WHERE id = 7)) ORDER BY resemblance(body, (SELECT body FROM docs WHERE id = 7)) DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM docs a JOIN docs b ON near_dup(a.body, b.body) AND a.id < b.id WHERE a.id < 20;
SELECT a.id, b.id FROM docs a JOIN docs b ON near_dup(a.body, b.body) AND a.id < b.id WHERE a.id < 20 ORDER BY 1, 2;
-- The same keys find less similar documents, as long as those share some; much lower thresholds are not found by keys, nor is
-- another meaning, nor equality.
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', 0.7);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', 0.6);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', 0.8, 4);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', unit => 'char');
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', fold => 'none');
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE body = 'one';
SET enable_seqscan = off;
SELECT id FROM docs WHERE body = 'one';
SELECT id FROM docs WHERE body = 'one' AND near_dup(body, 'one');
RESET enable_seqscan;
-- Of two indexes, the one made for the condition is used, even if the document is not known yet.
CREATE INDEX docs_stop ON docs USING neardup (body text_ops (unit = stop));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM docs a JOIN docs b ON resemblance(b.body, a.body) >= 0.8 WHERE a.id < 20;
EXPLAIN (COSTS OFF) SELECT a.id, b.id FROM docs a JOIN docs b ON resemblance(b.body, a.body, unit => 'stop') >= 0.8 WHERE a.id < 20;
RESET enable_seqscan;
DROP INDEX docs_stop;
-- A threshold and a meaning that are known only at execution.
PREPARE lookup (text, float8) AS SELECT id FROM docs WHERE near_dup(body, $1, $2) ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE lookup ('one', 0.8);
EXECUTE lookup ('one', 0.8);
SET enable_seqscan = off;
EXECUTE lookup ('one', 0.01);
EXECUTE lookup ('one', NULL);
EXECUTE lookup ('one', 1.5);
RESET enable_seqscan;
RESET plan_cache_mode;
DEALLOCATE lookup;
DROP INDEX docs_body;

-- Options.
CREATE INDEX docs_body ON docs USING neardup (body text_ops (k = 2, unit = char, fold = none, seed = 5));
SELECT pg_get_indexdef('docs_body'::regclass);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'topic1 topic2', 0.9, 2, 'char', 'none');
SELECT id FROM docs WHERE near_dup(body, 'one', 0.9, 2, 'char', 'none');
DROP INDEX docs_body;
CREATE INDEX ON docs USING neardup (body text_ops (threshold = 0.8));
CREATE INDEX ON docs USING neardup (body text_ops (keys = 63));
CREATE INDEX ON docs USING neardup (body text_ops (keys = 1025));
CREATE INDEX ON docs USING neardup (body text_ops (k = 0));
CREATE INDEX ON docs USING neardup (body text_ops (unit = byte));
CREATE INDEX ON docs USING neardup (body text_ops (fold = lower));
CREATE INDEX ON docs USING neardup (body) INCLUDE (id);
CREATE UNIQUE INDEX ON docs USING neardup (body);

-- An expression, some of the rows, a leading tenant column, a domain.
CREATE INDEX docs_both ON docs USING neardup ((title || ' ' || body)) WHERE tenant = 'tenant1';
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(title || ' ' || body, 'one one') AND tenant = 'tenant1';
SELECT id FROM docs WHERE near_dup(title || ' ' || body, 'one one') AND tenant = 'tenant1' ORDER BY id;
DROP INDEX docs_both;
CREATE INDEX docs_tenant ON docs USING neardup (tenant scope_ops, body);
EXPLAIN (COSTS OFF) SELECT id FROM docs WHERE near_dup(body, 'one') AND tenant = 'tenant1';
SELECT id FROM docs WHERE near_dup(body, 'one') AND tenant = 'tenant1' ORDER BY id;
SELECT id FROM docs WHERE near_dup(body, 'one') AND tenant = 'tenant2' ORDER BY id;
DROP INDEX docs_tenant;
-- Which of two texts is the document?
CREATE INDEX ON docs USING neardup (body, tenant);
CREATE INDEX ON docs USING neardup (body, id);
CREATE DOMAIN prose AS text;
CREATE TABLE papers (id int, body prose);
INSERT INTO papers VALUES (1, 'a paper of five words'), (2, 'A paper of five words.');
CREATE INDEX papers_body ON papers USING neardup (body);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM papers WHERE near_dup(body, 'a paper of five words');
SELECT id FROM papers WHERE near_dup(body, 'a paper of five words') ORDER BY id;
RESET enable_seqscan;
DROP TABLE docs, papers;
DROP DOMAIN prose;

-- A constraint on text.
CREATE TABLE pages (id int PRIMARY KEY, site text, body text);
ALTER TABLE pages ADD CONSTRAINT pages_no_copies EXCLUDE USING neardup (near_dup_key(body, 0.8, label => id::text) WITH %);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'pages_no_copies';
INSERT INTO pages SELECT i, 'site' || i % 2, (SELECT string_agg('word' || i * 100 + w, ' ') FROM generate_series(1, 30) w) FROM generate_series(1, 100) i;
INSERT INTO pages SELECT 1001, site, upper(body) || '!' FROM pages WHERE id = 1;
INSERT INTO pages SELECT 1001, site, body || ' and a little' FROM pages WHERE id = 1 ON CONFLICT DO NOTHING;
INSERT INTO pages SELECT 1001, site, body || ' and a great many other words that none of the others has' FROM pages WHERE id = 1;
UPDATE pages SET body = (SELECT body FROM pages WHERE id = 3) WHERE id = 2;
UPDATE pages SET body = body || ' more' WHERE id = 2;
INSERT INTO pages SELECT 2000 + i, 'site', CASE WHEN i % 2 = 0 THEN '' END FROM generate_series(1, 4) i;
SELECT count(*), max(id) FROM pages;
ANALYZE pages;
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE near_dup(body, 'some text', 0.9);
SELECT id FROM pages WHERE near_dup(body, (SELECT body FROM pages WHERE id = 7), 0.9);
EXPLAIN (COSTS OFF) SELECT id FROM pages WHERE near_dup(body, 'some text', 0.9, 5);
SELECT near_dup_index_check('pages_no_copies');
-- Deferred, and within a site.
ALTER TABLE pages DROP CONSTRAINT pages_no_copies;
ALTER TABLE pages ADD CONSTRAINT pages_site EXCLUDE USING neardup (site scope_ops WITH =, near_dup_key(body, 0.8, label => id::text) WITH %) DEFERRABLE INITIALLY DEFERRED;
INSERT INTO pages SELECT 3001, 'other', body FROM pages WHERE id = 1;
BEGIN;
INSERT INTO pages SELECT 3002, site, body FROM pages WHERE id = 1;
DELETE FROM pages WHERE id = 1;
COMMIT;
INSERT INTO pages SELECT 3003, site, body FROM pages WHERE id = 3002;
-- A table that violates the constraint, keys, and invalid bounds.
ALTER TABLE pages DROP CONSTRAINT pages_site;
SET search_path = pg_catalog;
ALTER TABLE public.pages ADD EXCLUDE USING neardup (public.near_dup_key(body, 0.8, label => id::text) WITH OPERATOR(public.%));
RESET search_path;
ALTER TABLE pages ADD EXCLUDE USING neardup (near_dup_key(body, id) WITH %);
SELECT near_dup_key('a b c d', 0.8), near_dup_key('a b c d', 0.8, label => 'five');
SELECT near_dup_key('a b c d', 0.5) % near_dup_key('A B C e', 0.3) AS below, near_dup_key('a b c d', 0.3) % near_dup_key('A B C e', 0.3) AS above,
       near_dup_key('a b c', 0.5) % near_dup_key('a b c', 0.5, 2) AS other_shingles, near_dup_key('a', 0.5, label => 'x') % near_dup_key('a', 0.5, label => 'y') AS labels,
       near_dup_key('a', 0.5) % near_dup_key(minhash('a'), 0.5) AS other_kind, near_dup_key('', 0.5) % near_dup_key('', 0.5) AS empty;
SELECT near_dup_key('a', 2.5);
DROP TABLE pages;

-- Other types of text.
CREATE DOMAIN prose AS varchar(200);
CREATE TABLE typed (id serial, n int DEFAULT 0, c char(200), v varchar(200), p prose,
    CONSTRAINT typed_c EXCLUDE USING neardup (near_dup_key(c, 0.8, label => id::text) WITH %),
    CONSTRAINT typed_v EXCLUDE USING neardup (near_dup_key(v, 0.8, label => id::text) WITH %),
    CONSTRAINT typed_p EXCLUDE USING neardup (near_dup_key(p, 0.8, label => id::text) WITH %));
INSERT INTO typed (c, v, p)
SELECT body, body, body
FROM (SELECT string_agg('word' || i * 100 + w, ' ') AS body FROM generate_series(1, 3) i, generate_series(1, 20) w GROUP BY i) b;
INSERT INTO typed (c) SELECT upper(c) FROM typed WHERE id = 2;
INSERT INTO typed (v) SELECT upper(v) FROM typed WHERE id = 2;
INSERT INTO typed (p) SELECT upper(p) FROM typed WHERE id = 2;
CREATE INDEX ON typed USING neardup (c text_ops);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM typed WHERE near_dup(c, 'some text');
SELECT id FROM typed WHERE near_dup(c, (SELECT c FROM typed WHERE id = 3));
SELECT id FROM typed WHERE near_dup(v, (SELECT v FROM typed WHERE id = 3)) AND near_dup(p, (SELECT p FROM typed WHERE id = 3));
RESET enable_seqscan;
-- A HOT update of another column makes no new index entry for the document.
SELECT rows AS before FROM near_dup_index_stats('typed_c');
BEGIN;
UPDATE typed SET n = 1 WHERE id < 4;
SELECT pg_stat_get_xact_tuples_hot_updated('typed'::regclass) AS hot;
COMMIT;
SELECT rows AS after FROM near_dup_index_stats('typed_c');
DROP TABLE typed;
DROP DOMAIN prose;
