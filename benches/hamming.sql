-- Lookup at distance 3 in 1 000 000 bit strings of 64 bits through GIN: build time, bytes a row,
-- candidates, latency; beside pgvector's HNSW, with its recall, where the server offers pgvector.
-- Then the distance itself, a row of a scan.
--
--     psql -X -f benches/hamming.sql
--
-- Half of the strings are random, half in groups of ten with up to 6 bits flipped.
\set ON_ERROR_STOP 1
\pset pager off
SET client_min_messages = warning;
SET maintenance_work_mem = '1GB';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
CREATE EXTENSION IF NOT EXISTS pg_neardup;

DROP TABLE IF EXISTS strings;
CREATE UNLOGGED TABLE strings (id int, b bit(64));
INSERT INTO strings
SELECT i, CASE WHEN i % 2 = 0 THEN hashint8extended(i, 0)::bit(64)
               ELSE hashint8extended(i / 20, 1)::bit(64) # (SELECT coalesce(bit_or(1::bit(64) << (hashint4(i * 8 + j) & 63)), 0::bit(64))
                                                            FROM generate_series(1, i / 2 % 7) j) END
FROM generate_series(1, 1000000) i;
VACUUM ANALYZE strings;

CREATE TEMP TABLE latencies (state text, found bigint, ms float8);
-- Counts what `lookup` finds for each of some strings, $1.
CREATE FUNCTION pg_temp.measure(state text, lookups int,
    lookup text = 'SELECT count(*) FROM strings WHERE hamming_within(b, $1, 3)') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    query record;
    found bigint;
    started timestamptz;
BEGIN
    FOR query IN SELECT * FROM strings WHERE id % 2 = 1 ORDER BY hashint4(id) LIMIT lookups LOOP
        started := clock_timestamp();
        EXECUTE lookup INTO found USING query.b;
        INSERT INTO latencies SELECT state, found, extract(epoch FROM clock_timestamp() - started) * 1000;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.index(definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE started timestamptz := clock_timestamp();
BEGIN
    EXECUTE 'CREATE INDEX strings_measured ON strings USING ' || definition;
    RETURN format('%s: built in %s s, %s bytes a row', definition,
                  round(extract(epoch FROM clock_timestamp() - started), 1), round(pg_relation_size('strings_measured') / 1e6, 1));
END $$;
SELECT pg_temp.index('gin (b hamming_ops (distance = 3, blocks = 4))');
SELECT pg_temp.measure('GIN, blocks = 4', 1000);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM strings WHERE hamming_within(b, (SELECT b FROM strings WHERE id = 21), 3);
DROP INDEX strings_measured;
SELECT pg_temp.index('gin (b hamming_ops (distance = 3, blocks = 6))');
SELECT pg_temp.measure('GIN, blocks = 6', 1000);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM strings WHERE hamming_within(b, (SELECT b FROM strings WHERE id = 21), 3);
SET enable_bitmapscan = off;
SELECT pg_temp.measure('scan', 3);
RESET enable_bitmapscan;
DROP INDEX strings_measured;

SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS has_pgvector \gset
\if :has_pgvector
CREATE EXTENSION IF NOT EXISTS vector;
SET max_parallel_maintenance_workers = 1;
SELECT pg_temp.index('hnsw (b bit_hamming_ops)');
\set nearest 'SELECT count(*) FROM (SELECT b <~> $1 AS distance FROM strings ORDER BY b <~> $1 LIMIT 40) nearest WHERE distance <= 3'
SELECT pg_temp.measure('HNSW, ef_search = 40', 1000, :'nearest');
SET hnsw.ef_search = 200;
SELECT pg_temp.measure('HNSW, ef_search = 200', 1000, :'nearest');
\else
\echo skipped: HNSW, since the server does not offer pgvector
\endif

SELECT state, count(*) AS lookups, avg(found) AS found,
       sum(found) / (SELECT sum(found) FROM latencies WHERE state = 'GIN, blocks = 4') AS recall,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS median,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
FROM latencies WHERE state <> 'scan' GROUP BY 1
UNION ALL
SELECT state, count(*), avg(found), NULL, percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), max(ms)
FROM latencies WHERE state = 'scan' GROUP BY 1 ORDER BY 1;

-- Nanoseconds a row, in turns; the time to read the column taken off.
CREATE TEMP TABLE scans (expression text, turn int, ns float8);
CREATE FUNCTION pg_temp.scan(expression text, turn int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE started timestamptz := clock_timestamp();
BEGIN
    EXECUTE format('SELECT count(%s) FROM strings', expression);
    INSERT INTO scans SELECT expression, turn, extract(epoch FROM clock_timestamp() - started) * 1e9 / 1e6;
END $$;
SELECT count(pg_temp.scan(expression, turn))
FROM (SELECT * FROM generate_series(1, 15) turn,
          unnest(ARRAY['b', 'length(b)', 'bit_hamming(b, repeat(''01'', 32)::bit(64))']
              || CASE WHEN :'has_pgvector'::bool THEN ARRAY['b <~> repeat(''01'', 32)::bit(64)'] END) expression
      ORDER BY turn) turns;
SELECT expression, percentile_cont(0.5) WITHIN GROUP (ORDER BY ns - (SELECT ns FROM scans base
           WHERE base.turn = scans.turn AND base.expression = 'b')) AS ns_a_row
FROM scans GROUP BY 1 ORDER BY 2;
