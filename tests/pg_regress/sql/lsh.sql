-- The classic scheme: bands of rows, and the choice of their numbers.
-- Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", figure 3.8: b = 20, r = 5.
SELECT s, round(lsh_probability(s, 20, 5)::numeric, 3) AS p
FROM unnest('{0,0.2,0.3,0.4,0.5,0.6,0.7,0.8,1}'::float8[]) s;

SELECT t, bands, rows, round(fp_area::numeric, 4) AS fp, round(fn_area::numeric, 4) AS fn
FROM unnest('{0.5,0.7,0.8,0.9}'::float8[]) t, lsh_params(t);
SELECT bands, rows FROM lsh_params(0.5, 256, fp_weight => 0.1, fn_weight => 0.9);

-- Keys of the classic scheme.
SELECT cardinality(minhash_bands(m, 25, 5)) AS keys,
       minhash_bands(m, 25, 5) = minhash_bands(minhash('some other words, and more'), 25, 5) AS equal,
       minhash_bands(m, 25, 5) && minhash_bands(minhash('entirely different text, not alike'), 25, 5) AS different,
       cardinality(minhash_bands(minhash(''), 25, 5)) AS empty
FROM minhash('Some other words and more') m;
-- The measured share of pairs with a common band follows the curve: Jaccard 1/2, 20 bands of 5 rows.
SELECT abs(avg((minhash_bands(minhash(a), 20, 5) && minhash_bands(minhash(b), 20, 5))::int)
           - lsh_probability(0.5, 20, 5)) < 0.05 AS on_the_curve
FROM generate_series(1, 2000) i,
     LATERAL (SELECT array_agg('w' || i || '-' || j) FILTER (WHERE j <= 30) AS a,
                     array_agg('w' || i || '-' || j) FILTER (WHERE j > 10) AS b
              FROM generate_series(1, 40) j) sets;

-- Rejected.
SELECT lsh_probability(1.5, 20, 5);
SELECT lsh_probability('NaN', 20, 5);
SELECT lsh_probability(0.5, 0, 5);
SELECT lsh_params(0);
SELECT lsh_params('NaN');
SELECT lsh_params(0.5, 0);
SELECT lsh_params(0.5, 128, 0, 0);
SELECT lsh_params(0.5, 128, 'Infinity');
SELECT minhash_bands(minhash('a'), 25, 6);
SELECT minhash_bands(minhash('a'), 0, 6);
