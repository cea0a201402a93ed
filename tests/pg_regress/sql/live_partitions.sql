-- Clusters of a partitioned table, whose partitions are added and removed.
SET client_min_messages = warning;
CREATE TABLE news (day int, id int, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED,
    PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE INDEX ON news USING neardup (sig);
CREATE TABLE news_1 PARTITION OF news FOR VALUES FROM (1) TO (2);
CREATE TABLE news_2 PARTITION OF news FOR VALUES FROM (2) TO (3) PARTITION BY RANGE (id);
CREATE TABLE news_2a PARTITION OF news_2 FOR VALUES FROM (0) TO (100);
CREATE TABLE news_3 PARTITION OF news FOR VALUES FROM (3) TO (4);
INSERT INTO news SELECT 1 + i % 3, i, 'words of the document number ' || i / 4 FROM generate_series(1, 59) i;
SELECT near_dup_track('news', 'sig', 0.8, 'id');
SELECT near_dup_track('news', 'sig', 0.8, key => 'id');
-- Maintained clusters, compared with computed ones.
CREATE FUNCTION differences() RETURNS TABLE (key text, kept text, computed text) LANGUAGE sql AS $$
    SELECT coalesce(k.key::text, c.key), concat_ws(' ', k.canonical, k.similarity), concat_ws(' ', c.cluster, c.similarity)
    FROM news_clusters k FULL JOIN
        near_dup_clusters(NULL::text, 'SELECT id::text AS key, sig FROM news ORDER BY news.id', 0.8) c ON c.key = k.key::text
    WHERE (k.canonical::text, k.similarity) IS DISTINCT FROM (c.cluster, c.similarity) $$;
SELECT * FROM differences();
-- A new partition may have rows: everything is recomputed.
CREATE TABLE news_4 PARTITION OF news FOR VALUES FROM (4) TO (5);
SELECT * FROM near_dup_refresh('news_clusters');
-- Rows that were removed with their partition, and added with another one.
ALTER TABLE news DETACH PARTITION news_3;
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
ALTER TABLE news ATTACH PARTITION news_3 FOR VALUES FROM (3) TO (4);
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
-- Detached, changed and attached again.
ALTER TABLE news DETACH PARTITION news_1;
UPDATE news_1 SET body = 'changed meanwhile' WHERE id < 10;
DELETE FROM news_1 WHERE id BETWEEN 10 AND 20;
INSERT INTO news_1 VALUES (1, 100, 'new meanwhile');
ALTER TABLE news ATTACH PARTITION news_1 FOR VALUES FROM (1) TO (2);
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
-- The same for a partition of a partition.
ALTER TABLE news DETACH PARTITION news_2;
UPDATE news_2a SET body = 'changed meanwhile' WHERE id < 10;
ALTER TABLE news ATTACH PARTITION news_2 FOR VALUES FROM (2) TO (3);
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
-- Emptied twice in one transaction, and filled.
BEGIN;
TRUNCATE news_1;
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
INSERT INTO news VALUES (1, 101, 'filled'), (1, 102, 'filled again');
SELECT rows, created FROM near_dup_refresh('news_clusters');
TRUNCATE news_1;
INSERT INTO news VALUES (1, 103, 'filled for the third time');
COMMIT;
SELECT rows, created, "left" FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
SELECT rows FROM near_dup_refresh('news_clusters');
-- Rewritten: everything is recomputed, and nothing has changed.
VACUUM FULL news_1;
SELECT * FROM near_dup_refresh('news_clusters');
SELECT rows FROM near_dup_refresh('news_clusters');
-- While triggers are disabled, and once after that, a refresh recomputes everything.
ALTER TABLE news_1 DISABLE TRIGGER USER;
INSERT INTO news_1 (day, id, body) VALUES (1, 104, 'unnoted');
SELECT rows, created FROM near_dup_refresh('news_clusters');
INSERT INTO news_1 (day, id, body) VALUES (1, 105, 'unnoted, too');
SELECT rows, created FROM near_dup_refresh('news_clusters');
SELECT format('ALTER TABLE news_1 ENABLE ALWAYS TRIGGER %I', tgname) FROM pg_trigger WHERE tgrelid = 'news_1'::regclass AND NOT tgisinternal ORDER BY tgname \gexec
SELECT rows, created FROM near_dup_refresh('news_clusters');
SELECT rows FROM near_dup_refresh('news_clusters');
SELECT * FROM differences();
-- Dropped, in the end all of them.
DROP TABLE news_1;
SELECT rows, "left" FROM near_dup_refresh('news_clusters');
DROP TABLE news_2, news_3, news_4;
SELECT rows, "left" > 30 AS are_gone FROM near_dup_refresh('news_clusters');
SELECT count(*) FROM news_clusters;
SELECT * FROM near_dup_refresh('news_clusters');
-- A key that is not unique is named, until it is unique.
CREATE TABLE news_5 PARTITION OF news FOR VALUES FROM (5) TO (7);
INSERT INTO news VALUES (5, 1, 'one'), (6, 2, 'two');
SELECT rows FROM near_dup_refresh('news_clusters');
INSERT INTO news VALUES (6, 1, 'another one');
SELECT rows FROM near_dup_refresh('news_clusters');
SELECT rows FROM near_dup_refresh('news_clusters', rebuild => true);
DELETE FROM news WHERE day = 6 AND id = 1;
SELECT rows FROM near_dup_refresh('news_clusters');
INSERT INTO news VALUES (6, 1, 'another one');
SELECT near_dup_track('news', 'sig', key => 'id', clusters => 'others');
DROP TABLE news, news_clusters;
