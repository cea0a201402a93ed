-- A column of a table that stays in use is filled in batches.
CREATE SCHEMA "a ""quoted"" schema";
CREATE TABLE "a ""quoted"" schema"."my docs" (id int PRIMARY KEY, "the body" text, "the ""sig""" minhash_signature);
CREATE VIEW docs AS SELECT id, "the body" AS body, "the ""sig""" AS sig FROM "a ""quoted"" schema"."my docs";
INSERT INTO docs SELECT i, 'document number ' || i || ' of a thousand' FROM generate_series(1, 1000) i;
INSERT INTO docs SELECT i, NULL FROM generate_series(1001, 1010) i;
CALL near_dup_backfill('"a ""quoted"" schema"."my docs"', 'the "sig"', 'minhash("the body")', batch => 64);
SELECT count(*) FILTER (WHERE sig = minhash(body)) AS right, count(*) FILTER (WHERE sig IS NULL) AS empty, count(*) FROM docs;

-- Only what is not filled yet; each batch is committed by itself.
UPDATE docs SET sig = NULL WHERE id % 10 = 0;
UPDATE docs SET sig = minhash('kept') WHERE id = 1;
CALL near_dup_backfill('"a ""quoted"" schema"."my docs"', 'the "sig"', '"my docs".id % 7 / (id - 700)::bool::int, 3');
CALL near_dup_backfill('"a ""quoted"" schema"."my docs"', 'the "sig"', 'CASE WHEN id / (700 - id) IS NOT NULL THEN minhash("the body") END', 10);
SELECT count(*) FILTER (WHERE sig IS NULL) BETWEEN 1 AND 109 AS begun FROM docs;
SET client_min_messages = warning;
CALL near_dup_backfill('"a ""quoted"" schema"."my docs"', 'the "sig"', 'minhash("the body")');
RESET client_min_messages;
SELECT count(*) FILTER (WHERE sig IS NULL AND body IS NOT NULL) AS left, count(*) FILTER (WHERE sig = minhash('kept')) AS kept FROM docs;
SELECT count(DISTINCT xmin::text) > 10 AS batches FROM "a ""quoted"" schema"."my docs";

-- Each partition, and each table that inherits.
CREATE TABLE parts (id int, body text, sig minhash_signature) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 (sig minhash_signature, gone int, body text, id int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (100) TO (200);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (200) TO (300) PARTITION BY LIST (id);
CREATE TABLE parts_3_1 PARTITION OF parts_3 DEFAULT;
INSERT INTO parts SELECT i, 'document number ' || i || ' of three hundred' FROM generate_series(0, 299) i;
CALL near_dup_backfill('parts_2', 'sig', 'minhash(body)');
CALL near_dup_backfill('parts', 'sig', 'minhash(body)', 7);
SELECT tableoid::regclass, count(*) FILTER (WHERE sig = minhash(body)) AS right FROM parts GROUP BY 1 ORDER BY 1;
CREATE TABLE parent (id int, body text, size int);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 'one');
INSERT INTO child VALUES (2, 'two');
CALL near_dup_backfill('parent', 'size', 'length(body) + (SELECT count(*) FROM parts_1)');
SELECT * FROM parent ORDER BY id;

-- It is called by itself.
BEGIN;
CALL near_dup_backfill('parts', 'sig', 'minhash(body)');
ROLLBACK;
CREATE FUNCTION calling() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL near_dup_backfill('parts', 'sig', 'minhash(body)'); END $$;
SELECT calling();
CREATE PROCEDURE calling_with_set() LANGUAGE plpgsql SET work_mem = '1MB' AS $$ BEGIN CALL near_dup_backfill('parts', 'sig', 'minhash(body)'); END $$;
CALL calling_with_set();
DO $$ BEGIN
    UPDATE parts SET sig = NULL WHERE id < 5;
    CALL near_dup_backfill('parts', 'sig', 'minhash(body)', 2);
    ROLLBACK;
END $$;
SELECT count(sig) FROM parts;
SELECT near_dup_backfill('parts', 'sig', 'minhash(body)');

