-- Maintained clusters, compared with clusters computed from scratch.
SET client_min_messages = warning;
-- Differences between the maintained clusters and computed ones.
CREATE FUNCTION differences(clusters regclass, query text, threshold float8) RETURNS TABLE (key bigint, kept text, computed text)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('
        SELECT coalesce(k.key, c.key)::bigint, k.canonical || '' '' || coalesce(k.similarity::text, ''NULL''),
               c.cluster || '' '' || coalesce(c.similarity::text, ''NULL'')
        FROM %s k FULL JOIN near_dup_clusters(NULL::bigint, %L, %L) c ON c.key = k.key
        WHERE (k.canonical::bigint, k.similarity) IS DISTINCT FROM (c.cluster, c.similarity)', clusters, query, threshold);
END $$;
CREATE TABLE docs (
    id        bigint PRIMARY KEY,
    published date,
    body      text,
    views     int DEFAULT 0,
    sig       minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED
);
INSERT INTO docs (id, published, body) VALUES
    (1, '2024-01-05', 'a b c d e f g h i j'),
    (2, '2024-01-03', 'a b c d e f g h i k'),
    (3, '2024-01-02', 'a b c d e f g h l k'),
    (4, NULL,         'a b c d e f g h i j'),
    (5, '2024-01-01', ''),
    (6, '2024-01-01', NULL),
    (7, '2024-01-01', 'something else altogether is said here');
-- Requirements.
SELECT near_dup_track('docs', 'sig', 0.7);
CREATE INDEX docs_sig ON docs USING neardup (sig minhash_ops (threshold = 0.7));
SELECT near_dup_track('docs', 'sig', 0.5);
SELECT near_dup_track('docs', 'body', 0.7);
SELECT near_dup_track('docs', 'nothing', 0.7);
SELECT near_dup_track('docs', 'sig', 1.5);
SELECT near_dup_track('docs', 'sig', 0.7, 'now() - published');
SELECT near_dup_track('docs', 'sig', 0.7, 'id LIMIT 1');
SELECT near_dup_track('docs', 'sig', 0.7, 'id FOR UPDATE');
SELECT near_dup_track('docs', 'sig', 0.7, '1');
SELECT near_dup_track('docs', 'sig', 0.7, 'ctid');
SELECT near_dup_track('docs', 'sig', 0.7, 'docs::text');
SELECT near_dup_track('docs', 'sig', 0.7, 'count(*)');
SELECT near_dup_track('docs', 'sig', 0.7, '(SELECT 1)');
SELECT near_dup_track('docs', 'sig', 0.7, 'id; DROP TABLE docs');
SELECT near_dup_track('docs', 'sig', 0.7, 'published, id');
SELECT near_dup_track('docs', 'sig', 0.7, 'body USING ~<~');
SELECT near_dup_track('docs', 'sig', 0.7, key => 'nothing');
SELECT near_dup_track('docs', 'sig', 0.7, scope => '{tenant}');
\set VERBOSITY sqlstate
SELECT near_dup_track('docs_pkey', 'sig', 0.7);
\set VERBOSITY default
SELECT near_dup_track('pg_class', 'oid', 0.7);
CREATE TABLE keyless AS SELECT 1 AS id, minhash('a') AS sig;
SELECT near_dup_track('keyless', 'sig');
ALTER TABLE keyless ADD PRIMARY KEY (id) DEFERRABLE;
SELECT near_dup_track('keyless', 'sig');
CREATE TABLE padded (id int PRIMARY KEY, body char(20));
SELECT near_dup_track('padded', 'body', 0.7);
DROP TABLE padded;
CREATE TEMP TABLE fleeting (id int PRIMARY KEY, sig minhash_signature);
\set VERBOSITY sqlstate
SELECT near_dup_track('fleeting', 'sig');
\set VERBOSITY default
CREATE TABLE hidden (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON hidden USING neardup (sig);
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
SELECT near_dup_track('hidden', 'sig');
-- The order determines which row represents the others.
SELECT near_dup_track('docs', 'sig', 0.7);
SELECT near_dup_track('docs', 'sig', 0.7, 'published DESC NULLS LAST', 'Newest docs');
SELECT key, cluster, canonical, round(similarity::numeric, 2) AS similarity FROM docs_clusters ORDER BY key;
SELECT key, cluster, canonical, round(similarity::numeric, 2) AS similarity FROM "Newest docs" ORDER BY key;
SELECT clusters, column_name, threshold, keep, scope, key, behind FROM near_dup_tracked ORDER BY clusters::text;
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
SELECT * FROM differences('"Newest docs"',
    'SELECT id, sig FROM docs ORDER BY published DESC NULLS LAST, id', 0.7);
-- Changes of columns that are not read are not noted.
UPDATE docs SET views = views + 1;
SELECT clusters, behind FROM near_dup_tracked ORDER BY clusters::text;
SELECT * FROM near_dup_refresh('docs_clusters');
-- Statements of every kind.
INSERT INTO docs (id, published, body) VALUES (8, '2023-01-01', 'a b c d e f g h i j'), (9, '2025-01-01', 'quite new, this one');
UPDATE docs SET id = 0 WHERE id = 8;
DELETE FROM docs WHERE id = 1;
UPDATE docs SET published = '2026-01-01' WHERE id = 4;
COPY docs (id, published, body) FROM STDIN;
11	2024-05-05	something else altogether is said here
12	2024-05-06	quite new, that one
\.
SELECT clusters, behind FROM near_dup_tracked ORDER BY clusters::text;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM near_dup_refresh('"Newest docs"');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
SELECT * FROM differences('"Newest docs"',
    'SELECT id, sig FROM docs ORDER BY published DESC NULLS LAST, id', 0.7);
SELECT key, cluster, canonical FROM docs_clusters ORDER BY key;
SELECT event, from_cluster, to_cluster, key FROM docs_clusters_log ORDER BY event COLLATE "C", key;
MERGE INTO docs USING (VALUES (9, 'another text for nine'), (13, 'another text for nine'), (3, NULL)) v (id, body) ON docs.id = v.id
    WHEN MATCHED AND v.body IS NULL THEN DELETE
    WHEN MATCHED THEN UPDATE SET body = v.body
    WHEN NOT MATCHED THEN INSERT (id, body) VALUES (v.id, v.body);
INSERT INTO docs (id, body) VALUES (13, 'x') ON CONFLICT (id) DO UPDATE SET body = 'a b c d e f g h i j';
BEGIN;
INSERT INTO docs (id, body) VALUES (14, 'taken back');
SAVEPOINT s;
INSERT INTO docs (id, body) VALUES (15, 'taken back');
ROLLBACK TO s;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
ROLLBACK;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
-- Empty documents and NULLs are added and removed.
UPDATE docs SET body = 'a b c d e f g h i j' WHERE id IN (5, 6);
UPDATE docs SET body = '' WHERE id = 2;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
-- Changes that no trigger sees.
ALTER TABLE docs DISABLE TRIGGER USER;
INSERT INTO docs (id, body) VALUES (20, 'unseen'), (21, 'unseen');
DELETE FROM docs WHERE id = 0;
ALTER TABLE docs ENABLE TRIGGER USER;
SELECT behind FROM near_dup_tracked WHERE clusters = 'docs_clusters'::regclass;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT format('ALTER TABLE docs ENABLE ALWAYS TRIGGER %I', tgname) FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND NOT tgisinternal ORDER BY tgname \gexec
SELECT rows FROM near_dup_refresh('docs_clusters');
SELECT rows FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
-- Other parameters.
ALTER TABLE docs ALTER sig DROP EXPRESSION;
INSERT INTO docs (id, sig) VALUES (30, minhash('other parameters', 2));
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM near_dup_refresh('docs_clusters', true);
DELETE FROM docs WHERE id = 30;
SELECT * FROM near_dup_refresh('docs_clusters');
-- Emptied, and filled again.
TRUNCATE docs;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT count(*) FROM docs_clusters;
INSERT INTO docs (id, sig) VALUES (1, minhash('again', 1)), (2, minhash('again', 1));
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT key, cluster, canonical FROM docs_clusters ORDER BY key;
-- A rewritten table is read again.
\set VERBOSITY terse
ALTER TABLE docs ALTER sig TYPE minhash_signature USING minhash('something else', 1);
\set VERBOSITY default
ALTER TABLE docs DISABLE TRIGGER USER;
TRUNCATE docs;
INSERT INTO docs (id, sig) VALUES (2, minhash('again', 1));
SELECT format('ALTER TABLE docs ENABLE ALWAYS TRIGGER %I', tgname) FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND NOT tgisinternal ORDER BY tgname \gexec
SELECT rows, created FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'SELECT id, sig FROM docs ORDER BY id', 0.7);
-- Renamed tables are followed.
ALTER TABLE docs_clusters RENAME TO groups;
ALTER TABLE docs RENAME TO texts;
CREATE SCHEMA elsewhere;
ALTER TABLE docs_clusters_log SET SCHEMA elsewhere;
INSERT INTO texts (id, sig) VALUES (3, minhash('renamed', 1));
SELECT * FROM near_dup_refresh('groups');
SELECT event, to_cluster, key FROM elsewhere.docs_clusters_log ORDER BY number DESC LIMIT 1;
ALTER TABLE texts RENAME TO docs;
-- The end.
SELECT near_dup_untrack('groups');
SELECT near_dup_untrack('groups');
SELECT * FROM near_dup_refresh('groups');
SELECT clusters FROM near_dup_tracked ORDER BY clusters::text;
DROP TABLE "Newest docs";
SELECT clusters FROM near_dup_tracked;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'docs'::regclass;
INSERT INTO docs (id) VALUES (100);
SELECT relname FROM pg_class WHERE relname ~ 'docs' AND relkind = 'r' ORDER BY relname;
SELECT near_dup_track('docs', 'sig', 0.7);
DROP TABLE docs;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM near_dup_tracked;
-- A key that is a part of the primary key, partitions, and separate tenants.
CREATE TABLE "Odd table" (
    "a key" int, tenant text COLLATE "C", day date, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED,
    PRIMARY KEY ("a key", day)
) PARTITION BY RANGE (day);
CREATE TABLE odd_1 PARTITION OF "Odd table" FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE odd_2 (body text, day date NOT NULL, gone int, tenant text COLLATE "C", "a key" int NOT NULL,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED);
ALTER TABLE odd_2 DROP gone;
ALTER TABLE "Odd table" ATTACH PARTITION odd_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE INDEX ON "Odd table" USING neardup (sig);
SELECT near_dup_track('"Odd table"', 'sig', scope => '{tenant}');
SELECT near_dup_track('"Odd table"', 'sig', key => 'a key', scope => '{tenant}');
CREATE INDEX ON "Odd table" USING neardup (tenant scope_ops, sig);
SELECT near_dup_track('odd_1', 'sig');
SELECT near_dup_track('"Odd table"', 'sig', keep => 'tenant COLLATE "C" DESC', key => 'a key', scope => '{tenant}');
INSERT INTO "Odd table" ("a key", tenant, day, body) VALUES
    (1, 'x', '2024-01-01', 'one text'), (2, 'x', '2024-02-01', 'one text'), (3, 'y', '2024-02-01', 'one text'),
    (4, NULL, '2024-02-01', 'one text'), (5, NULL, '2024-01-01', 'one text'), (6, 'y', '2024-01-01', 'one text');
SELECT * FROM near_dup_refresh('"Odd table_clusters"');
SELECT key, cluster, canonical, similarity, d.tenant FROM "Odd table_clusters" c JOIN "Odd table" d ON c.key = d."a key" ORDER BY key;
UPDATE "Odd table" SET day = '2024-02-02' WHERE "a key" = 6;
UPDATE "Odd table" SET tenant = 'y' WHERE "a key" = 4;
SELECT * FROM near_dup_refresh('"Odd table_clusters"');
SELECT key, cluster, canonical, similarity FROM "Odd table_clusters" ORDER BY key;
SELECT event, from_cluster, to_cluster, key FROM "Odd table_clusters_log" ORDER BY event COLLATE "C", key;
ALTER TABLE "Odd table" DETACH PARTITION odd_1;
SELECT * FROM near_dup_refresh('"Odd table_clusters"');
CREATE TABLE odd_3 PARTITION OF "Odd table" FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
INSERT INTO odd_3 VALUES (7, 'x', '2024-03-01', 'one text');
SELECT * FROM near_dup_refresh('"Odd table_clusters"');
TRUNCATE odd_2;
SELECT * FROM near_dup_refresh('"Odd table_clusters"');
SELECT key, cluster, canonical, similarity FROM "Odd table_clusters" ORDER BY key;
INSERT INTO odd_1 VALUES (8, 'x', '2024-01-01', 'detached');
DROP TABLE "Odd table";
-- Functions, types and collations that only the caller's search_path finds.
CREATE SCHEMA own;
SET search_path = own, public;
CREATE COLLATION plain FROM "C";
CREATE FUNCTION importance(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN -length($1);
CREATE TABLE ranked (id text COLLATE plain PRIMARY KEY, title text COLLATE plain, body text);
CREATE INDEX ON ranked USING neardup (body);
SELECT near_dup_track('ranked', 'body', keep => 'importance(title)');
INSERT INTO ranked VALUES ('a', 'short', 'one two three four'), ('b', 'longer', 'one two three four');
SELECT rows, created, joined FROM near_dup_refresh('ranked_clusters');
SELECT key, canonical FROM ranked_clusters ORDER BY key;
SET search_path = public;
SELECT keep FROM near_dup_tracked WHERE relation = 'own.ranked'::regclass;
SELECT near_dup_untrack('own.ranked_clusters');
DROP SCHEMA own CASCADE;
-- Rights: everything belongs to the owner, and roles that can read the table can read the clusters.
CREATE ROLE regress_live_owner;
CREATE ROLE regress_live_writer;
CREATE ROLE regress_live_reader;
CREATE SCHEMA theirs AUTHORIZATION regress_live_owner;
GRANT USAGE ON SCHEMA theirs TO regress_live_writer, regress_live_reader;
SET ROLE regress_live_owner;
CREATE TABLE theirs.docs (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON theirs.docs USING neardup (sig);
GRANT SELECT ON theirs.docs TO regress_live_reader;
GRANT INSERT ON theirs.docs TO regress_live_writer;
SET ROLE regress_live_writer;
SELECT near_dup_track('theirs.docs', 'sig');
RESET ROLE;
SELECT near_dup_track('theirs.docs', 'sig');
SELECT relname, relowner::regrole, relacl::text ~ 'reader' AS is_readable FROM pg_class
WHERE relnamespace = 'theirs'::regnamespace AND relkind = 'r' ORDER BY relname;
SET ROLE regress_live_writer;
INSERT INTO theirs.docs VALUES (1, minhash('written by another'));
SELECT * FROM near_dup_refresh('theirs.docs_clusters');
SELECT near_dup_untrack('theirs.docs_clusters');
SELECT clusters FROM near_dup_tracked;
SELECT * FROM theirs.docs_clusters;
SET ROLE regress_live_reader;
SELECT clusters, behind FROM near_dup_tracked;
SELECT * FROM theirs.docs_clusters;
SELECT * FROM theirs.docs_clusters_queue;
SET ROLE regress_live_owner;
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
-- A role that does not see all rows of the table sees none of the clusters.
ALTER TABLE theirs.docs ENABLE ROW LEVEL SECURITY;
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
SELECT count(*) FROM theirs.docs_clusters;
SET ROLE regress_live_reader;
SELECT count(*) FROM theirs.docs_clusters;
SELECT count(*) FROM theirs.docs_clusters_log;
SET ROLE regress_live_owner;
ALTER TABLE theirs.docs DISABLE ROW LEVEL SECURITY;
SET ROLE regress_live_reader;
SELECT count(*) FROM theirs.docs_clusters;
SET ROLE regress_live_owner;
-- A key of another type is not added to the queue.
\set VERBOSITY terse
ALTER TABLE theirs.docs ALTER id TYPE bigint;
\set VERBOSITY default
ALTER TABLE theirs.docs DROP CONSTRAINT docs_pkey;
INSERT INTO theirs.docs VALUES (2, minhash('without a key'));
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
ALTER TABLE theirs.docs ADD PRIMARY KEY (id);
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
-- A new owner of the table needs the tables of the tracker, too.
RESET ROLE;
ALTER TABLE theirs.docs OWNER TO regress_live_reader;
INSERT INTO theirs.docs VALUES (3, minhash('of another owner'));
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
SELECT near_dup_untrack('theirs.docs_clusters');
REASSIGN OWNED BY regress_live_owner TO regress_live_reader;
INSERT INTO theirs.docs VALUES (3, minhash('of another owner'));
SELECT rows, created FROM near_dup_refresh('theirs.docs_clusters');
SELECT near_dup_untrack('theirs.docs_clusters');
DROP SCHEMA theirs CASCADE;
DROP ROLE regress_live_owner, regress_live_writer, regress_live_reader;
-- Rows that a transaction of another isolation level may not have seen are read by the next refresh.
CREATE TABLE early (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON early USING neardup (sig);
INSERT INTO early VALUES (1, minhash('early'));
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT near_dup_track('early', 'sig');
COMMIT;
SELECT rows FROM near_dup_refresh('early_clusters');
SELECT rows FROM near_dup_refresh('early_clusters');
DROP TABLE early, early_clusters;
-- Equal keys need not be identical.
CREATE TABLE numbers (id numeric PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON numbers USING neardup (sig);
SELECT near_dup_track('numbers', 'sig');
INSERT INTO numbers VALUES (1.0, minhash('equal')), (2.0, minhash('equal'));
SELECT rows, created FROM near_dup_refresh('numbers_clusters');
UPDATE numbers SET id = 1.00 WHERE id = 1;
SELECT * FROM near_dup_refresh('numbers_clusters');
TABLE numbers_clusters;
DELETE FROM numbers WHERE id = 1;
SELECT * FROM near_dup_refresh('numbers_clusters');
TABLE numbers_clusters;
DROP TABLE numbers, numbers_clusters;
SELECT count(*) FROM near_dup_tracked;
-- A row that moved before its canonical row while triggers were disabled: everything is recomputed.
CREATE TABLE unseen (id int PRIMARY KEY, place int, sig minhash_signature);
CREATE INDEX ON unseen USING neardup (sig);
INSERT INTO unseen SELECT i, i, minhash('one text of several words, which is there more than once') FROM generate_series(5, 7) i;
SELECT near_dup_track('unseen', 'sig', keep => 'place');
ALTER TABLE unseen DISABLE TRIGGER USER;
UPDATE unseen SET place = 1 WHERE id = 6;
SELECT format('ALTER TABLE unseen ENABLE ALWAYS TRIGGER %I', tgname) FROM pg_trigger WHERE tgrelid = 'unseen'::regclass AND NOT tgisinternal ORDER BY tgname \gexec
INSERT INTO unseen SELECT 3, 3, sig FROM unseen WHERE id = 5;
SELECT near_dup_refresh('unseen_clusters');
SELECT * FROM unseen_clusters ORDER BY key;
DROP TABLE unseen;
-- A tracker whose tables were vacuumed while they were empty is filled without a scan for every row.
CREATE TABLE filled (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON filled USING neardup (sig);
SELECT near_dup_track('filled', 'sig');
VACUUM filled_clusters, filled_clusters_canonical;
INSERT INTO filled SELECT i, minhash('filled ' || i) FROM generate_series(1, 2000) i;
BEGIN;
SELECT rows FROM near_dup_refresh('filled_clusters');
SELECT pg_stat_get_xact_numscans('filled_clusters_canonical'::regclass) < 10 AS few_scans;
COMMIT;
DROP TABLE filled, filled_clusters;
-- The order may read a type without equality, but nothing else may.
CREATE TABLE papers (id int PRIMARY KEY, j json, w path, p point, sig minhash_signature);
CREATE INDEX ON papers USING neardup (sig);
INSERT INTO papers SELECT i, json_build_object('x', -i), path '((0,0),(1,1))', point(i, i), minhash('a few words') FROM generate_series(1, 3) i;
SELECT near_dup_track('papers', 'w');
SELECT near_dup_track('papers', 'sig', scope => '{w}');
SELECT near_dup_track('papers', 'sig', scope => '{p}');
SELECT near_dup_track('papers', 'sig', keep => 'j');
SELECT near_dup_track('papers', 'sig', keep => '(j->>''x'')::int');
UPDATE papers SET j = '{"x": -9}' WHERE id = 1;
SELECT new_canonical FROM near_dup_refresh('papers_clusters');
TABLE papers_clusters;
DROP TABLE papers, papers_clusters;
-- A tracker follows columns that are renamed.
CREATE TABLE volumes (shelf text, number int, published date, body text, sig minhash_signature, PRIMARY KEY (shelf, number));
CREATE INDEX ON volumes USING neardup (shelf scope_ops, sig minhash_ops (threshold = 0.7));
INSERT INTO volumes SELECT 's' || i % 2, i, '2024-01-01'::date + i, 'words ' || i / 4, minhash('words ' || i / 4, 1) FROM generate_series(1, 20) i;
SELECT near_dup_track('volumes', 'sig', 0.7, 'length(body) DESC NULLS LAST', scope => '{shelf}', key => 'number', condition => 'published IS NOT NULL');
ALTER TABLE volumes RENAME shelf TO room;
ALTER TABLE volumes RENAME number TO "The number";
ALTER TABLE volumes RENAME published TO appeared;
ALTER TABLE volumes RENAME body TO content;
ALTER TABLE volumes RENAME sig TO signature;
SELECT column_name, keep, scope, key, condition, behind FROM near_dup_tracked WHERE relation = 'volumes'::regclass;
INSERT INTO volumes VALUES ('s1', 30, '2025-01-01', 'words 1', minhash('words 1', 1));
UPDATE volumes SET room = 's0' WHERE "The number" = 5;
DELETE FROM volumes WHERE "The number" = 19;
SELECT behind FROM near_dup_tracked WHERE relation = 'volumes'::regclass;
SELECT * FROM near_dup_refresh('volumes_clusters');
CREATE TABLE repaired AS SELECT key::text, canonical::text, similarity FROM volumes_clusters;
SELECT rows FROM near_dup_refresh('volumes_clusters', rebuild => true);
SELECT key::text, canonical::text, similarity FROM volumes_clusters EXCEPT TABLE repaired;
-- A column that it reads cannot be dropped; with CASCADE, the tracker is dropped, and writes continue.
ALTER TABLE volumes DROP COLUMN content;
ALTER TABLE volumes DROP COLUMN signature;
ALTER TABLE volumes DROP COLUMN content CASCADE;
INSERT INTO volumes VALUES ('s1', 31, '2025-01-01', minhash('words 1', 1));
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'volumes'::regclass AND NOT tgisinternal;
SELECT near_dup_refresh('volumes_clusters');
-- It can be created again when its remains have been removed.
SELECT near_dup_track('volumes', 'signature', 0.7, scope => '{room}', key => 'The number');
DROP TABLE volumes_clusters;
SELECT near_dup_track('volumes', 'signature', 0.7, scope => '{room}', key => 'The number');
SELECT near_dup_untrack('volumes_clusters');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'volumes'::regclass AND NOT tgisinternal;
SELECT near_dup_track('volumes', 'signature', 0.7, scope => '{room}', key => 'The number');
DROP TABLE volumes_clusters;
SELECT to_regclass('volumes_clusters_log') AS log;
SELECT near_dup_track('volumes', 'signature', 0.7, scope => '{room}', key => 'The number');
DROP TABLE volumes, volumes_clusters, repaired;
-- As replication applies changes, and if all tables are published.
CREATE TABLE live (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON live USING neardup (sig);
SELECT near_dup_track('live', 'sig');
SET session_replication_role = replica;
INSERT INTO live VALUES (6, minhash('replicated'));
RESET session_replication_role;
SELECT rows, created FROM near_dup_refresh('live_clusters');
SET client_min_messages = error;
CREATE PUBLICATION everything FOR ALL TABLES;
DELETE FROM live WHERE id = 6;
SELECT rows, "left" FROM near_dup_refresh('live_clusters');
DROP PUBLICATION everything;
DROP TABLE live, live_clusters;
-- Long names are shortened.
CREATE TABLE a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name USING neardup (sig);
SELECT near_dup_track('a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name', 'sig', clusters => 'also_a_name_of_more_bytes_than_a_suffix_leaves_to_names_of_ours');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name'::regclass ORDER BY tgname;
DROP TABLE a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name, also_a_name_of_more_bytes_than_a_suffix_leaves_to_names_of_ours CASCADE;
-- Rows that do not satisfy the condition are treated as if they did not exist.
CREATE TABLE pages (id int PRIMARY KEY, body text, deleted_at date);
CREATE INDEX ON pages USING neardup (body);
INSERT INTO pages SELECT i, 'one page of several words, which says it ' || i / 3, CASE WHEN i % 3 = 0 THEN date '2024-01-01' END FROM generate_series(1, 9) i;
SELECT near_dup_track('pages', 'body', condition => 'deleted_at < now()');
SELECT near_dup_track('pages', 'body', condition => 'true) ORDER BY (id');
SELECT near_dup_track('pages', 'body', condition => 'EXISTS (SELECT)');
SELECT near_dup_track('pages', 'body', condition => 'pages IS NOT NULL');
SELECT near_dup_track('pages', 'body', condition => 'id');
SELECT near_dup_track('pages', 'body', condition => 'deleted_at IS NULL');
SELECT condition FROM near_dup_tracked;
SELECT key, canonical FROM pages_clusters ORDER BY key;
UPDATE pages SET deleted_at = NULL WHERE id = 3;
UPDATE pages SET deleted_at = '2024-02-02' WHERE id = 7;
UPDATE pages SET body = 'not read' WHERE id = 9;
SELECT * FROM near_dup_refresh('pages_clusters');
SELECT key, canonical FROM pages_clusters ORDER BY key;
DELETE FROM pages WHERE id IN (4, 6);
SELECT * FROM near_dup_refresh('pages_clusters');
CREATE TABLE repaired AS SELECT key, canonical, similarity FROM pages_clusters;
SELECT rows FROM near_dup_refresh('pages_clusters', true);
SELECT key, canonical, similarity FROM pages_clusters EXCEPT TABLE repaired;
ALTER TABLE pages RENAME deleted_at TO gone_at;
ALTER TABLE pages DROP gone_at;
SELECT condition FROM near_dup_tracked;
DROP TABLE pages, pages_clusters, repaired;
-- Pairs that are not duplicates, in either order, including identical ones.
CREATE TABLE letters (id int PRIMARY KEY, body text);
CREATE INDEX ON letters USING neardup (body);
INSERT INTO letters SELECT i, 'the same letter of some words to everybody' FROM generate_series(1, 5) i;
CREATE TABLE letters_distinct (a int, b int, decided_by text DEFAULT 'me');
INSERT INTO letters_distinct VALUES (2, 1), (7, 8), (NULL, 1);
SELECT near_dup_track('letters', 'body', exceptions => 'letters');
SELECT near_dup_track('letters', 'body', exceptions => 'pages_nowhere');
CREATE TABLE wrong (a bigint, b int);
SELECT near_dup_track('letters', 'body', exceptions => 'wrong');
DROP TABLE wrong;
SELECT near_dup_track('letters', 'body', exceptions => 'letters_distinct');
SELECT key, canonical, similarity FROM letters_clusters ORDER BY key;
SELECT exceptions, behind FROM near_dup_tracked;
INSERT INTO letters_distinct VALUES (3, 1), (3, 2);
SELECT behind FROM near_dup_tracked;
SELECT * FROM near_dup_refresh('letters_clusters');
SELECT key, canonical, similarity FROM letters_clusters ORDER BY key;
SELECT rows FROM near_dup_refresh('letters_clusters', true);
SELECT key, cluster, canonical, similarity FROM letters_clusters ORDER BY key;
DELETE FROM letters_distinct WHERE a = 2;
UPDATE letters_distinct SET b = 5 WHERE (a, b) = (3, 1);
SELECT * FROM near_dup_refresh('letters_clusters');
SELECT key, canonical FROM letters_clusters ORDER BY key;
-- Two rows can meet through a third.
INSERT INTO letters_distinct VALUES (4, 5);
SELECT * FROM near_dup_refresh('letters_clusters');
SELECT key, canonical FROM letters_clusters ORDER BY key;
TRUNCATE letters_distinct;
SELECT behind FROM near_dup_tracked;
SELECT count(DISTINCT canonical) FROM letters_clusters, near_dup_refresh('letters_clusters');
SELECT count(DISTINCT canonical) FROM letters_clusters;
\set VERBOSITY terse
ALTER TABLE letters_distinct ALTER b TYPE bigint;
\set VERBOSITY default
ALTER TABLE letters_distinct DROP b;
DROP TABLE letters_distinct;
DROP TABLE letters_distinct CASCADE;
INSERT INTO letters VALUES (6, 'the same letter of some words to everybody');
SELECT near_dup_refresh('letters_clusters');
DROP TABLE letters, letters_clusters;

-- An index on the rows that satisfy the condition can be used, and is used.
CREATE TABLE memos (id int PRIMARY KEY, body text, kind text, gone bool NOT NULL DEFAULT false);
INSERT INTO memos SELECT i, 'a memo of several words about thing ' || i / 3, 'x', i % 4 = 0 FROM generate_series(1, 12) i;
CREATE INDEX memos_there ON memos USING neardup (body) WHERE NOT gone;
SELECT near_dup_track('memos', 'body');
SELECT near_dup_track('memos', 'body', condition => 'kind = ''x''');
SELECT near_dup_track('memos', 'body', condition => 'gone');
SELECT near_dup_track('memos', 'body', condition => 'NOT gone AND id > 1', clusters => 'late_memos');
SELECT near_dup_track('memos', 'body', condition => 'NOT gone');
UPDATE memos SET gone = NOT gone WHERE id IN (4, 5);
INSERT INTO memos VALUES (13, 'a memo of several words about thing 1', 'y', false), (14, 'a memo of several words about thing 1', 'y', true);
UPDATE memos SET kind = 'z';
UPDATE memos SET id = 20 WHERE id = 1;
BEGIN;
SELECT rows FROM near_dup_refresh('memos_clusters');
SELECT pg_stat_get_xact_numscans('memos_there'::regclass) > 0 AS is_used;
COMMIT;
SELECT rows FROM near_dup_refresh('late_memos');
SELECT c.clusters, (SELECT count(*) FROM (
    SELECT key, canonical FROM near_dup_clusters(NULL::int, format('SELECT id, body FROM memos WHERE %s ORDER BY id', c.condition), 0.8) n (key, canonical)
    EXCEPT SELECT key, canonical FROM (SELECT key, canonical, 'memos_clusters' AS kept FROM memos_clusters
        UNION ALL SELECT key, canonical, 'late_memos' FROM late_memos) k WHERE k.kept = c.clusters) d) AS differences
FROM (VALUES ('memos_clusters', 'NOT gone'), ('late_memos', 'NOT gone AND id > 1')) c (clusters, condition);
SELECT (SELECT count(*) FROM memos_clusters) AS kept, (SELECT count(*) FROM late_memos) AS late, count(*) AS there FROM memos WHERE NOT gone;
DROP TABLE memos, memos_clusters, late_memos;

-- A trigger on the log or the clusters cannot refresh the same clusters, but others.
CREATE TABLE notes (id int PRIMARY KEY, body text);
CREATE INDEX ON notes USING neardup (body);
CREATE TABLE others AS TABLE notes;
ALTER TABLE others ADD PRIMARY KEY (id);
CREATE INDEX ON others USING neardup (body);
SELECT near_dup_track('notes', 'body');
SELECT near_dup_track('others', 'body');
CREATE FUNCTION remove_and_refresh() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM public.notes WHERE id = NEW.key;
    PERFORM public.near_dup_refresh(TG_ARGV[0]::regclass);
    RETURN NULL;
END $$;
CREATE TRIGGER refresh AFTER INSERT ON notes_clusters_log FOR EACH ROW WHEN (NEW.event = 'joined')
    EXECUTE FUNCTION remove_and_refresh('public.notes_clusters');
INSERT INTO notes VALUES (1, 'the same letter of some words to everybody');
SELECT rows FROM near_dup_refresh('notes_clusters');
INSERT INTO notes VALUES (2, 'the same letter of some words to everybody');
\set SHOW_CONTEXT never
SELECT rows FROM near_dup_refresh('notes_clusters');
\set SHOW_CONTEXT errors
DROP TRIGGER refresh ON notes_clusters_log;
CREATE TRIGGER refresh AFTER INSERT ON notes_clusters FOR EACH ROW WHEN (NEW.key = 2)
    EXECUTE FUNCTION remove_and_refresh('public.others_clusters');
SELECT rows FROM near_dup_refresh('notes_clusters');
SELECT rows FROM near_dup_refresh('notes_clusters');
SELECT key, canonical FROM notes_clusters;
DROP TABLE notes, notes_clusters, others, others_clusters;

-- The equality of keys may be outside pg_catalog.
CREATE EXTENSION ltree;
CREATE TABLE leaves (path ltree PRIMARY KEY, body text);
CREATE INDEX ON leaves USING neardup (body);
INSERT INTO leaves VALUES ('a.b', 'the same letter of some words to everybody');
SELECT near_dup_track('leaves', 'body');
INSERT INTO leaves VALUES ('a.c', 'the same letter of some words to everybody');
SELECT rows, joined FROM near_dup_refresh('leaves_clusters');
DROP TABLE leaves, leaves_clusters;
DROP EXTENSION ltree;
