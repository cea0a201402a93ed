-- Rows that do not satisfy the condition are neither checked nor an obstacle.
CREATE TABLE docs (id int PRIMARY KEY, body text, deleted_at timestamptz, state text DEFAULT 'live');
CREATE INDEX docs_all ON docs USING neardup (body);
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'deleted_at IS NULL AND state <> ''draft''');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'docs_guard';
INSERT INTO docs VALUES (1, 'one and the same text', now(), 'live'), (2, 'one and the same text', NULL, 'draft'), (3, 'one and the same text', NULL, 'live');
INSERT INTO docs VALUES (4, 'one and the same text', NULL);
INSERT INTO docs VALUES (4, 'one and the same text', now());
-- A row that comes to satisfy it counts as a new row, even if it has an old copy; one that ceases to satisfy it is no longer an obstacle.
UPDATE docs SET deleted_at = NULL WHERE id = 1;
UPDATE docs SET deleted_at = NULL, body = body || '!' WHERE id = 1;
UPDATE docs SET state = 'draft' WHERE id = 3;
UPDATE docs SET deleted_at = NULL WHERE id = 1;
UPDATE docs SET state = 'live' WHERE id = 2;
UPDATE docs SET state = CASE id WHEN 2 THEN 'live' ELSE 'draft' END, deleted_at = NULL WHERE id < 3;
UPDATE docs SET state = 'live' WHERE id < 3;
UPDATE docs SET state = NULL WHERE id = 2;
UPDATE docs SET state = 'live' WHERE id = 1;
SELECT id, deleted_at IS NOT NULL AS deleted, state FROM docs ORDER BY id;
-- Columns of the condition can be renamed, but not dropped.
ALTER TABLE docs RENAME deleted_at TO gone_at;
INSERT INTO docs VALUES (5, 'one and the same text', NULL);
INSERT INTO docs VALUES (5, 'one and the same text', now());
ALTER TABLE docs DROP gone_at;
-- A partial index can be used if the condition implies its own.
SELECT near_dup_unprotect('docs');
DROP INDEX docs_all;
CREATE INDEX docs_live ON docs USING neardup (body) WHERE gone_at IS NULL;
SELECT near_dup_protect('docs', 'body', 0.8);
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'id > 1');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'gone_at IS NULL AND id > 1');
INSERT INTO docs VALUES (6, 'a text of the sixth', NULL), (-6, 'a text of the sixth', NULL), (7, 'a text of the sixth', now());
UPDATE docs SET gone_at = NULL WHERE id = 7;
UPDATE docs SET gone_at = now() WHERE id = 6;
UPDATE docs SET gone_at = NULL WHERE id = 7;
UPDATE docs SET id = 8 WHERE id = -6;

-- Notes, and partitions whose columns are in a different order.
CREATE TABLE parted (id int, part int, body text, is_open bool NOT NULL DEFAULT true, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (gone int, is_open bool NOT NULL DEFAULT true, body text, part int NOT NULL, id int NOT NULL);
ALTER TABLE parted_2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
CREATE INDEX ON parted USING neardup (body) WHERE is_open;
SELECT near_dup_protect('parted', 'body', 0.8, action => 'note', key => 'id', condition => 'is_open');
INSERT INTO parted VALUES (1, 1, 'the text of all', true), (2, 2, 'the text of all', true), (3, 1, 'the text of all', false), (4, 2, 'the text of all', false);
SELECT key, near_key FROM parted_near_dups ORDER BY key, near_key;
UPDATE parted SET is_open = NOT is_open WHERE id IN (1, 4);
SELECT key, near_key FROM parted_near_dups ORDER BY key, near_key;
UPDATE parted SET is_open = true;
SELECT key, near_key FROM parted_near_dups ORDER BY key, near_key;
SELECT near_dup_protect('parted', 'body', 0.8, key => 'id', condition => 'is_open', trigger_name => 'rejecting');
DO $$
DECLARE existing int;
BEGIN
    INSERT INTO parted VALUES (5, 1, 'the text of all');
EXCEPTION WHEN exclusion_violation THEN
    GET STACKED DIAGNOSTICS existing = COLUMN_NAME;
    RAISE NOTICE 'one of them: %', existing BETWEEN 1 AND 4;
END $$;

-- Invalid conditions.
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'gone_at < now()');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'id');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'true');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'docs IS NOT NULL');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'ctid IS NOT NULL');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'id > 1) ORDER BY (id');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'EXISTS (SELECT)');
SELECT near_dup_protect('docs', 'body', 0.8, condition => 'wrong > 1');
SELECT near_dup_protect('docs', 'body', 0.8, condition => '');
CREATE TRIGGER odd AFTER INSERT ON docs FOR EACH ROW WHEN (ROW(NEW.body, NEW.id) IS NULL OR true) EXECUTE FUNCTION near_dup_guard('body', '0.8');
INSERT INTO docs VALUES (9, 'a text of the ninth', NULL);
