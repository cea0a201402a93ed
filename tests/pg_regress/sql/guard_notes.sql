-- Near-duplicates are accepted and noted.
CREATE TABLE docs (id int PRIMARY KEY, tenant int, body text, seen int DEFAULT 0);

-- Requirements: an index, a primary key, valid arguments.
SELECT near_dup_protect('docs', 'body', 0.5, action => 'note');
SELECT to_regclass('docs_near_dups');
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.5, action => 'delete');
SELECT near_dup_protect('docs', 'body', 0.5, notes => 'docs_near_dups');
SELECT near_dup_protect('docs', 'body', 0.5, action => 'note', most => 0);
SELECT near_dup_protect('docs', 'body', 0.5, action => NULL);
CREATE TABLE keyless (body text);
CREATE INDEX ON keyless USING neardup (body);
SELECT near_dup_protect('keyless', 'body', 0.5, action => 'note');
ALTER TABLE keyless ADD id int PRIMARY KEY DEFERRABLE;
SELECT near_dup_protect('keyless', 'body', 0.5, action => 'note');
CREATE TABLE taken (key int);
SELECT near_dup_protect('docs', 'body', 0.5, action => 'note', notes => 'taken');
CREATE TRIGGER guard AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('body', '0.5', 'most=10');
INSERT INTO docs VALUES (1, 1, 'never there');
DROP TRIGGER guard ON docs;

-- A row that existed before counts.
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');
SELECT near_dup_protect('docs', 'body', 0.5, action => 'note', most => 2);
\d docs_near_dups
SELECT obj_description('docs_near_dups'::regclass);
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'docs'::regclass ORDER BY tgname;
CREATE VIEW noted AS SELECT key, near_key, round(similarity::numeric, 2) AS similarity FROM docs_near_dups ORDER BY key, similarity DESC, near_key;
INSERT INTO docs VALUES (2, 1, 'One, two, three, four, five, six, seven, eight, nine, ten, eleven!');
INSERT INTO docs VALUES (3, 1, 'one two three four five six seven eight nine ten eleven twelve');
-- Only the two most similar ones, and a SELECT in the same transaction sees them.
BEGIN;
INSERT INTO docs VALUES (4, 1, 'one two three four five six seven eight nine ten eleven twelve');
SELECT * FROM noted;
ROLLBACK;
SELECT * FROM noted;

-- The rows of one statement in their order, also with COPY.
COPY docs (id, tenant, body) FROM stdin;
6	1	alpha beta gamma delta epsilon
5	1	alpha beta gamma delta epsilon zeta
7	1	of its own
\.
SELECT * FROM noted WHERE key > 4;
SELECT noted_at BETWEEN now() - interval '1 hour' AND clock_timestamp() AS now, count(*) FROM docs_near_dups GROUP BY 1;

-- A change that nothing depends on keeps the notes; a deletion, or a change of the text or the key, removes those that name the row.
UPDATE docs SET seen = seen + 1;
SELECT * FROM noted;
UPDATE docs SET body = body || ' and twelve' WHERE id = 1;
SELECT * FROM noted;
UPDATE docs SET id = 20 WHERE id = 2;
SELECT * FROM noted;
DELETE FROM docs WHERE id IN (3, 6);
SELECT * FROM noted;
UPDATE docs SET body = NULL WHERE id = 20;
SELECT * FROM noted;
BEGIN;
SAVEPOINT s;
DELETE FROM docs WHERE id = 5;
INSERT INTO docs VALUES (8, 1, 'of its own'), (9, 1, 'of its own');
SELECT * FROM noted;
ROLLBACK TO s;
INSERT INTO docs VALUES (8, 1, 'of its own') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (8, 1, 'alpha beta gamma delta epsilon zeta') ON CONFLICT (id) DO UPDATE SET body = excluded.body;
SELECT * FROM noted;
COMMIT;
-- An exchange of texts: both rows have changed.
UPDATE docs SET body = other.body FROM docs AS other WHERE docs.id + other.id = 15 AND docs.id <> other.id;
SELECT * FROM noted;

-- Together with a guard that rejects.
SELECT near_dup_protect('docs', 'body', 0.9, trigger_name => 'rejecting');
INSERT INTO docs VALUES (30, 1, 'of its own');
DROP TRIGGER rejecting ON docs;

-- The user's triggers that write into the table themselves.
CREATE FUNCTION copies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seen = 1 THEN
        INSERT INTO docs VALUES (NEW.id + 1, 1, NEW.body, 2);
        UPDATE docs SET seen = 3 WHERE id = NEW.id;
    ELSIF NEW.seen = 4 THEN
        UPDATE docs SET seen = 5, body = body || ' changed' WHERE id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER a_copy AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION copies();
