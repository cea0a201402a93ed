-- No near-duplicate is accepted.
CREATE TABLE docs (id int PRIMARY KEY, tenant int, body text, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);

-- It requires an index, when it is created and before a row is accepted.
SELECT near_dup_protect('docs', 'sig', 0.8);
CREATE INDEX docs_sig ON docs USING neardup (sig minhash_ops (threshold = 0.9));
SELECT near_dup_protect('docs', 'sig', 0.8);
CREATE TRIGGER guard AFTER INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8');
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');
DROP TRIGGER guard ON docs;
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING neardup (sig);
SELECT near_dup_protect('docs', 'sig', 0.8, trigger_name => 'guard');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'guard%' ORDER BY tgname;
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');

-- Rejected like by an exclusion constraint.
\set VERBOSITY sqlstate
INSERT INTO docs VALUES (2, 1, 'One, two, three, four, five, six, seven, eight, nine, ten!');
\set VERBOSITY default
INSERT INTO docs VALUES (2, 1, 'One, two, three, four, five, six, seven, eight, nine, ten!');
DO $$
DECLARE c text; t text; s text; d text; k text;
BEGIN
    INSERT INTO docs VALUES (2, 1, 'one two three four five six seven eight nine ten');
EXCEPTION WHEN exclusion_violation THEN
    GET STACKED DIAGNOSTICS c = CONSTRAINT_NAME, t = TABLE_NAME, s = SCHEMA_NAME, d = PG_EXCEPTION_DETAIL, k = COLUMN_NAME;
    RAISE NOTICE '% % % % key %', c, t, s, d, k;
END $$;

-- The message tells the similarity, rounded down.
INSERT INTO docs SELECT 2, 1, string_agg('w' || n, ' ') FROM generate_series(1, 200) n;
INSERT INTO docs SELECT 3, 1, string_agg('w' || n, ' ') || ' more' FROM generate_series(1, 200) n;
SELECT minhash_sim(a.sig, minhash(a.body || ' more')) FROM docs a WHERE id = 2;
DELETE FROM docs WHERE id = 2;

