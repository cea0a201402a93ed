-- Hamming distance, and keys for looking up close bit strings with a B-tree.
SELECT bit_hamming(B'1011', B'0010'), bit_hamming(B'', B''), bit_hamming(X'ff', X'ff'),
       bit_hamming(X'0123456789abcdef', X'fedcba9876543210'),
       bit_hamming(B'101'::varbit, B'010'::varbit), bit_hamming(NULL, B'1') IS NULL;
SELECT bit_hamming(B'1', B'11');

-- Compared with counting ones, for lengths around whole bytes and words.
SELECT count(*), bool_and(bit_hamming(a, b) = length(replace((a # b)::text, '0', ''))) AS right_count
FROM (SELECT left(string_agg(md5(i::text || j), ''), n)::text, n FROM generate_series(1, 20) i, generate_series(1, 3) j,
      unnest(ARRAY[2, 4, 16, 18, 32, 64]) n GROUP BY i, n) v (hex, n),
     LATERAL (SELECT ('x' || hex)::varbit AS a, ('x' || reverse(hex))::varbit AS b) bits;

-- The same number of keys as subsets: B over B - d.
SELECT cardinality(hamming_bands(X'0123456789abcdef', 3)) AS four,
       cardinality(hamming_bands(X'0123456789abcdef', 3, 6)) AS twenty,
       cardinality(hamming_bands(X'0123456789abcdef', 0)) AS one,
       cardinality(hamming_probe(X'0123456789abcdef', 3, 1, 6)) AS four_of_twenty,
       hamming_probe(X'0123456789abcdef', 3, 1, 6) <@ hamming_bands(X'0123456789abcdef', 3, 6) AS among,
       hamming_bands(B'101', 3) IS NOT NULL AS more_blocks_than_bits,
       hamming_bands(NULL, 3) IS NULL AS null_bits, hamming_bands(B'1', NULL) IS NULL AS null_distance;
SELECT hamming_bands(X'00ff', 1);

-- Lookup = sequential scan, on clustered values of 64 and of 100 bits in one column.
CREATE TABLE hashes (id int PRIMARY KEY, h varbit NOT NULL);
INSERT INTO hashes
SELECT i, set_bit(set_bit(set_bit(base, i % 100 % n, i % 2), i * 7 % n, i / 2 % 2), i * 31 % n, i / 4 % 2)
FROM generate_series(1, 1500) i,
     LATERAL (SELECT CASE WHEN i % 3 = 0 THEN 100 ELSE 64 END) size (n),
     LATERAL (SELECT substring((('x' || md5((i % 12)::text) || md5((i % 12 + 100)::text))::varbit) FROM 1 FOR n)) v (base);
CREATE TABLE keys AS SELECT id, unnest(hamming_bands(h, 3, 5)) AS key FROM hashes;
CREATE INDEX ON keys (key, id);
ANALYZE hashes, keys;
WITH scan AS (
    SELECT d, q.id AS q, t.id FROM generate_series(0, 3) d, hashes q JOIN hashes t ON length(q.h) = length(t.h)
    WHERE q.id <= 100 AND bit_hamming(q.h, t.h) <= d
), looked_up AS (
    SELECT d, q.id AS q, c.id FROM generate_series(0, 3) d, hashes q,
    LATERAL (SELECT DISTINCT k.id FROM keys k WHERE k.key = ANY (hamming_probe(q.h, 3, d, 5))) c
    JOIN hashes t USING (id)
    WHERE q.id <= 100 AND bit_hamming(q.h, t.h) <= d
)
SELECT (SELECT count(*) FROM scan WHERE d = 3) AS found,
       (SELECT count(*) FROM (TABLE scan EXCEPT TABLE looked_up) x) AS lost,
       (SELECT count(*) FROM (TABLE looked_up EXCEPT TABLE scan) x) AS added;

-- Rejected.
SELECT hamming_bands(X'00ff', -1);
SELECT hamming_bands(X'00ff', 3, 3);
SELECT hamming_bands(X'00ff', 64);
SELECT hamming_bands(X'00ff', 10, 30);
SELECT hamming_probe(X'00ff', 3, 4);
SELECT hamming_probe(X'00ff', 3, -1);
