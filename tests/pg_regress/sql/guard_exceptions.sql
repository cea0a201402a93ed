-- Pairs that are declared not to be near-duplicates.
CREATE TABLE docs (id int PRIMARY KEY, body text);
CREATE INDEX ON docs USING neardup (body);
CREATE TABLE docs_distinct (a int, b int, decided_by text DEFAULT current_user, PRIMARY KEY (a, b));
SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'docs_distinct');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'docs_guard';
INSERT INTO docs VALUES (1, 'one and the same text');
INSERT INTO docs VALUES (2, 'one and the same text');
-- The key is drawn first; the exception and the row are inserted in one transaction.
BEGIN;
INSERT INTO docs_distinct VALUES (2, 1);
INSERT INTO docs VALUES (2, 'one and the same text');
COMMIT;
INSERT INTO docs VALUES (3, 'one and the same text');
INSERT INTO docs_distinct VALUES (1, 3), (3, 2), (7, 8);
INSERT INTO docs VALUES (3, 'one and the same text'), (4, 'another text of four');
UPDATE docs SET body = 'one and the same text' WHERE id = 4;
UPDATE docs SET id = 5 WHERE id = 3;
DELETE FROM docs_distinct WHERE b = 3;
UPDATE docs SET body = body || '!' WHERE id = 3;
UPDATE docs SET body = 'a text that is no copy' WHERE id = 3;
UPDATE docs SET body = 'one and the same text' WHERE id = 3;
INSERT INTO docs_distinct VALUES (1, 3);
UPDATE docs SET body = 'one and the same text' WHERE id = 3;
SELECT * FROM docs ORDER BY id;
-- As of now, whatever the transaction's snapshot is.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM docs;
INSERT INTO docs_distinct VALUES (1, 6), (6, 2), (6, 3);
INSERT INTO docs VALUES (6, 'one and the same text');
ROLLBACK;
SELECT near_dup_unprotect('docs');

-- Notes: an excepted pair has none, and a pair that becomes excepted loses its note.
SELECT near_dup_protect('docs', 'body', 0.8, action => 'note', exceptions => 'docs_distinct');
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'docs_distinct'::regclass AND NOT tgisinternal;
INSERT INTO docs VALUES (10, 'One and the same text');
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
INSERT INTO docs_distinct VALUES (1, 10), (10, 1);
UPDATE docs_distinct SET a = 2, b = 10 WHERE a = 7;
INSERT INTO docs_distinct VALUES (10, 99) ON CONFLICT DO NOTHING;
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
DELETE FROM docs_distinct WHERE a = 10;
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
UPDATE docs SET body = 'one and the Same text' WHERE id = 10;
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
DELETE FROM docs_distinct;
UPDATE docs SET body = 'one and the same Text' WHERE id = 10;
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
-- Names may change.
ALTER TABLE docs_distinct RENAME TO apart;
INSERT INTO apart VALUES (10, 2);
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
-- Tables that cannot be exceptions.
ALTER TABLE apart RENAME a TO c;
UPDATE docs SET body = body || ' changed' WHERE id = 10;
INSERT INTO apart VALUES (1, 1);
ALTER TABLE apart RENAME c TO a;
ALTER TABLE apart ALTER a TYPE bigint;
UPDATE docs SET body = body || ' changed' WHERE id = 10;
SELECT near_dup_unprotect('docs');
SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('docs'::regclass, 'apart'::regclass) AND NOT tgisinternal;
INSERT INTO apart VALUES (2, 2);
CREATE TABLE wrong (a text, b text);
SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'wrong');
CREATE VIEW view AS SELECT 1 AS a, 2 AS b;
SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'view');
CREATE ROLE exceptions_owner;
CREATE TABLE others (a int, b int);
ALTER TABLE others OWNER TO exceptions_owner;
SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'others');
DROP TABLE others;
DROP ROLE exceptions_owner;
-- A writer needs no privileges on exceptions.
CREATE ROLE exceptions_writer;
CREATE TABLE pairs (a int, b int);
GRANT SELECT, INSERT ON docs TO exceptions_writer;
SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'pairs');
INSERT INTO pairs VALUES (20, 1), (20, 2), (3, 20), (20, 10);
SET ROLE exceptions_writer;
INSERT INTO docs VALUES (20, 'one and the same text');
INSERT INTO docs VALUES (21, 'one and the same text');
RESET ROLE;
DROP OWNED BY exceptions_writer;
DROP ROLE exceptions_writer;

-- Guards of two tables share exceptions: each has a trigger there.
CREATE TABLE letters (id int PRIMARY KEY, body text);
CREATE TABLE mails (id int PRIMARY KEY, body text);
CREATE INDEX ON letters USING neardup (body);
CREATE INDEX ON mails USING neardup (body);
SELECT near_dup_protect('letters', 'body', 0.8, trigger_name => 'guard', action => 'note', exceptions => 'pairs');
SELECT near_dup_protect('mails', 'body', 0.8, trigger_name => 'guard', action => 'note', exceptions => 'pairs');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'pairs'::regclass AND NOT tgisinternal ORDER BY tgname;
INSERT INTO letters VALUES (1, 'one and the same text'), (2, 'one and the same text');
INSERT INTO mails SELECT * FROM letters;
INSERT INTO pairs VALUES (1, 2);
SELECT count(*) FROM letters_near_dups;
SELECT count(*) FROM mails_near_dups;
SELECT near_dup_unprotect('letters');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'pairs'::regclass AND NOT tgisinternal ORDER BY tgname;
-- It replaces no trigger of the user.
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER guard_delete AFTER DELETE ON letters FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER other_before AFTER DELETE ON letters FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT near_dup_protect('letters', 'body', 0.8, trigger_name => 'guard', action => 'note', notes => 'noted');
SELECT near_dup_protect('letters', 'body', 0.8, trigger_name => 'other');
-- A table of another owner is no table of notes, even if the notes are not written.
CREATE ROLE exceptions_stranger;
CREATE TABLE forged (id int PRIMARY KEY, body text);
CREATE INDEX ON forged USING neardup (body);
CREATE TABLE forged_distinct (a int, b int);
ALTER TABLE forged OWNER TO exceptions_stranger;
ALTER TABLE forged_distinct OWNER TO exceptions_stranger;
CREATE TRIGGER forging AFTER INSERT ON forged FOR EACH ROW WHEN (ROW('letters_near_dups'::regclass, 'forged_distinct'::regclass) IS NOT NULL AND (ROW(NEW.body, NEW.id) IS NULL OR true)) EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=1', 'exceptions');
INSERT INTO forged VALUES (1, 'a text');
DROP TABLE forged, forged_distinct;
DROP ROLE exceptions_stranger;
