-- No near-duplicate gets in.
CREATE TABLE docs (id int PRIMARY KEY, tenant int, body text, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');

-- It insists on an index, and on one without a pending list.
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');
CREATE INDEX docs_sig ON docs USING gin (sig minhash_ops (threshold = 0.9)) WITH (fastupdate = off);
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');
DROP INDEX docs_sig;
CREATE INDEX docs_sig ON docs USING gin (sig);
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');
ALTER INDEX docs_sig SET (fastupdate = off);
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten');

-- Refused, as a unique index would.
\set VERBOSITY sqlstate
INSERT INTO docs VALUES (2, 1, 'One, two, three, four, five, six, seven, eight, nine, ten!');
\set VERBOSITY default
INSERT INTO docs VALUES (2, 1, 'One, two, three, four, five, six, seven, eight, nine, ten!');
DO $$
DECLARE c text; t text; s text; d text;
BEGIN
    INSERT INTO docs VALUES (2, 1, 'one two three four five six seven eight nine ten');
EXCEPTION WHEN exclusion_violation THEN
    GET STACKED DIAGNOSTICS c = CONSTRAINT_NAME, t = TABLE_NAME, s = SCHEMA_NAME, d = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '% % % %', c, t, s, d;
END $$;

-- Within one statement, and by COPY.
INSERT INTO docs VALUES (2, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (3, 1, 'alpha beta gamma delta epsilon zeta eta theta');
COPY docs (id, tenant, body) FROM stdin;
2	1	alpha beta gamma delta epsilon zeta eta theta
3	1	Alpha Beta Gamma Delta Epsilon Zeta Eta Theta
\.
SELECT count(*) FROM docs;

-- Rows without a document are always let in.
INSERT INTO docs VALUES (4, 1, NULL), (5, 1, NULL), (6, 1, ''), (7, 1, '...');

-- Upserts, updates of a row by itself, and rows that are gone.
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten') ON CONFLICT DO NOTHING;
INSERT INTO docs VALUES (1, 1, 'one two three four five six seven eight nine ten') ON CONFLICT (id) DO UPDATE SET tenant = 2 RETURNING id, tenant;
UPDATE docs SET body = body || ' eleven' WHERE id = 1;
INSERT INTO docs VALUES (8, 1, 'a text of its own that has nothing to do with others');
UPDATE docs SET body = 'one two three four five six seven eight nine ten eleven' WHERE id = 8;
UPDATE docs SET id = 9 WHERE id = 8;
DELETE FROM docs WHERE id = 9;
INSERT INTO docs VALUES (8, 1, 'a text of its own that has nothing to do with others');
BEGIN;
SAVEPOINT s;
INSERT INTO docs VALUES (10, 1, 'first written then rolled back and written again later');
ROLLBACK TO s;
INSERT INTO docs VALUES (11, 1, 'first written then rolled back and written again later');
SAVEPOINT t;
INSERT INTO docs VALUES (12, 1, 'first written then rolled back and written again later');
ROLLBACK TO t;
COMMIT;
SELECT id FROM docs ORDER BY id;

-- skip.
DROP TRIGGER guard ON docs;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'skip');
INSERT INTO docs VALUES (20, 1, 'alpha beta gamma delta epsilon zeta eta theta'), (21, 1, 'quite another text that is not there yet'), (22, 1, 'Quite another text that is not there yet') RETURNING id;

-- scope: near-duplicates of other tenants do not count.
DROP TRIGGER guard ON docs;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject', 'scope=tenant');
INSERT INTO docs VALUES (30, 2, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (31, 2, 'alpha beta gamma delta epsilon zeta eta theta');
UPDATE docs SET tenant = 1 WHERE id = 30;
INSERT INTO docs VALUES (32, NULL, 'alpha beta gamma delta epsilon zeta eta theta');
INSERT INTO docs VALUES (33, NULL, 'alpha beta gamma delta epsilon zeta eta theta');

-- verify: the estimate alone refuses nothing.
CREATE TABLE verified (id int PRIMARY KEY, body text, sig minhash_signature);
CREATE INDEX ON verified USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON verified FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject', 'verify=body');
INSERT INTO verified VALUES (1, 'a b c d e', minhash('x y z')), (2, 'f g h i j', minhash('x y z'));
INSERT INTO verified VALUES (3, 'A B C D E', minhash('x y z'));

-- mark: the key of the canonical row.
CREATE TABLE marked (id int PRIMARY KEY, body text, canonical_id int, sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
CREATE INDEX ON marked USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON marked FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'mark', 'into=canonical_id');
INSERT INTO marked (id, body) VALUES (1, 'alpha beta gamma delta epsilon zeta eta theta'), (2, 'other words in another document here'), (3, 'alpha beta gamma delta epsilon zeta eta theta'), (4, 'Alpha beta gamma delta epsilon zeta eta theta');
SELECT id, canonical_id FROM marked ORDER BY id;
UPDATE marked SET body = 'other words in another document here' WHERE id = 4 RETURNING id, canonical_id;

-- Bit strings.
CREATE TABLE images (id int PRIMARY KEY, hash bit(64));
CREATE INDEX ON images USING gin (hash hamming_ops (distance = 3)) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON images FOR EACH ROW EXECUTE FUNCTION near_dup_guard('hash', '3', 'reject');
INSERT INTO images VALUES (1, x'0123456789abcdef');
INSERT INTO images VALUES (2, x'0123456789abcde8');
INSERT INTO images VALUES (3, x'0123456789abcd00');

-- Partitions: looked at from the root.
CREATE TABLE parts (id int, day int, body text, sig minhash_signature, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 (sig minhash_signature, day int NOT NULL, id int NOT NULL, body text);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parts USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
INSERT INTO parts SELECT 1, 1, 'a b c d e', minhash('a b c d e');
INSERT INTO parts SELECT 2, 11, 'a b c d e', minhash('a b c d e');
INSERT INTO parts_2 (id, day, body, sig) SELECT 3, 12, 'a b c d e', minhash('a b c d e');
UPDATE parts SET day = 15;
SELECT tableoid::regclass, id, day FROM parts;

-- Row-level security: enforced for all, but no hidden key is told.
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
RESET ROLE;
DROP OWNED BY guard_reader;
DROP ROLE guard_reader;

-- Refused arguments.
CREATE TABLE wrong (id int, sig minhash_signature, into_here text);
CREATE FUNCTION try(arguments text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE OR REPLACE TRIGGER guard BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard(' || arguments || ')';
    INSERT INTO wrong SELECT 1, minhash('a b c');
END $$;
SELECT try($$'sig', '0.8'$$);
SELECT try($$'sig', '1.8', 'reject'$$);
SELECT try($$'sig', '0.8', 'refuse'$$);
SELECT try($$'signature', '0.8', 'reject'$$);
SELECT try($$'id', '0.8', 'reject'$$);
SELECT try($$'sig', '0.8', 'mark'$$);
SELECT try($$'sig', '0.8', 'mark', 'into=into_here'$$);
SELECT try($$'sig', '0.8', 'reject', 'verify=id'$$);
SELECT try($$'sig', '0.8', 'reject', 'sope=id'$$);
CREATE TRIGGER after_guard AFTER INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
DROP TRIGGER guard ON wrong;
INSERT INTO wrong VALUES (1);

-- No lock outlives its statement.
SELECT count(*) FROM pg_locks WHERE locktype = 'userlock';
