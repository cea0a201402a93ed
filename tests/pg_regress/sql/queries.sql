-- Errors inside a query report their position in it.
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT 1, sig FROM nowhere', 0.5);
SELECT * FROM near_dup_pairs(NULL::int, E'SELECT 1,\n  sig FORM docs', 0.5);
SELECT * FROM near_dup_clusters(NULL::int, 'SELECT 1 / 0, minhash(''a'')', 0.5);
CREATE TABLE docs (id int, body text, sig minhash_signature);
INSERT INTO docs SELECT n, 'text ' || n, minhash('text ' || n) FROM generate_series(1, 3) n;
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT 1 / (id - 2), sig FROM docs', 0.5);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, sgi FROM docs', 3);
SELECT * FROM connected_components(NULL::int, 'SELECT id, id FROM docs WHERE');
SELECT common_shingles('SELECT body FROM docs WHERE length(body) / (id - id) > 0', 2);

-- In the context of the calling code, and of the code that the query calls.
CREATE FUNCTION raises(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / ($1 - 2); END $$;
CREATE FUNCTION pairs(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM near_dup_pairs(NULL::int, query, 0.5));
END $$;
SELECT pairs('SELECT raises(id), sig FROM docs');
SELECT pairs('SELECT 1, sig FROM nowhere');
-- One within another.
SELECT * FROM near_dup_pairs(NULL::int, $$SELECT a, sig FROM docs, near_dup_pairs(NULL::int, 'SELECT id, sgi FROM docs', 0.5)$$, 0.5);
SELECT * FROM near_dup_pairs(NULL::int, $$SELECT id, sig FROM docs, near_dup_pairs(NULL::int, 'SELECT raises(id), sig FROM docs', 0.5)$$, 0.5);
-- Other messages, too.
CREATE FUNCTION notices(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', $1; RETURN $1; END $$;
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT notices(id), sig FROM docs WHERE id < 3', 1);
-- Caught errors are forgotten.
DO $$
BEGIN
    BEGIN
        PERFORM pairs('SELECT raises(id), sig FROM docs');
    EXCEPTION WHEN division_by_zero THEN
        RAISE NOTICE 'caught';
    END;
    PERFORM 1 / pairs('SELECT id, sig FROM docs WHERE false');
END $$;

-- Types are identified by themselves, not by their names.
CREATE DOMAIN own_signature AS minhash_signature;
CREATE TEMP TABLE own (s own_signature);
INSERT INTO own SELECT sig FROM docs;
SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT 1, s FROM own', 1);
CREATE DOMAIN pg_temp.minhash_signature AS bigint;
CREATE TEMP TABLE z (s pg_temp.minhash_signature, d text);
INSERT INTO z VALUES (16, 'x'), (4096, 'y');
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT 1, s FROM z', 0.5);
