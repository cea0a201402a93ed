-- The type minhash_signature: forms, casts, order, and invalid values.

-- A literal, varchar, char(n) and a domain all reach minhash(text).
CREATE DOMAIN title AS text;
SELECT minhash('some text') = minhash('some text'::varchar) AS "varchar",
       minhash('some text') = minhash('some text'::char(20)) AS "char",
       minhash('some text') = minhash('some text'::title) AS domain;

SELECT parameters FROM minhash_describe(minhash('some text'));
SELECT parameters - 'seed_id' FROM minhash_describe(minhash('some text', 5, 'char', 'none', 16, 42));
SELECT parameters FROM minhash_describe(minhash(''));
SELECT minhash(NULL) IS NULL AS "null";
SELECT minhash('a b c d', slots => 4);
SELECT minhash('', slots => 4);

-- An empty document is similar to nothing, not even to itself.
SELECT minhash_sim(minhash(''), minhash('')) AS empty_empty,
       minhash_sim(minhash(''), minhash('some text')) AS empty_some,
       minhash_sim(minhash('some text'), minhash('some text')) AS some_some,
       minhash_distance(minhash('some text'), minhash('other words')) AS distance,
       minhash('some text') <=> minhash('some text') AS operator;

-- Round trips.
CREATE TABLE signatures (id int, sig minhash_signature);
INSERT INTO signatures
SELECT k * 10 + slots, minhash('the quick brown fox jumps over the lazy dog', k, unit, fold, slots, k)
FROM generate_series(1, 3) k, (VALUES ('word'), ('char')) u (unit),
     (VALUES ('none'), ('case'), ('marks')) f (fold), (VALUES (1), (7), (128)) s (slots);
INSERT INTO signatures VALUES (0, minhash('')), (1, NULL);
SELECT count(*) AS signatures,
       count(*) FILTER (WHERE sig::text::minhash_signature = sig) AS by_text,
       count(*) FILTER (WHERE sig::bytea::minhash_signature = sig) AS by_bytea,
       count(*) FILTER (WHERE minhash_signature_send(sig) = sig::bytea) AS by_send
FROM signatures;

-- DISTINCT, GROUP BY, hash and merge joins, ORDER BY.
SELECT count(*) FROM (SELECT DISTINCT sig FROM signatures) s;
SET enable_hashagg = off;
SELECT count(*) FROM (SELECT DISTINCT sig FROM signatures) s;
RESET enable_hashagg;
SELECT count(*) FROM (SELECT sig FROM signatures GROUP BY sig) s;
SELECT count(*) FROM signatures a JOIN signatures b USING (sig);
SET enable_hashjoin = off;
SELECT count(*) FROM signatures a JOIN signatures b USING (sig);
RESET enable_hashjoin;
CREATE INDEX ON signatures (sig);
CREATE INDEX ON signatures USING hash (sig);
SET enable_seqscan = off;
SELECT count(*) FROM signatures WHERE sig = minhash('');
SELECT count(*) FROM signatures WHERE sig > minhash('');
RESET enable_seqscan;
SELECT bool_and((a.sig < b.sig) = (a.sig::bytea < b.sig::bytea)) AS bytewise,
       bool_and((_minhash_hash(a.sig) - _minhash_hash(a.sig, 0)) % 4294967296 = 0) AS low_half
FROM signatures a, signatures b;

-- Bad arguments.
SELECT minhash('some text', 0);
SELECT minhash('some text', 257);
SELECT minhash('some text', slots => 0);
SELECT minhash('some text', slots => 100000);
SELECT minhash('some text', slots => -1);
SELECT minhash('some text', unit => 'x');
SELECT minhash('some text', fold => 'x');
SELECT minhash('some text', unit => 'wört');
\echo :LAST_ERROR_SQLSTATE

-- Signatures made with different parameters.
SELECT minhash_sim(minhash('some text'), minhash('some text', 5));
SELECT minhash('some text') <=> minhash('some text', seed => 1);
\echo :LAST_ERROR_SQLSTATE

-- Conditions on them are false, with a warning once per session for each pair of parameters.
SELECT near_dup(minhash('some text'), minhash('some text', n), 0.8) FROM unnest('{5, 5, 4, 3}'::int[]) n;
SELECT near_dup(minhash('some text', 4), minhash('some text'), 0.8);
SELECT minhash('', 5) <@ _ball(minhash('some text', 6), 0.8) FROM generate_series(1, 2);
-- Leaders of parallel queries warn, workers do not.
CREATE TABLE apart AS SELECT minhash('some text of words', 7) AS sig FROM generate_series(1, 100);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SELECT count(*) FROM apart WHERE near_dup(sig, minhash('some text of words', 8), 0.8);
RESET parallel_leader_participation;
RESET min_parallel_table_scan_size;
RESET parallel_tuple_cost;
RESET parallel_setup_cost;
DROP TABLE apart;

-- Bad text.
SELECT near_dup(minhash('some text'), 'some text', 0.8);
SELECT ''::minhash_signature;
SELECT 'some text'::minhash_signature;
SELECT 'minhash:2:word:3:case:1x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:line:3:case:1x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:0:case:1x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:lower:1x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:2000x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:1x31:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:1:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:1x32:+000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:1x32:0000000000000000:AAAAA'::minhash_signature;
SELECT 'minhash:1:word:3:case:2x32:0000000000000000:AAAAAA=='::minhash_signature;
SELECT 'minhash:1:word:3:case:1x32:0000000000000000://///w=='::minhash_signature;
SELECT left(minhash('some text')::text, 200)::minhash_signature;
SELECT '  minhash:1:word:3:case:1x32:0000000000000000:AAAAAA==  '::minhash_signature;
\echo :LAST_ERROR_SQLSTATE

-- Bad binary.
SELECT ''::bytea::minhash_signature;
SELECT '\x01'::bytea::minhash_signature;
SELECT substr(minhash('some text')::bytea, 1, 100)::minhash_signature;
SELECT (minhash('some text')::bytea || '\x00')::minhash_signature;
SELECT set_byte(minhash('some text')::bytea, 0, 9)::minhash_signature;
SELECT set_byte(minhash('some text')::bytea, 7, 64)::minhash_signature;
SELECT set_byte(minhash('some text')::bytea, 7, 129)::minhash_signature;
\echo :LAST_ERROR_SQLSTATE

DROP TABLE signatures;
DROP DOMAIN title;
