-- Intervals.
SELECT low, estimate, high FROM minhash_interval(minhash('a b c d e f'), minhash('a b c d e f'));
SELECT round(low::numeric, 4) AS low, estimate, high
FROM minhash_interval(minhash('a b c d e f'), minhash('x y z'), 0.99);
SELECT (minhash_interval(minhash(''), minhash('x y z'))).*;
-- 138 of 200 slots equal.
WITH m AS (
    SELECT minhash_import(array_agg(i)) AS a,
           minhash_import(array_agg(CASE WHEN i <= 138 THEN i ELSE -i + 1000 END)) AS b
    FROM generate_series(1, 200) i
)
SELECT round(low::numeric, 3) AS low, estimate, round(high::numeric, 3) AS high
FROM m, minhash_interval(a, b);

-- The true similarity lies within the interval: 100 pairs of 60 to 100 % common elements.
WITH pair AS (
    SELECT o, array_agg(i) AS a, array_agg(i + o) AS b
    FROM generate_series(1, 100) o, generate_series(1, 500) i GROUP BY o
), measured AS (
    SELECT (500 - o) / (500.0 + o) AS truth,
           minhash_interval(minhash(a), minhash(b), 0.99) AS x FROM pair
)
SELECT count(*) FILTER (WHERE truth BETWEEN (x).low AND (x).high) >= 97 AS held FROM measured;

-- Containment: exactly 1 for subsets, 0 for unrelated sets.
SELECT minhash_containment(minhash('a b c d e'), minhash('a b c d e f g h')) AS subset,
       minhash_containment(minhash('a b c'), minhash('x y z')) IN (0, NULL) IS NOT FALSE AS stranger,
       minhash_containment(minhash(''), minhash('x y z')) AS empty_in,
       minhash_containment(minhash('x y z'), minhash('')) AS in_empty;
SELECT minhash_containment(minhash_import('{5}'), minhash_import('{4}')) IS NULL AS no_slot_tells;

-- Cardinality: within 35 %, five standard errors, from 128 slots.
SELECT n, abs(minhash_cardinality(minhash_agg(i, 128, n)) / n - 1) < 0.35 AS close
FROM unnest(ARRAY[2, 10, 100, 1000, 20000]) n, generate_series(1, n) i GROUP BY n ORDER BY n;
SELECT minhash_cardinality(minhash('')) AS empty, minhash_cardinality(minhash('a', slots => 1)) AS one_slot;

-- Unions: bit for bit the signature of the whole.
SELECT minhash('{1,2,3}'::bigint[]) || minhash('{3,4,5,6}'::bigint[]) = minhash('{1,2,3,4,5,6}'::bigint[]) AS same,
       minhash('a b c') || minhash('') = minhash('a b c') AS with_empty,
       minhash('') || minhash('') = minhash('') AS empties,
       minhash_union(minhash('a b c'), NULL) IS NULL AS "null";
SELECT bool_and(part || rest = whole) AS every_slot_count
FROM unnest(ARRAY[1, 2, 7, 64, 128, 129, 255, 256, 257, 1024]) s,
LATERAL (SELECT minhash_agg(i, s) FILTER (WHERE i % 3 = 0) AS part,
                minhash_agg(i, s) FILTER (WHERE i % 3 <> 0) AS rest,
                minhash_agg(i, s) AS whole FROM generate_series(1, 700) i) x;

-- Packing keeps the low bits, no matter how the signature was packed before; the estimate is corrected for chance.
SELECT minhash_pack(minhash_pack(m, 8), 2) = minhash_pack(m, 2) AS stepwise,
       octet_length(minhash_pack(m, 1)::bytea) AS bytes_1, octet_length(minhash_pack(m, 8)::bytea) AS bytes_8,
       minhash_sim(minhash_pack(m, 4), minhash_pack(m, 4)) AS self,
       minhash_pack(m, 4)::text::minhash_signature = minhash_pack(m, 4) AS reads_back,
       (SELECT array_agg(x & 15) FROM unnest((minhash_describe(m)).slots) x) = (minhash_describe(minhash_pack(m, 4))).slots AS low_bits
FROM minhash('the quick brown fox jumps over the lazy dog') m;

-- Slots and bits.
SELECT (minhash_describe(minhash('a b c', slots => 2))).slots AS slots, (minhash_describe(minhash('', slots => 2))).slots AS empty;
SELECT (minhash_describe(minhash_import('{1,4294967294}'))).bits AS w32,
       (minhash_describe(minhash_pack(minhash_import('{1,6,3}'), 8))).bits AS w8,
       (minhash_describe(minhash_pack(minhash_import('{1,6,3}'), 4))).bits AS w4,
       (minhash_describe(minhash_pack(minhash_import('{1,6,3}'), 2))).bits AS w2,
       (minhash_describe(minhash_pack(minhash_import('{1,6,3}'), 1))).bits AS w1;
SELECT pg_typeof((minhash_describe(minhash('a'))).bits), length((minhash_describe(minhash('a'))).bits);

-- Slots from elsewhere: comparable within one source only.
SELECT minhash_sim(minhash_import('{1,2,3,4}', 'x'), minhash_import('{1,2,3,5}', 'x')) AS same_source,
       (minhash_describe(minhash_import('{1,2,3,4}'))).parameters ->> 'unit' AS unit,
       (minhash_describe(minhash_import('{4294967295,4294967295}'))).parameters -> 'empty' AS empty,
       (minhash_describe(minhash_import('{4294967295,7}'))).slots AS not_empty;