-- Within one statement, and with COPY.
INSERT INTO docs VALUES (2, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (3, 1, 'alpha beta gamma delta epsilon zeta eta theta');
COPY docs (id, tenant, body) FROM stdin;
2	1	alpha beta gamma delta epsilon zeta eta theta
3	1	Alpha Beta Gamma Delta Epsilon Zeta Eta Theta
\.
SELECT count(*) FROM docs;
-- A row that stays is named before one that is rejected with the statement.
INSERT INTO docs VALUES (2, 1, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (3, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (4, 1, 'alpha beta gamma delta epsilon zeta eta theta');
BEGIN;
DELETE FROM docs WHERE id = 2;
INSERT INTO docs VALUES (3, 1, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (4, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (5, 1, 'alpha beta gamma delta epsilon zeta eta theta');
ROLLBACK;
DELETE FROM docs WHERE id = 2;

-- Rows without a document are always accepted.
INSERT INTO docs VALUES (4, 1, NULL), (5, 1, NULL), (6, 1, ''), (7, 1, '...');

-- Upserts, updates of a row that is near only itself, and deleted rows.
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten') ON CONFLICT (id) DO UPDATE SET tenant = 2 RETURNING id, tenant;
UPDATE docs SET body = body || ' eleven' WHERE id = 1;
INSERT INTO docs VALUES (8, 1, 'a text of its own that has nothing to do with others');
UPDATE docs SET body = 'one two three four five six seven eight nine ten eleven' WHERE id = 8;
UPDATE docs SET id = 9 WHERE id = 8;
DELETE FROM docs WHERE id = 9;
INSERT INTO docs VALUES (8, 1, 'a text of its own that has nothing to do with others');
MERGE INTO docs USING (VALUES (8), (9)) AS new (id) ON docs.id = new.id
WHEN MATCHED THEN UPDATE SET tenant = 2
WHEN NOT MATCHED THEN INSERT VALUES (9, 1, 'a text of its own that has nothing to do with others');
BEGIN;
SAVEPOINT s;
INSERT INTO docs VALUES (10, 1, 'first written then rolled back and written again later');
ROLLBACK TO s;
INSERT INTO docs VALUES (11, 1, 'first written then rolled back and written again later');
SAVEPOINT t;
INSERT INTO docs VALUES (12, 1, 'first written then rolled back and written again later');
ROLLBACK TO t;
COMMIT;
-- Rows that exchange their documents, and one that gets the document of a row deleted by the same statement.
INSERT INTO docs VALUES (13, 1, 'the document of the thirteenth row is this one');
UPDATE docs SET body = other.body FROM docs AS other WHERE docs.id + other.id = 24 AND docs.id <> other.id;
WITH gone AS (DELETE FROM docs WHERE id = 13 RETURNING body) INSERT INTO docs SELECT 14, 1, body FROM gone;
SELECT id FROM docs ORDER BY id;

-- Rows that earlier triggers change or delete are checked in their last state.
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.tenant = 101 THEN
        UPDATE docs SET body = 'what the trigger writes is unlike all the other rows', tenant = 1 WHERE id = NEW.id;
    ELSIF NEW.tenant = 102 THEN
        UPDATE docs SET body = 'one two three four five six seven eight nine ten eleven', tenant = 1 WHERE id = NEW.id;
    ELSIF NEW.tenant = 103 THEN
        DELETE FROM docs WHERE id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER change AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION change();
INSERT INTO docs VALUES (15, 101, 'one two three four five six seven eight nine ten eleven');
INSERT INTO docs VALUES (16, 102, 'a row whose words nobody else has at first');
INSERT INTO docs VALUES (17, 103, 'one two three four five six seven eight nine ten eleven');
SELECT id, body FROM docs WHERE id > 14;
DROP TRIGGER change ON docs;

-- A constraint trigger can be deferred to the end of the transaction.
DROP TRIGGER guard ON docs;
CREATE CONSTRAINT TRIGGER guard AFTER INSERT OR UPDATE ON docs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8');
BEGIN;
INSERT INTO docs VALUES (18, 1, 'one two three four five six seven eight nine ten eleven');
DELETE FROM docs WHERE id = 1;
COMMIT;
BEGIN;
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten eleven');
COMMIT;
BEGIN;
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten eleven');
UPDATE docs SET body = 'no longer what it was at the time of its insertion' WHERE id = 1;
UPDATE docs SET id = 19 WHERE id = 1;
COMMIT;
-- Whatever changed it last, the row that stays is checked.
DROP TRIGGER guard ON docs;
CREATE CONSTRAINT TRIGGER guard AFTER INSERT OR UPDATE OF tenant ON docs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8');
BEGIN;
INSERT INTO docs VALUES (20, 1, 'one two three four five six seven eight nine ten eleven');
UPDATE docs SET id = 21 WHERE id = 20;
COMMIT;
DROP TRIGGER guard ON docs;

-- A table with duplicates stays editable: only rows that a row was not near before count.
CREATE TABLE legacy (id int PRIMARY KEY, tenant int, body text, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
INSERT INTO legacy VALUES (1, 1, 'one two three four five six seven eight nine ten'), (2, 1, 'one two three four five six seven eight nine ten'),
    (3, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (4, 2, 'one two three four five six seven eight nine ten');
CREATE INDEX legacy_sig ON legacy USING neardup (sig);
SELECT near_dup_protect('legacy', 'sig', 0.8, scope => '{tenant}');
UPDATE legacy SET id = 10 WHERE id = 1;
UPDATE legacy SET body = body || ' eleven' WHERE id = 10;
UPDATE legacy SET body = body || ' twelve thirteen';
UPDATE legacy SET tenant = 3 WHERE tenant = 1;
UPDATE legacy SET body = 'one two three four five six seven eight nine ten twelve thirteen' WHERE id = 3;
UPDATE legacy SET tenant = 3 WHERE id = 4;
UPDATE legacy SET body = 'a text of its own that has nothing to do with others' WHERE id = 2;
UPDATE legacy SET body = 'one two three four five six seven eight nine ten eleven twelve thirteen' WHERE id = 2;
SELECT id, tenant, body FROM legacy ORDER BY id;

-- An UPDATE may keep a near pair, but never create one.
CREATE TABLE pairs (id int PRIMARY KEY, body text);
INSERT INTO pairs VALUES (1, 'one two three four five six seven eight'), (2, 'one two three four five six seven eight'), (3, 'another text');
CREATE INDEX ON pairs USING neardup (body);
SELECT near_dup_protect('pairs', 'body', 0.8);
UPDATE pairs SET body = body || ' nine';
UPDATE pairs SET body = 'a b c d e f' WHERE id < 3;
UPDATE pairs SET body = 'g h i j k l' WHERE id = 1;
UPDATE pairs SET body = 'g h i j k l' WHERE id = 2;
UPDATE pairs SET body = 'g h i j k l' WHERE id > 1;
UPDATE pairs SET body = CASE id WHEN 1 THEN 'm n o p q r' ELSE 'g h i j k l' END WHERE id < 3;
SELECT * FROM pairs ORDER BY id;

-- scope: near-duplicates of other tenants do not count.
CREATE TRIGGER guard AFTER INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'scope=tenant');
INSERT INTO docs VALUES (30, 2, 'alpha beta gamma delta epsilon zeta eta theta'), (34, 1, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (31, 2, 'alpha beta gamma delta epsilon zeta eta theta');
UPDATE docs SET tenant = 1 WHERE id = 30;
INSERT INTO docs VALUES (32, NULL, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (33, NULL, 'alpha beta gamma delta epsilon zeta eta theta');

-- An index within the scope contains only its rows, but NULLs are equal here, too.
CREATE TABLE tenants (id int PRIMARY KEY, tenant text COLLATE "C", kind int, sig minhash_signature);
CREATE INDEX tenants_kind ON tenants USING neardup (kind, sig);
SELECT near_dup_protect('tenants', 'sig', 0.8, scope => '{tenant}');
CREATE INDEX tenants_other ON tenants USING neardup (tenant COLLATE "POSIX" scope_ops, sig);
SELECT near_dup_protect('tenants', 'sig', 0.8, scope => '{tenant}');
CREATE INDEX tenants_sig ON tenants USING neardup (tenant scope_ops, kind, sig);
SELECT near_dup_protect('tenants', 'sig', 0.8, scope => '{kind,tenant}');
INSERT INTO tenants VALUES (1, 'a', 1, minhash('x y z')), (2, 'a', 2, minhash('x y z')), (3, 'b', 1, minhash('x y z'));
INSERT INTO tenants VALUES (4, 'a', 2, minhash('x y z'));
UPDATE tenants SET tenant = 'a' WHERE id = 3;
INSERT INTO tenants VALUES (4, 'a', NULL, minhash('x y z')), (5, NULL, NULL, minhash('x y z'));
INSERT INTO tenants VALUES (6, 'a', NULL, minhash('x y z'));
INSERT INTO tenants VALUES (6, NULL, NULL, minhash('x y z'));

-- Documents, by their resemblance: cut as in the condition, with an index that cuts them in the same way.
CREATE TABLE padded (id int PRIMARY KEY, body char(20));
SELECT near_dup_protect('padded', 'body', 0.8);
DROP TABLE padded;
CREATE TABLE texts (id int PRIMARY KEY, tenant text, body text, short varchar(100));
SELECT near_dup_protect('texts', 'body', 0.8);
CREATE INDEX texts_tenant ON texts USING neardup (body, tenant text_ops);
CREATE INDEX texts_word ON texts USING neardup (body text_ops (k = 2));
SELECT near_dup_protect('texts', 'body', 0.8);
SELECT near_dup_protect('texts', 'body', 0.8, k => 2, trigger_name => 'words');
SELECT near_dup_protect('texts', 'body', 0.8, k => 2, unit => 'char', fold => 'none', trigger_name => 'chars');
CREATE INDEX texts_char ON texts USING neardup (tenant scope_ops, body text_ops (k = 2, unit = "char", fold = "none"));
SELECT near_dup_protect('texts', 'body', 0.8, k => 2, unit => 'char', fold => 'none', scope => '{tenant}', trigger_name => 'chars');
CREATE INDEX ON texts USING neardup (short);
SELECT near_dup_protect('texts', 'short', 0.9);
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'texts'::regclass AND tgname !~ '_before$' ORDER BY tgname;
INSERT INTO texts VALUES (1, 'a', 'a b c d e f g'), (2, 'a', 'f g h i j'), (3, 'a', ''), (4, 'a', ''), (5, 'a', NULL);
INSERT INTO texts VALUES (6, 'b', 'A B C D E F');
DROP TRIGGER words ON texts;
INSERT INTO texts VALUES (6, 'a', 'abcdefghij');
INSERT INTO texts VALUES (7, 'b', 'abcdefghij'), (8, 'a', 'Abcdefghij');
INSERT INTO texts VALUES (9, 'b', 'abcdefghijk');
INSERT INTO texts VALUES (10, 'a', 'one', 'in a few words'), (11, 'a', 'two', 'In A Few Words');
UPDATE texts SET body = 'a b c d e f g h' WHERE id = 2;
UPDATE texts SET body = 'a b c d e f g h' WHERE id = 1;
SELECT near_dup_protect('texts', 'body', 0.8, k => 0);
SELECT near_dup_protect('texts', 'body', 0.8, unit => 'line');

-- Bit strings.
CREATE TABLE images (id int PRIMARY KEY, hash bit(64));
CREATE INDEX ON images USING neardup (hash hamming_ops (distance = 3));
SELECT near_dup_protect('images', 'hash', 2.5);
SELECT near_dup_protect('images', 'hash', 3, k => 2);
SELECT near_dup_protect('images', 'hash', 3);
INSERT INTO images VALUES (1, x'0123456789abcdef');
INSERT INTO images VALUES (2, x'0123456789abcdee');
INSERT INTO images VALUES (2, x'0123456789abcde8');
INSERT INTO images VALUES (3, x'0123456789abcd00');

-- Sets, at any threshold.
CREATE TABLE sets (id int PRIMARY KEY, elements bigint[]);
CREATE INDEX ON sets USING neardup (elements);
SELECT near_dup_protect('sets', 'elements', 0.3);
INSERT INTO sets VALUES (1, '{1,2,3,4,5,6,7}'), (2, '{}'), (3, '{}'), (4, NULL);
INSERT INTO sets VALUES (5, '{5,6,7,8,9,10}');
INSERT INTO sets VALUES (6, '{5,6,7,8,9}');
INSERT INTO sets VALUES (6, '{10,9,9}');

-- Partitions: searched from the root.
CREATE TABLE parts (id int, day int, body text, sig minhash_signature, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 (sig minhash_signature, day int NOT NULL, id int NOT NULL, body text);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parts USING neardup (sig);
SELECT near_dup_protect('parts', 'sig', 0.8);
INSERT INTO parts SELECT 1, 1, 'a b c d e', minhash('a b c d e');
INSERT INTO parts SELECT 2, 11, 'a b c d e', minhash('a b c d e');
INSERT INTO parts_2 (id, day, body, sig) SELECT 3, 12, 'a b c d e', minhash('a b c d e');
UPDATE parts SET day = 15;
SELECT tableoid::regclass, id, day FROM parts;

-- Row-level security: enforced for all, but no hidden key is revealed.
CREATE ROLE guard_reader;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON docs USING (tenant = 7);
GRANT SELECT, INSERT ON docs TO guard_reader;
SET ROLE guard_reader;
INSERT INTO docs VALUES (40, 7, 'some text for tenant seven that is new here');
INSERT INTO docs VALUES (41, 7, 'Some text for tenant seven that is new here');
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON docs FROM guard_reader;
SET ROLE guard_reader;
INSERT INTO docs VALUES (41, 7, 'some text for tenant seven that is new here');
SELECT near_dup_protect('docs', 'sig', 0.8, trigger_name => 'another');
RESET ROLE;
DROP OWNED BY guard_reader;
DROP ROLE guard_reader;

-- Rejected arguments.
CREATE TABLE wrong (id int, sig minhash_signature, "into here" text);
SELECT near_dup_protect('wrong', 'sig', 1.8);
SELECT near_dup_protect('wrong', 'signature', 0.8);
SELECT near_dup_protect('wrong', 'id', 0.8);
SELECT near_dup_protect('wrong', 'sig', 0.8, unit => 'char');
SELECT near_dup_protect('wrong', 'sig', 0.8, scope => '{id,tenant}');
SELECT near_dup_protect('wrong', NULL, 0.8);
-- No other type has values that can be near each other.
CREATE FUNCTION outcome(type oid) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE of_type (value %s)', format_type(type, NULL));
    PERFORM near_dup_protect('of_type', 'value', 1);
    RETURN 'protected';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ': ' || regexp_replace(SQLERRM, 'of type .*', 'of type T');
END $$;
SELECT outcome(oid), CASE WHEN count(*) < 10 THEN string_agg(oid::regtype::text, ', ' ORDER BY oid) ELSE 'all others' END AS types
FROM pg_type
WHERE typtype IN ('b', 'c', 'd', 'e', 'r', 'm') AND typrelid = 0 AND typelem = 0 AND typname !~ '^_' OR oid = 'bigint[]'::regtype
GROUP BY 1 ORDER BY 1;
SELECT near_dup_protect(0, 'sig', 0.8);
CREATE VIEW view AS SELECT * FROM wrong;
SELECT near_dup_protect('view', 'sig', 0.8);
CREATE FUNCTION try(arguments text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE OR REPLACE TRIGGER guard AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard(' || arguments || ')';
    INSERT INTO wrong SELECT 1, minhash('a b c');
END $$;
SELECT try($$'sig'$$);
SELECT try($$'sig', '0.8', 'reject'$$);
SELECT try($$'sig', '0.8', 'sope=id'$$);
SELECT try($$'into here', '0.8', 'k=many'$$);
SELECT try($$'into here', '0.8', 'unit=line'$$);
SELECT try($$'sig', '0.8', 'scope='$$);
DROP TRIGGER IF EXISTS guard ON wrong;
CREATE TRIGGER before_guard BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8');
INSERT INTO wrong VALUES (1);
DROP TRIGGER before_guard ON wrong;
CREATE TRIGGER update_guard BEFORE UPDATE ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard();
INSERT INTO wrong VALUES (1);
UPDATE wrong SET id = 2;
TRUNCATE wrong;
DROP TRIGGER update_guard ON wrong;
CREATE TRIGGER statement_guard AFTER INSERT ON wrong EXECUTE FUNCTION near_dup_guard('sig', '0.8');
INSERT INTO wrong VALUES (1);
DROP TRIGGER statement_guard ON wrong;
CREATE TRIGGER delete_guard AFTER DELETE ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8');
INSERT INTO wrong VALUES (1);
DELETE FROM wrong;

-- Names are quoted.
CREATE SCHEMA "The schema";
CREATE TABLE "The schema"."The table" ("The id" int PRIMARY KEY, "The sig" minhash_signature, "The scope" text);
SELECT near_dup_protect('"The schema"."The table"', 'The sig', 0.8, scope => '{The scope}', trigger_name => 'It''s a guard');
CREATE INDEX "The index" ON "The schema"."The table" USING neardup ("The sig");
SELECT near_dup_protect('"The schema"."The table"', 'The sig', 0.8, scope => '{The scope}', trigger_name => 'It''s a guard');
INSERT INTO "The schema"."The table" VALUES (1, minhash('a b c'), 'x'), (2, minhash('a b c'), 'y');
INSERT INTO "The schema"."The table" VALUES (3, minhash('a b c'), 'x');

-- The scope of a trigger created by hand is a list of names as in SQL.
CREATE TABLE listed (id int PRIMARY KEY, "a,b" int, "Größe" int, tenant int, sig minhash_signature);
CREATE INDEX ON listed USING neardup (sig);
SELECT near_dup_protect('listed', 'sig', 0.8, scope => '{"a,b",Größe,tenant}');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'listed_guard';
INSERT INTO listed VALUES (1, 1, 1, 1, minhash('a b c')), (2, 2, 1, 1, minhash('a b c')), (3, 1, 2, 1, minhash('a b c')), (4, 1, 1, 2, minhash('a b c'));
INSERT INTO listed VALUES (5, 1, 1, 1, minhash('a b c'));
DROP TRIGGER listed_guard ON listed;
CREATE TRIGGER by_hand AFTER INSERT ON listed FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'scope= TENANT , "a,b","Größe"');
INSERT INTO listed VALUES (5, 1, 2, 2, minhash('a b c'));
INSERT INTO listed VALUES (6, 1, 2, 2, minhash('a b c'));
CREATE OR REPLACE TRIGGER by_hand AFTER INSERT ON listed FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'scope=tenant,,id');
INSERT INTO listed VALUES (6, 1, 2, 2, minhash('a b c'));

-- Renamed columns are followed, and columns that the guard reads cannot be dropped.
CREATE TABLE renamed (part int, tenant int, day date, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE renamed_1 PARTITION OF renamed FOR VALUES IN (1);
CREATE TABLE renamed_2 (gone int, sig minhash_signature, day date, tenant int, part int);
ALTER TABLE renamed_2 DROP COLUMN gone;
ALTER TABLE renamed ATTACH PARTITION renamed_2 FOR VALUES IN (2);
CREATE INDEX ON renamed USING neardup (tenant, sig);
SELECT near_dup_protect('renamed', 'sig', 0.8, scope => '{tenant}', within => 'day', by => '1 day');
INSERT INTO renamed VALUES (1, 1, '2024-01-01', minhash('one two three four'));
ALTER TABLE renamed RENAME sig TO "The signature";
ALTER TABLE renamed RENAME tenant TO customer;
ALTER TABLE renamed RENAME day TO published;
INSERT INTO renamed VALUES (1, 1, '2024-01-01', minhash('one two three four'));
INSERT INTO renamed VALUES (2, 1, '2024-01-02', minhash('one two three four'));
INSERT INTO renamed VALUES (2, 1, '2024-01-03', minhash('one two three four'));
INSERT INTO renamed VALUES (2, 2, '2024-01-01', minhash('one two three four'));
ALTER TABLE renamed DROP COLUMN published;
ALTER TABLE renamed DROP COLUMN customer;
ALTER TABLE renamed DROP COLUMN published CASCADE;
INSERT INTO renamed VALUES (1, 1, minhash('one two three four'));
