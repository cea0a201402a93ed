-- Clusters that are kept up to date at every commit.
SET client_min_messages = warning;
CREATE TABLE live (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON live USING neardup (sig);
SELECT near_dup_track('live', 'sig', immediate => true);
-- After every statement.
BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO live VALUES (1, minhash('the same words')), (2, minhash('others altogether'));
SELECT key, canonical FROM live_clusters ORDER BY key;
UPDATE live SET sig = minhash('the same words') WHERE id = 2;
SELECT key, canonical FROM live_clusters ORDER BY key;
TRUNCATE live;
SELECT count(*) FROM live_clusters;
COMMIT;
-- A refresh that is rolled back is done at commit.
BEGIN;
INSERT INTO live VALUES (3, minhash('the same words'));
SAVEPOINT s;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT count(*) FROM live_clusters;
ROLLBACK TO s;
SELECT count(*) FROM live_clusters;
COMMIT;
SELECT key, canonical FROM live_clusters;
BEGIN;
INSERT INTO live VALUES (4, minhash('the same words'));
SAVEPOINT s;
SET CONSTRAINTS ALL IMMEDIATE;
RELEASE s;
SELECT count(*) FROM live_clusters;
COMMIT;
-- The refresh waits for the commit, and so do ALTER and TRUNCATE.
BEGIN;
INSERT INTO live VALUES (5, minhash('the same words'));
TRUNCATE live;
ROLLBACK;
-- As replication applies changes.
SET session_replication_role = replica;
INSERT INTO live VALUES (6, minhash('replicated'));
RESET session_replication_role;
SELECT key, canonical FROM live_clusters ORDER BY key;
-- Where all tables are published.
SET client_min_messages = error;
CREATE PUBLICATION everything FOR ALL TABLES;
DELETE FROM live WHERE id = 6;
SELECT key, canonical FROM live_clusters ORDER BY key;
DROP PUBLICATION everything;
DROP TABLE live, live_clusters;
-- Long names are shortened so that a row is noted before it is refreshed.
CREATE TABLE a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name (id int PRIMARY KEY, sig minhash_signature);
CREATE INDEX ON a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name USING neardup (sig);
SELECT near_dup_track('a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name', 'sig', clusters => 'also_a_name_of_more_bytes_than_a_suffix_leaves_to_names_of_ours', immediate => true);
SELECT tgname FROM pg_trigger WHERE tgrelid = 'a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name'::regclass ORDER BY tgname;
DROP TABLE a_name_of_fifty_nine_bytes_that_leaves_no_room_for_more_name, also_a_name_of_more_bytes_than_a_suffix_leaves_to_names_of_ours CASCADE;