INSERT INTO docs VALUES (40, 1, 'to be copied when it is there', 1);
INSERT INTO docs VALUES (50, 1, 'to be changed when it is there', 4);
INSERT INTO docs VALUES (51, 1, 'to be changed when it is there changed', 0);
SELECT * FROM noted WHERE key >= 40;
DROP TRIGGER a_copy ON docs;

-- Names may change; a table of notes that is needed cannot be dropped alone.
ALTER TABLE docs_near_dups RENAME TO copies;
ALTER TABLE docs RENAME body TO content;
INSERT INTO docs VALUES (60, 1, 'to be copied when it is there');
DELETE FROM docs WHERE id = 41;
SELECT * FROM noted WHERE key >= 40;
DROP TABLE copies;
TRUNCATE docs;
SELECT count(*) FROM copies;
DROP TRIGGER docs_guard ON docs;
DELETE FROM docs;
TRUNCATE docs;
SELECT tgname FROM pg_trigger WHERE tgrelid = 'docs'::regclass ORDER BY tgname;
SELECT near_dup_unprotect('docs', 'docs_guard');
SELECT near_dup_unprotect('docs');
SELECT near_dup_unprotect('docs');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'docs'::regclass;
DROP TABLE docs, keyless, taken;
SELECT count(*) FROM copies;
DROP TABLE copies CASCADE;

-- Signatures, sets and bits; a key in addition to a primary key of several columns, partitions, scopes, a window.
CREATE TABLE parted (id text, part int, tenant int, at date, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED,
    hashes bigint[] GENERATED ALWAYS AS (shingle_hashes(body)) STORED,
    bits bit(8), PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE INDEX ON parted USING neardup (sig);
CREATE INDEX ON parted USING neardup (hashes);
CREATE INDEX ON parted USING neardup (bits hamming_ops (distance = 2));
SELECT near_dup_protect('parted', 'sig', 0.8, action => 'note');
SELECT near_dup_protect('parted', 'sig', 0.8, scope => '{tenant}', trigger_name => 'by_sig', action => 'note', notes => 'by_sig', key => 'id');
SELECT near_dup_protect('parted', 'hashes', 0.8, within => 'at', by => '1 day', trigger_name => 'by_set', action => 'note', notes => 'by_set', key => 'id');
SELECT near_dup_protect('parted', 'bits', 2, trigger_name => 'by_bits', action => 'note', notes => 'by_bits', key => 'id');
INSERT INTO parted (id, part, tenant, at, body, bits) VALUES
    ('a', 1, 1, '2026-01-01', 'one and the same text', B'00000000'),
    ('b, "b"', 2, 1, '2026-01-02', 'one and the same text', B'00000011'),
    ('c, "c"', 1, 2, '2026-01-09', 'one and the same text', B'00001111');
\d by_sig
SELECT key, near_key, similarity FROM by_sig ORDER BY key, near_key;
SELECT key, near_key, similarity FROM by_set ORDER BY key, near_key;
SELECT key, near_key, similarity FROM by_bits ORDER BY key, near_key;
UPDATE parted SET part = 3 - part WHERE id = 'a';
SELECT key, near_key, similarity FROM by_sig ORDER BY key, near_key;
DELETE FROM parted WHERE id = 'a';
SELECT key, near_key, similarity FROM by_bits ORDER BY key, near_key;
-- Two similar rows with the same key, and one without a key.
INSERT INTO parted (id, part, tenant, body) VALUES ('b, "b"', 1, 1, 'one and the same text');
ALTER TABLE parted DROP CONSTRAINT parted_pkey;
ALTER TABLE parted ALTER id DROP NOT NULL;
INSERT INTO parted (id, part, tenant, body) VALUES (NULL, 1, 1, 'one and the same text');
INSERT INTO parted (id, part, tenant, body) VALUES (NULL, 1, 1, 'near nothing at all');
DELETE FROM parted WHERE id IS NULL;
TRUNCATE parted_1;
DROP TABLE parted, by_sig, by_set, by_bits;

-- The key is a column, whatever happens to the primary key, and is followed when it is renamed.
CREATE TABLE docs (id int PRIMARY KEY, other int NOT NULL, body text);
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.8, action => 'note');
INSERT INTO docs VALUES (1, 11, 'a b c d e'), (2, 12, 'a b c d e'), (11, 13, 'of its own');
ALTER TABLE docs DROP CONSTRAINT docs_pkey, ADD PRIMARY KEY (other);
UPDATE docs SET body = 'none of these' WHERE other = 13;
DELETE FROM docs WHERE id = 11;
ALTER TABLE docs RENAME id TO number;
INSERT INTO docs VALUES (3, 14, 'a b c d e');
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
\set VERBOSITY terse
ALTER TABLE docs ALTER number TYPE bigint;
\set VERBOSITY default
ALTER TABLE docs DROP number;
DELETE FROM docs WHERE number = 1;
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
DROP TABLE docs, docs_near_dups;

