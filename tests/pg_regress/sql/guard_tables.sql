-- Partitions whose columns, keys and kinds differ, and columns that no guard can read.
\set text '''one two three four five six seven eight nine ten'''

-- Partitions with keys of their own.
CREATE TABLE keys (part int, name text, id int, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE keys_name PARTITION OF keys (PRIMARY KEY (name)) FOR VALUES IN (1);
CREATE TABLE keys_id PARTITION OF keys (PRIMARY KEY (id)) FOR VALUES IN (2);
CREATE TABLE keys_too PARTITION OF keys (PRIMARY KEY (id)) FOR VALUES IN (3);
CREATE TABLE keys_none PARTITION OF keys FOR VALUES IN (4);
CREATE INDEX ON keys USING neardup (sig);
SELECT near_dup_protect('keys', 'sig', 0.8);
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

-- The root's key, wherever its columns are.
CREATE TABLE rooted (id int, part int, sig minhash_signature, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE rooted_1 PARTITION OF rooted FOR VALUES IN (1);
CREATE TABLE rooted_2 (gone text, sig minhash_signature, part int NOT NULL, also_gone int, id int NOT NULL);
ALTER TABLE rooted_2 DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE rooted ATTACH PARTITION rooted_2 FOR VALUES IN (2);
CREATE INDEX ON rooted USING neardup (sig);
SELECT near_dup_protect('rooted', 'sig', 0.8);
INSERT INTO rooted VALUES (1, 1, minhash(:text));
INSERT INTO rooted VALUES (2, 2, minhash(:text));
UPDATE rooted SET part = 2;
INSERT INTO rooted VALUES (1, 2, minhash(:text)) ON CONFLICT (id, part) DO UPDATE SET sig = excluded.sig;
INSERT INTO rooted VALUES (1, 1, minhash(:text));
SELECT tableoid::regclass, id, part FROM rooted;

-- No row is named that row-level security may hide, in partitions also because of the policy of a table in between.
CREATE TABLE vault (id int PRIMARY KEY, sig minhash_signature) PARTITION BY LIST (id);
CREATE TABLE vault_1 PARTITION OF vault FOR VALUES IN (1, 2, 3) PARTITION BY LIST (id);
CREATE TABLE vault_1_1 PARTITION OF vault_1 FOR VALUES IN (1, 2, 3);
CREATE INDEX ON vault USING neardup (sig);
SELECT near_dup_protect('vault', 'sig', 0.8);
INSERT INTO vault VALUES (1, minhash(:text));
ALTER TABLE vault_1 ENABLE ROW LEVEL SECURITY;
CREATE ROLE guard_tenant;
GRANT SELECT, INSERT ON vault, vault_1, vault_1_1 TO guard_tenant;
SET ROLE guard_tenant;
INSERT INTO vault VALUES (2, minhash(:text));
RESET ROLE;
ALTER TABLE vault_1 DISABLE ROW LEVEL SECURITY;
SET ROLE guard_tenant;
INSERT INTO vault VALUES (3, minhash(:text));
RESET ROLE;
DROP OWNED BY guard_tenant;
DROP ROLE guard_tenant;

-- Generated columns have their values: document, scope and key.
CREATE TABLE generated (id int, key int GENERATED ALWAYS AS (id + 1) STORED PRIMARY KEY, body text,
    lower text GENERATED ALWAYS AS (lower(body)) STORED);
CREATE INDEX generated_lower ON generated USING neardup (lower);
SELECT near_dup_protect('generated', 'lower', 0.8, scope => '{lower}');
INSERT INTO generated (id, body) VALUES (1, :text);
INSERT INTO generated (id, body) VALUES (2, upper(:text));
INSERT INTO generated (id, body) VALUES (2, :text || '!');
INSERT INTO generated (id, body) VALUES (2, :text || '!') ON CONFLICT (key) DO UPDATE SET body = upper(:text);

-- Each partition is searched with the keys of its own index, whatever its options and its leading columns are.
CREATE TABLE unlike (part int, id int, tenant int, body text, PRIMARY KEY (part, id)) PARTITION BY LIST (part);
DO $$ BEGIN
    FOR part IN 1 .. 7 LOOP
        EXECUTE format('CREATE TABLE unlike_%s PARTITION OF unlike FOR VALUES IN (%s)', part, part);
        EXECUTE format('CREATE INDEX ON unlike_%s USING neardup (%s)', part, (ARRAY[
            'body', 'body', 'body text_ops (seed = 7)', 'body', 'tenant scope_ops, body', 'body', 'tenant scope_ops, body'])[part]);
    END LOOP;
END $$;
CREATE INDEX ON unlike_2 (body);
CREATE INDEX ON unlike_2 (id) INCLUDE (body);
SELECT near_dup_protect('unlike', 'body', 0.8, scope => '{tenant}');
INSERT INTO unlike SELECT part, 1, 1, repeat('story ' || part || ' ', 9) || :text FROM generate_series(1, 7) part;
DO $$
DECLARE
    rejected int := 0;
BEGIN
    FOR original IN 1 .. 7 LOOP
        FOR other IN 1 .. 7 LOOP
            BEGIN
                INSERT INTO unlike SELECT other, 2, tenant, body || '!' FROM unlike WHERE part = original AND id = 1;
            EXCEPTION WHEN exclusion_violation THEN
                rejected := rejected + 1;
            END;
        END LOOP;
    END LOOP;
    RAISE NOTICE '% of 49 copies rejected', rejected;
END $$;

-- A foreign partition cannot be searched.
CREATE FOREIGN DATA WRAPPER guard_wrapper;
CREATE SERVER guard_server FOREIGN DATA WRAPPER guard_wrapper;
CREATE TABLE near_and_far (part int, sig minhash_signature) PARTITION BY LIST (part);
CREATE TABLE near PARTITION OF near_and_far FOR VALUES IN (1);
CREATE INDEX ON near USING neardup (sig);
SELECT near_dup_protect('near_and_far', 'sig', 0.8);
CREATE FOREIGN TABLE "Far" PARTITION OF near_and_far FOR VALUES IN (2) SERVER guard_server;
INSERT INTO near_and_far VALUES (1, minhash(:text));
SELECT near_dup_protect('near_and_far', 'sig', 0.8, trigger_name => 'again');
DROP FOREIGN DATA WRAPPER guard_wrapper CASCADE;
INSERT INTO near_and_far VALUES (1, minhash(:text));

-- A partition that is added later needs its own index, too.
CREATE TABLE later PARTITION OF near_and_far FOR VALUES IN (3);
INSERT INTO near_and_far VALUES (3, minhash('another text'));