-- At any isolation level.
SET default_transaction_isolation = serializable;
UPDATE parts SET sig = NULL WHERE id < 5;
CALL near_dup_backfill('parts', 'sig', 'minhash(body)', 2);
RESET default_transaction_isolation;

-- Errors.
CALL near_dup_backfill('parts', 'signature', 'minhash(body)');
CALL near_dup_backfill('parts', 'ctid', 'minhash(body)');
ALTER TABLE parts ADD words int GENERATED ALWAYS AS (length(body)) STORED;
CALL near_dup_backfill('parts', 'words', 'length(body)');
ALTER TABLE parts DROP words;
CALL near_dup_backfill('parts', 'sig', 'length(body)');
CALL near_dup_backfill('parts', 'sig', 'minhash(text)');
CALL near_dup_backfill('parts', 'sig', 'minhash(body');
CALL near_dup_backfill('parts', 'sig', 'minhash(body) AS value FROM parts); DELETE FROM parts; SELECT (NULL');
CALL near_dup_backfill('parts', 'sig', '');
CALL near_dup_backfill('docs', 'sig', 'minhash(body)');
CALL near_dup_backfill('parts_1', 'sig', 'minhash(body)', 0);
CALL near_dup_backfill('parts_1', 'sig', 'minhash(body)', pause => -1);
CALL near_dup_backfill('parts_1', 'sig', 'minhash(body)', pause => 'NaN');
CALL near_dup_backfill('parts_1', NULL, 'minhash(body)');
CALL near_dup_backfill(0, 'sig', 'minhash(body)');
SELECT count(sig) FROM parts;

-- With the rights of the caller.
CREATE ROLE regress_filler;
CREATE FUNCTION reveal() RETURNS text LANGUAGE sql AS 'SELECT current_user::text';
CREATE TABLE owned (id int, name text, tenant int);
INSERT INTO owned SELECT i, NULL, i % 2 FROM generate_series(1, 4) i;
SET ROLE regress_filler;
CALL near_dup_backfill('owned', 'name', 'reveal()');
RESET ROLE;
GRANT SELECT, UPDATE (name) ON owned TO regress_filler;
SET ROLE regress_filler;
CALL near_dup_backfill('owned', 'tenant', 'id');
CALL near_dup_backfill('owned', 'name', 'reveal()', wait_for_replicas => true);
RESET ROLE;
CREATE POLICY mine ON owned TO regress_filler USING (tenant = 1);
ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
SET ROLE regress_filler;
CALL near_dup_backfill('owned', 'name', 'reveal()');
RESET ROLE;
SELECT * FROM owned ORDER BY id;
CALL near_dup_backfill('owned', 'name', 'reveal()', wait_for_replicas => true);
DROP TABLE owned;
DROP ROLE regress_filler;

-- Names and operators in the way.
CREATE SCHEMA trap;
CREATE FUNCTION trap.smaller(tid, tid) RETURNS bool LANGUAGE sql AS 'SELECT NULL::bool';
CREATE OPERATOR trap.< (LEFTARG = tid, RIGHTARG = tid, FUNCTION = trap.smaller);
CREATE DOMAIN trap.text AS int;
CREATE TABLE trap.made (made int, place int, value int, filled int, t int);
INSERT INTO trap.made VALUES (1, 2, 3);
SET search_path = trap, public, pg_catalog;
CALL near_dup_backfill('made', 'filled', 'made.made + place + value + (SELECT count(*) FROM made)');
CALL near_dup_backfill('made', 't', '1 -- a comment');
RESET search_path;
SELECT * FROM trap.made;

-- Rows that a trigger does not let be updated are left, and said.
CREATE FUNCTION stubborn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN new.id > 1 THEN new END; END';
CREATE TABLE kept (id int, filled int);
INSERT INTO kept VALUES (1), (2), (3);
CREATE TRIGGER stubborn BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION stubborn();
CALL near_dup_backfill('kept', 'filled', 'id');
SELECT * FROM kept ORDER BY id;

DROP TABLE kept, parts, parent, child;
DROP SCHEMA "a ""quoted"" schema", trap CASCADE;