-- A statement that touches two similar rows and changes one.
CREATE TABLE docs (id int PRIMARY KEY, body text);
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.8, action => 'note');
INSERT INTO docs VALUES (1, 'a b c d e'), (2, 'a b c d e');
UPDATE docs SET body = CASE id WHEN 1 THEN 'A b c d e' ELSE body END;
SELECT key, near_key FROM docs_near_dups;
MERGE INTO docs USING generate_series(1, 2) AS new (id) ON docs.id = new.id
WHEN MATCHED THEN UPDATE SET body = CASE docs.id WHEN 2 THEN 'A B c d e' ELSE body END;
SELECT key, near_key FROM docs_near_dups;
INSERT INTO docs VALUES (1, NULL), (2, 'A B C d e') ON CONFLICT (id) DO UPDATE SET body = coalesce(excluded.body, docs.body);
SELECT key, near_key FROM docs_near_dups;
-- A trigger that changes the row again.
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE docs SET body = 'a b c d e' WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER a_change AFTER UPDATE OF body ON docs FOR EACH ROW WHEN (NEW.body = 'again') EXECUTE FUNCTION again();
UPDATE docs SET body = 'again' WHERE id = 1;
SELECT key, near_key FROM docs_near_dups;
DROP TABLE docs, docs_near_dups;

-- Keys of an array type; an UPDATE to the same long text changes nothing; notes that a policy hides from their owner.
CREATE TABLE docs (id int[] PRIMARY KEY, body text);
ALTER TABLE docs ALTER body SET STORAGE external;
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.8, action => 'note');
INSERT INTO docs SELECT ARRAY[n, n], string_agg('word' || w, ' ' ORDER BY w) FROM generate_series(1, 3) n, generate_series(1, 1000) w GROUP BY n ORDER BY n;
UPDATE docs SET body = body || '' WHERE id = '{1,1}';
SELECT key, near_key FROM docs_near_dups ORDER BY key, near_key;
DELETE FROM docs WHERE id = '{2,2}';
SELECT key, near_key FROM docs_near_dups;
CREATE ROLE notes_owner;
ALTER TABLE docs OWNER TO notes_owner;
ALTER TABLE docs_near_dups OWNER TO notes_owner;
ALTER TABLE docs_near_dups ENABLE ROW LEVEL SECURITY;
ALTER TABLE docs_near_dups FORCE ROW LEVEL SECURITY;
DELETE FROM docs WHERE id = '{1,1}';
DROP TABLE docs, docs_near_dups;
DROP ROLE notes_owner;

-- A role that may write the table needs no privileges on the notes; the owner of one table cannot write into notes of another's.
CREATE ROLE notes_writer;
CREATE ROLE notes_owner;
CREATE TABLE docs (id int PRIMARY KEY, body text);
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.8, action => 'note');
GRANT INSERT, UPDATE, DELETE, TRUNCATE, SELECT, TRIGGER ON docs TO notes_writer;
SET ROLE notes_writer;
INSERT INTO docs VALUES (1, 'a b c d e'), (2, 'a b c d e'), (3, 'a b c d e');
DELETE FROM docs WHERE id = 1;
SELECT near_dup_protect('docs', 'body', 0.8, trigger_name => 'other', action => 'note', notes => 'other');
SELECT * FROM docs_near_dups;
RESET ROLE;
SELECT key, near_key FROM docs_near_dups;
ALTER TABLE docs OWNER TO notes_owner;
INSERT INTO docs VALUES (4, 'a b c d e');
DROP TABLE docs, docs_near_dups;
DROP ROLE notes_writer, notes_owner;

-- Notes and exceptions belong to the table on which the trigger was created, not to its partitions.
CREATE ROLE notes_owner;
CREATE TABLE parts (id int PRIMARY KEY, body text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (id);
CREATE UNLOGGED TABLE parts_3 PARTITION OF parts_2 FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parts USING neardup (body);
CREATE TABLE distinct_parts (a int, b int);
SELECT near_dup_protect('parts', 'body', 0.8, action => 'note', exceptions => 'distinct_parts');
ALTER TABLE parts_1 OWNER TO notes_owner;
ALTER TABLE parts_2 OWNER TO notes_owner;
INSERT INTO parts VALUES (11, 'a b c d e'), (1, 'a b c d e'), (2, 'a b c d e');
SELECT key, near_key FROM parts_near_dups ORDER BY key, near_key;
UPDATE parts SET body = 'f g h i' WHERE id = 11;
DELETE FROM parts WHERE id = 1;
INSERT INTO distinct_parts VALUES (2, 3);
INSERT INTO parts VALUES (3, 'a b c d e');
SELECT key, near_key FROM parts_near_dups ORDER BY key, near_key;
TRUNCATE parts;
DROP TABLE parts, parts_near_dups, distinct_parts;
DROP ROLE notes_owner;
