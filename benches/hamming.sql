-- Lookup at distance 3 in 1 000 000 bit strings of 64 bits through GIN: build time, bytes a row,
-- candidates, latency.
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

CREATE TEMP TABLE latencies (state text, distance int, found bigint, ms float8);
CREATE FUNCTION pg_temp.measure(state text, most int, lookups int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    query record;
    found bigint;
    started timestamptz;
BEGIN
    FOR query IN SELECT * FROM strings WHERE id % 2 = 1 ORDER BY hashint4(id) LIMIT lookups LOOP
        started := clock_timestamp();
        SELECT count(*) INTO found FROM strings WHERE hamming_within(b, query.b, most);
        INSERT INTO latencies SELECT state, most, found, extract(epoch FROM clock_timestamp() - started) * 1000;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.index(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE started timestamptz := clock_timestamp();
BEGIN
    EXECUTE format('CREATE INDEX strings_measured ON strings USING gin (b hamming_ops (distance = 3, %s))', options);
    RETURN format('%s: built in %s s, %s bytes a row', options,
                  round(extract(epoch FROM clock_timestamp() - started), 1), round(pg_relation_size('strings_measured') / 1e6, 1));
END $$;
SELECT pg_temp.index('blocks = 4');
SELECT pg_temp.measure('blocks = 4', 3, 1000);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM strings WHERE hamming_within(b, (SELECT b FROM strings WHERE id = 21), 3);
DROP INDEX strings_measured;
SELECT pg_temp.index('blocks = 6');
SELECT pg_temp.measure('blocks = 6', 3, 1000);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM strings WHERE hamming_within(b, (SELECT b FROM strings WHERE id = 21), 3);
SET enable_bitmapscan = off;
SELECT pg_temp.measure('scan', 3, 3);
SELECT state, count(*) AS lookups, avg(found) AS found,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS median,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99
FROM latencies GROUP BY 1 ORDER BY 1;
