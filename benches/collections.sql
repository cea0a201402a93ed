-- Whole collections: a million generated documents with known edits, and the cost of the guard.
--
--   psql -f benches/collections.sql [-v rows=1000000]
--
-- Makes and drops the schema neardup_bench. Run it in one backend; peak memory of the backend is
-- RssAnon of its process, temporary files are in pg_stat_database.
\if :{?rows}
\else
\set rows 1000000
\endif
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS neardup_bench CASCADE;
CREATE SCHEMA neardup_bench;
SET search_path = neardup_bench, public;
SET work_mem = '64MB';
SET max_parallel_workers_per_gather = 0;
\timing off

-- Three of ten documents are an earlier one with up to a tenth of its words replaced.
CREATE UNLOGGED TABLE docs AS
SELECT n AS id, string_agg(
    CASE WHEN n % 10 >= 3 OR abs(hashint8(n * 1000 + word)::bigint) % 100 >= n % 11
         THEN 'w' || abs(hashint8((CASE WHEN n % 10 < 3 THEN n / 10 * 10 + 3 ELSE n END) * 1000 + word)::bigint) % 200000
         ELSE 'edit' || n END, ' ' ORDER BY word) AS body
FROM generate_series(1::bigint, :rows) n, generate_series(1, 120) word
GROUP BY n;
ANALYZE docs;

\timing on
\echo signatures
CREATE UNLOGGED TABLE sigs AS SELECT id, minhash(body) AS sig FROM docs;
\echo pairs
SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'TABLE sigs', 0.8);
\echo star clusters
SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8);
\echo connected clusters
SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8, 'connected');
\echo text to verified pairs
SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, minhash(body), body FROM docs', 0.8);
\echo star clusters, every tenth row identical
SELECT count(DISTINCT cluster) FROM near_dup_clusters(NULL::bigint,
    'SELECT id, CASE WHEN id % 10 = 0 THEN minhash(''the same text in every tenth row'') ELSE sig END FROM sigs', 0.8);

\echo 100 000 inserts without the guard, then with it
\timing off
CREATE TABLE plain (id bigint PRIMARY KEY, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
CREATE INDEX ON plain USING gin (sig) WITH (fastupdate = off);
CREATE TABLE guarded (LIKE plain INCLUDING ALL);
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON guarded
    FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
\timing on
INSERT INTO plain SELECT * FROM docs WHERE id % 10 >= 3 ORDER BY id LIMIT 100000;
INSERT INTO guarded SELECT * FROM docs WHERE id % 10 >= 3 ORDER BY id LIMIT 100000;
\timing off
DROP SCHEMA neardup_bench CASCADE;
