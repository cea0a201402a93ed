-- The price of a near-duplicate signature against that of an exact one, on one backend, and of a
-- comparison against trivial work on the same rows. Needs a table documents (body text), warm:
--   psql -f benches/signature.sql
-- Start the server with NEARDUP_KERNELS=portable to measure the path without vectors.
SET max_parallel_workers_per_gather = 0;

-- Milliseconds of the faster runs, and the median of the ratios, of two queries taking turns.
CREATE FUNCTION pg_temp.race(a text, b text, rounds int,
    OUT a_ms numeric, OUT b_ms numeric, OUT ratio numeric) LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz;
    a_times float8[];
    b_times float8[];
BEGIN
    FOR i IN 1 .. rounds LOOP
        begun := clock_timestamp();
        EXECUTE a;
        a_times[i] := extract(epoch FROM clock_timestamp() - begun) * 1000;
        begun := clock_timestamp();
        EXECUTE b;
        b_times[i] := extract(epoch FROM clock_timestamp() - begun) * 1000;
    END LOOP;
    SELECT round(min(x)::numeric, 2), round(min(y)::numeric, 2),
           round(percentile_cont(0.5) WITHIN GROUP (ORDER BY x / y)::numeric, 3)
    INTO a_ms, b_ms, ratio FROM unnest(a_times, b_times) t (x, y);
END $$;

SELECT 'minhash / md5' AS what, * FROM pg_temp.race(
    'SELECT count(minhash(body)) FROM documents', 'SELECT count(md5(body)) FROM documents', 61);

CREATE TEMP TABLE signatures AS
    SELECT m, m::bytea AS bytes FROM (SELECT minhash(body) AS m FROM documents) d, generate_series(1, 100);
SELECT 'minhash_sim / length of the same bytes' AS what, * FROM pg_temp.race(
    'SELECT count(minhash_sim(m, (SELECT m FROM signatures LIMIT 1))) FROM signatures',
    'SELECT count(length(bytes)) FROM signatures', 21);
