-- Lookup in 1 000 000 documents through GIN: build time, bytes a row, latency.
--
--     psql -X -v corpora=<directory of the corpora> -f benches/lookup.sql
--
-- Takes 4 GB of disk, as a superuser. Documents come from a corpus: their spaces are replaced by a
-- number, so that documents with different numbers share no shingle; near-duplicates have the same
-- number and another last word.
\set ON_ERROR_STOP 1
\pset pager off
SET client_min_messages = warning;
SET maintenance_work_mem = '1GB';
SET max_parallel_maintenance_workers = 0;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
CREATE EXTENSION IF NOT EXISTS pg_neardup;

DROP TABLE IF EXISTS source, groups, docs, keys, latencies CASCADE;
CREATE TABLE source (id bigint, body text);
\set from 'gzip -dc ' :corpora '/reuters21578/docs.tsv.gz'
COPY source FROM PROGRAM :'from';
DELETE FROM source WHERE length(body) < 500;

-- Groups of near-duplicates, named by how many each of their documents has.
CREATE TABLE groups (others int, number int);
INSERT INTO groups VALUES (1, 2000), (10, 2000), (1000, 20);
INSERT INTO groups SELECT 0, 1000000 - sum((others + 1) * number) FROM groups;

CREATE UNLOGGED TABLE docs (id serial, others int, sig minhash_signature);
INSERT INTO docs (others, sig)
SELECT others, minhash(replace(left(body, 700), ' ', format(' %sx%s ', others, g)) || copy)
FROM groups, generate_series(1, number) g, generate_series(0, others) copy,
     LATERAL (SELECT g % (SELECT count(*) FROM source) AS nth) n
JOIN (SELECT row_number() OVER (ORDER BY id) - 1 AS nth, body FROM source) s USING (nth);
VACUUM ANALYZE docs;

\echo 'Build time in ms and bytes a row, beside GIN over the same number of bigint keys'
CREATE TEMP TABLE builds (what text, ms float8, bytes float8);
CREATE FUNCTION pg_temp.build(what text, command text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE started timestamptz := clock_timestamp();
BEGIN
    EXECUTE command;
    INSERT INTO builds SELECT what, extract(epoch FROM clock_timestamp() - started) * 1000,
                              pg_relation_size('measured') / 1000000.0;
END $$;
CREATE UNLOGGED TABLE keys AS SELECT minhash_bands(sig, 0.8) AS keys FROM docs;
SELECT pg_temp.build('bigint[] 0.8', 'CREATE INDEX measured ON keys USING gin (keys)');
DROP TABLE keys;
SELECT pg_temp.build('minhash_ops 0.9', 'CREATE INDEX measured ON docs USING gin (sig minhash_ops (threshold = 0.9))');
DROP INDEX measured;
SELECT pg_temp.build('minhash_ops 0.8, key_bits 20', 'CREATE INDEX measured ON docs USING gin (sig minhash_ops (key_bits = 20))');
DROP INDEX measured;
SELECT pg_temp.build('minhash_ops 0.8', 'CREATE INDEX measured ON docs USING gin (sig)');
TABLE builds;

\echo 'Latency in ms, by the number of near-duplicates'
CREATE TABLE latencies (state text, others int, found bigint, ms float8);
CREATE FUNCTION pg_temp.measure(state text, lookups int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    query record;
    found bigint;
    started timestamptz;
BEGIN
    FOR query IN
        SELECT d.* FROM groups, LATERAL (SELECT * FROM docs WHERE docs.others = groups.others
                                         ORDER BY hashint4(docs.id)
                                         LIMIT CASE WHEN groups.others < 0 THEN 20 ELSE lookups END) d
    LOOP
        started := clock_timestamp();
        SELECT count(*) INTO found FROM docs WHERE near_dup(sig, query.sig);
        INSERT INTO latencies
        SELECT state, query.others, found, extract(epoch FROM clock_timestamp() - started) * 1000;
    END LOOP;
END $$;
CREATE VIEW summary AS
SELECT state, others, count(*) AS lookups, avg(found) AS found,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS median,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
FROM latencies GROUP BY 1, 2 ORDER BY 1, 2;
SELECT pg_temp.measure('cold', 1000);
DELETE FROM latencies;
SELECT pg_temp.measure('warm', 1000);
SET enable_bitmapscan = off;
SELECT pg_temp.measure('scan', 3);
RESET enable_bitmapscan;
TABLE summary;

\echo 'The same with 100 000 more documents that share 80 % of their shingles'
INSERT INTO docs (others, sig)
SELECT -1, minhash(repeat('boilerplate of everybody ', 1) || (SELECT string_agg('b' || i, ' ') FROM generate_series(1, 80) i)
                   || (SELECT string_agg(format('u%sx%s', n, i), ' ') FROM generate_series(1, 18) i))
FROM generate_series(1, 100000) n;
SELECT gin_clean_pending_list('measured') >= 0 AS flushed;
VACUUM ANALYZE docs;
INSERT INTO groups VALUES (-1, 1);
SELECT pg_temp.measure('hot', 1000);
SELECT * FROM summary WHERE state = 'hot';