-- Aggregates: the same result as minhash of the array; NULL without elements.
SELECT minhash_agg(w) = minhash(array_agg(w)) AS texts,
       minhash_agg(w, 64) = minhash(array_agg(w), 64) AS sized,
       minhash_agg(w, 64, 7) = minhash(array_agg(w), 64, 7) AS seeded,
       minhash_agg(w, 64, 7) = minhash_agg(w, 64) AS seed_counts
FROM (SELECT 'w' || i AS w FROM generate_series(1, 3000) i) x;
SELECT minhash_agg(i) = minhash(array_agg(i::bigint)) AS numbers,
       minhash_agg(DISTINCT i % 10) = minhash_agg(i % 10) AS repeats,
       minhash_agg(i ORDER BY i DESC) = minhash_agg(i) AS any_order,
       minhash_agg(nullif(i, 5)) = minhash_agg(i) FILTER (WHERE i <> 5) AS nulls
FROM generate_series(1, 3000) i;
SELECT minhash_agg(x) IS NULL AS no_rows FROM (SELECT 1 AS x WHERE false) x;
SELECT minhash_agg(NULL::text) IS NULL AS only_nulls, minhash_union(NULL) IS NULL AS no_union;

-- Parts together equal the whole.
SELECT minhash_union(m) = (SELECT minhash_agg(i) FROM generate_series(1, 5000) i) AS whole
FROM (SELECT minhash_agg(i) AS m FROM generate_series(1, 5000) i GROUP BY i % 7) parts;

-- Parallel equals serial, hashed equals sorted.
CREATE TABLE elements AS SELECT i, i % 50 AS g, 'w' || i AS w FROM generate_series(1, 60000) i;
ALTER TABLE elements SET (parallel_workers = 2);
CREATE TABLE serial AS SELECT g, minhash_agg(w) AS t, minhash_agg(i, 256, 3) AS n FROM elements GROUP BY g;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT minhash_agg(w), minhash_agg(i, 256, 3) FROM elements;
SELECT minhash_agg(w) = (SELECT minhash_union(t) FROM serial) AS texts,
       minhash_agg(i, 256, 3) = (SELECT minhash_union(n) FROM serial) AS numbers FROM elements;
SET enable_hashagg = off;
SELECT count(*) AS differing
FROM (SELECT g, minhash_agg(w) AS t, minhash_agg(i, 256, 3) AS n FROM elements GROUP BY g
      EXCEPT TABLE serial) x;
RESET enable_hashagg; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;

-- As window functions, with growing and with moving frames.
SELECT bool_and(m = (SELECT minhash_agg(j) FROM generate_series(1, i) j)) AS growing,
       bool_and(moving = (SELECT minhash_agg(j) FROM generate_series(greatest(i - 2, 1), i) j)) AS moving
FROM (SELECT i, minhash_agg(i) OVER (ORDER BY i) AS m,
             minhash_agg(i) OVER (ORDER BY i ROWS 2 PRECEDING) AS moving
      FROM generate_series(1, 1200) i) x WHERE i % 97 = 0;
SELECT bool_and(minhash_sim(u, m) = 1) AS union_over
FROM (SELECT minhash_union(minhash_agg(i)) OVER (ORDER BY g) AS u,
             (SELECT minhash_agg(j) FROM generate_series(1, 100) j WHERE j % 10 <= g) AS m
      FROM (SELECT i, i % 10 AS g FROM generate_series(1, 100) i) e GROUP BY g) x;
DROP TABLE elements, serial;

-- Rejections.
\set VERBOSITY default
SELECT minhash_sim(minhash('a b c'), minhash('a b c', k => 2));
SELECT minhash('a b c') || minhash('a b c', slots => 64);
SELECT minhash('a b c') || minhash('a b c', seed => 1);
SELECT minhash_pack(minhash('a b c'), 8) || minhash_pack(minhash('a b c'), 8);
SELECT minhash_containment(minhash_pack(minhash('a b c'), 16), minhash_pack(minhash('a b c'), 16));
SELECT minhash_cardinality(minhash_pack(minhash('a b c'), 16));
SELECT minhash_cardinality(minhash_import('{1,2}'));
SELECT minhash_pack(minhash('a b c'), 3);
SELECT minhash_pack(minhash_pack(minhash('a b c'), 8), 16);
SELECT minhash_sim(minhash_import('{1}', 'x'), minhash_import('{1}', 'y'));
SELECT minhash_import('{}');
SELECT minhash_import('{1,-1}');
SELECT minhash_import('{1,NULL}');
SELECT minhash_interval(minhash('a'), minhash('a'), 1);
SELECT minhash_interval(minhash('a'), minhash('a'), 'NaN');
SELECT minhash_union(m) FROM (VALUES (minhash('a b c')), (minhash('a b c', 2))) v (m);
SELECT minhash_union(minhash_pack(minhash('a b c'), 8));
SELECT minhash_agg(i, i) FROM generate_series(1, 3) i;
SELECT minhash_agg(i, 2000) FROM generate_series(1, 3) i;

-- Half of a is in b: if b is 8 times as large, the estimates are useful; if it is 250 times as large, most slots are not informative.
SELECT times, bool_and(estimate IS NOT NULL) AS all_tell, sqrt(avg((estimate - 0.5) ^ 2)) < 0.15 AS of_use
FROM (VALUES (8), (250)) t (times), generate_series(1, 40) seed, LATERAL (
    SELECT minhash_containment((SELECT minhash_agg(seed * 100000 + i) FROM generate_series(1, 20) i),
                               (SELECT minhash_agg(seed * 100000 + 10 + i) FROM generate_series(1, 20 * times) i))) e (estimate)
GROUP BY 1 ORDER BY 1;
