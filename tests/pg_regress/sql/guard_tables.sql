-- Partitions whose columns, keys and kinds differ, and columns that no guard can read.
\set text '''one two three four five six seven eight nine ten'''

-- A key of a partition's own says nothing about another partition's rows.
CREATE TABLE keys (part int, name text, id int, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE keys_name PARTITION OF keys (PRIMARY KEY (name)) FOR VALUES IN (1);
CREATE TABLE keys_id PARTITION OF keys (PRIMARY KEY (id)) FOR VALUES IN (2);
CREATE TABLE keys_too PARTITION OF keys (PRIMARY KEY (id)) FOR VALUES IN (3);
CREATE TABLE keys_none PARTITION OF keys FOR VALUES IN (4);
CREATE INDEX ON keys USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON keys FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
INSERT INTO keys VALUES (2, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (1, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (3, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (4, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (2, 'b', 16, minhash(:text)) ON CONFLICT DO NOTHING;
DELETE FROM keys;
INSERT INTO keys VALUES (4, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (4, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (2, 'a', 16, minhash(:text));
INSERT INTO keys VALUES (1, 'a', 16, minhash(:text));

-- The root's key does, wherever its columns are.
CREATE TABLE rooted (id int, part int, sig minhash_signature, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE rooted_1 PARTITION OF rooted FOR VALUES IN (1);
CREATE TABLE rooted_2 (gone text, sig minhash_signature, part int NOT NULL, also_gone int, id int NOT NULL);
ALTER TABLE rooted_2 DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE rooted ATTACH PARTITION rooted_2 FOR VALUES IN (2);
CREATE INDEX ON rooted USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON rooted FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
INSERT INTO rooted VALUES (1, 1, minhash(:text));
INSERT INTO rooted VALUES (2, 2, minhash(:text));
UPDATE rooted SET part = 2;
INSERT INTO rooted VALUES (1, 2, minhash(:text)) ON CONFLICT (id, part) DO UPDATE SET sig = excluded.sig;
INSERT INTO rooted VALUES (1, 1, minhash(:text));
SELECT tableoid::regclass, id, part FROM rooted;

-- 'mark' writes no key of another type, and none where there is none.
CREATE TABLE marks (part int, name text, id int, original int, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE marks_name PARTITION OF marks (PRIMARY KEY (name)) FOR VALUES IN (1);
CREATE TABLE marks_id PARTITION OF marks (PRIMARY KEY (id)) FOR VALUES IN (2);
CREATE INDEX ON marks USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON marks FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'mark', 'into=original');
INSERT INTO marks VALUES (2, 'a', 1, NULL, minhash(:text));
ALTER TABLE marks_name DROP CONSTRAINT marks_name_pkey;
INSERT INTO marks VALUES (2, 'a', 1, NULL, minhash(:text));

-- 'mark' names no row that row-level security may hide.
CREATE TABLE secret (id int PRIMARY KEY, tenant int, original int, sig minhash_signature);
CREATE INDEX ON secret USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON secret FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'mark', 'into=original');
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (tenant = 7);
INSERT INTO secret VALUES (4711, 1, NULL, minhash(:text));
CREATE ROLE guard_tenant;
GRANT SELECT, INSERT ON secret TO guard_tenant;
SET ROLE guard_tenant;
INSERT INTO secret VALUES (1, 7, NULL, minhash(:text)) RETURNING id, original;
RESET ROLE;
INSERT INTO secret VALUES (2, 1, NULL, minhash(:text)) RETURNING id, original IS NOT NULL AS is_marked;

-- Of partitions also where it is the policy of a table between.
CREATE TABLE vault (id int PRIMARY KEY, original int, sig minhash_signature) PARTITION BY LIST (id);
CREATE TABLE vault_1 PARTITION OF vault FOR VALUES IN (1, 2, 3) PARTITION BY LIST (id);
CREATE TABLE vault_1_1 PARTITION OF vault_1 FOR VALUES IN (1, 2, 3);
CREATE INDEX ON vault USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON vault FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'mark', 'into=original');
INSERT INTO vault VALUES (1, NULL, minhash(:text));
ALTER TABLE vault_1 ENABLE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON vault, vault_1, vault_1_1 TO guard_tenant;
SET ROLE guard_tenant;
INSERT INTO vault VALUES (2, NULL, minhash(:text)) RETURNING id, original;
RESET ROLE;
ALTER TABLE vault_1 DISABLE ROW LEVEL SECURITY;
SET ROLE guard_tenant;
INSERT INTO vault VALUES (3, NULL, minhash(:text || ' eleven')) RETURNING id, original IS NOT NULL AS is_marked;
RESET ROLE;
DROP OWNED BY guard_tenant;
DROP ROLE guard_tenant;

-- Generated columns have no value yet.
CREATE TABLE generated (id int, key int GENERATED ALWAYS AS (id + 1) STORED, body text,
    lower text GENERATED ALWAYS AS (lower(body)) STORED, sig minhash_signature);
CREATE INDEX ON generated USING gin (sig) WITH (fastupdate = off);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON generated FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject', 'scope=lower');
INSERT INTO generated (id) VALUES (1);
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON generated FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject', 'verify=lower');
INSERT INTO generated (id) VALUES (1);
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON generated FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
INSERT INTO generated (id, sig) VALUES (1, minhash(:text));
ALTER TABLE generated ADD PRIMARY KEY (key);
INSERT INTO generated (id, sig) VALUES (1, minhash(:text)) ON CONFLICT (key) DO UPDATE SET body = 'again';
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON generated FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'mark', 'into=key');
INSERT INTO generated (id, sig) VALUES (1, minhash(:text));

-- A foreign partition cannot be searched.
CREATE FOREIGN DATA WRAPPER guard_wrapper;
CREATE SERVER guard_server FOREIGN DATA WRAPPER guard_wrapper;
CREATE TABLE near_and_far (part int, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE near PARTITION OF near_and_far FOR VALUES IN (1);
CREATE INDEX ON near USING gin (sig) WITH (fastupdate = off);
CREATE FOREIGN TABLE "Far" PARTITION OF near_and_far FOR VALUES IN (2) SERVER guard_server;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON near_and_far FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
INSERT INTO near_and_far VALUES (1, minhash(:text));
DROP FOREIGN DATA WRAPPER guard_wrapper CASCADE;
INSERT INTO near_and_far VALUES (1, minhash(:text));

-- Hints can be copied: names are quoted, and found whatever the search path is.
CREATE SCHEMA "Other";
CREATE TABLE "Other"."Docs" ("Sig" minhash_signature);
CREATE TRIGGER guard BEFORE INSERT ON "Other"."Docs" FOR EACH ROW EXECUTE FUNCTION near_dup_guard('Sig', '0.8', 'reject');
INSERT INTO "Other"."Docs" VALUES (minhash(:text));
CREATE INDEX "Index" ON "Other"."Docs" USING gin ("Sig");
INSERT INTO "Other"."Docs" VALUES (minhash(:text));
