-- Maintained clusters of texts, bit strings and sets, compared with the definition.
SET client_min_messages = warning;
-- Differences of the maintained clusters from those by definition: of rows a and b that are near, and their similarity.
CREATE FUNCTION differences(clusters regclass, tracked regclass, near text, similarity text)
RETURNS TABLE (key bigint, kept text, defined text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('
        SELECT coalesce(k.key, d.key), concat_ws('' '', k.canonical, k.similarity), concat_ws('' '', d.canonical, d.similarity)
        FROM %s k FULL JOIN (
            SELECT s.key, s.cluster AS canonical, CASE WHEN %s THEN s.similarity END AS similarity
            FROM star_clusters(NULL::bigint, %L, %L) s JOIN %s b ON b.id = s.key, LATERAL (SELECT b.*) a) d ON d.key = k.key
        WHERE (k.canonical, k.similarity) IS DISTINCT FROM (d.canonical, d.similarity)',
        clusters, near,
        format('SELECT id FROM %s ORDER BY id', tracked),
        format('SELECT a.id, b.id, %s FROM %s a JOIN %s b ON a.id < b.id AND %s', similarity, tracked, tracked, near), tracked);
END $$;

-- Texts, by their resemblance.
CREATE TABLE docs (id bigint PRIMARY KEY, body text);
INSERT INTO docs VALUES
    (1, 'the harbour authority closed its northern basin on Monday after a barge lost its cargo of gravel'),
    (2, 'The harbour authority closed its northern basin on Monday, after a barge lost its cargo of gravel!'),
    (3, 'the harbour authority closed its northern basin on Tuesday after a barge lost its cargo of sand'),
    (4, NULL), (5, ''), (6, E' \n\t '), (7, '...'), (8, 'word'), (9, 'Word'), (10, 'two words'),
    (11, repeat('again and ', 1000)), (12, repeat('again and ', 900));
SELECT near_dup_track('docs', 'body');
CREATE INDEX docs_other ON docs USING neardup (body text_ops (k = 2));
SELECT near_dup_track('docs', 'body');
CREATE INDEX docs_body ON docs USING neardup (body);
SELECT near_dup_track('docs', 'body');
SELECT * FROM docs_clusters ORDER BY key;
SELECT * FROM differences('docs_clusters', 'docs', 'near_dup(a.body, b.body)', 'resemblance(a.body, b.body)');
-- Cut differently.
SELECT near_dup_track('docs', 'body', 0.9, clusters => 'by_char', k => 5, unit => 'char', fold => 'marks');
CREATE INDEX ON docs USING neardup (body text_ops (k = 2));
CREATE INDEX ON docs USING neardup (body text_ops (k = 5, unit = char, fold = marks));
SELECT near_dup_track('docs', 'body', 0.7, 'length(body) DESC NULLS LAST', 'in_pairs', k => 2);
SELECT near_dup_track('docs', 'body', 0.9, clusters => 'by_char', k => 5, unit => 'char', fold => 'marks');
SELECT key, canonical, round(similarity::numeric, 2) AS similarity FROM in_pairs ORDER BY key;
SELECT * FROM differences('by_char', 'docs',
    $$near_dup(a.body, b.body, 0.9, 5, 'char', 'marks')$$, $$resemblance(a.body, b.body, 5, 'char', 'marks')$$);
SELECT clusters, column_name, threshold, k, unit, fold FROM near_dup_tracked ORDER BY clusters::text;
-- Canonical rows keep keys.
SELECT attname, atttypid::regtype FROM pg_attribute
WHERE attrelid = 'docs_clusters_canonical'::regclass AND attnum > 0 ORDER BY attnum;
SELECT key, left(kept, 20) FROM docs_clusters_canonical ORDER BY key;
-- Changes, one of them to an equal set of shingles.
UPDATE docs SET body = upper(body) || ' ' WHERE id = 1;
UPDATE docs SET body = 'word' WHERE id IN (4, 5);
UPDATE docs SET body = NULL WHERE id = 8;
UPDATE docs SET body = '  ' WHERE id = 11;
SELECT clusters, behind FROM near_dup_tracked ORDER BY clusters::text;
SELECT * FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'docs', 'near_dup(a.body, b.body)', 'resemblance(a.body, b.body)');
SELECT event, from_cluster, to_cluster, key, round(similarity::numeric, 4) AS similarity, replaced FROM docs_clusters_log ORDER BY number;
SELECT rows FROM near_dup_refresh('by_char');
SELECT * FROM differences('by_char', 'docs',
    $$near_dup(a.body, b.body, 0.9, 5, 'char', 'marks')$$, $$resemblance(a.body, b.body, 5, 'char', 'marks')$$);
-- Long documents.
INSERT INTO docs SELECT 20, string_agg('w' || i, ' ') FROM generate_series(1, 200000) i;
INSERT INTO docs SELECT 21, string_agg('w' || i, ' ') FROM generate_series(5, 200000) i;
SELECT rows > 1 AS found FROM near_dup_refresh('docs_clusters');
SELECT key, canonical, round(similarity::numeric, 4) AS similarity FROM docs_clusters WHERE key >= 20 ORDER BY key;
-- A canonical row is deleted, and another one takes its place.
DELETE FROM docs WHERE id = 1;
SELECT new_canonical FROM near_dup_refresh('docs_clusters');
SELECT event, to_cluster, key, replaced FROM docs_clusters_log WHERE event = 'new canonical';
SELECT * FROM near_dup_refresh('docs_clusters', rebuild => true);
SELECT * FROM differences('docs_clusters', 'docs', 'near_dup(a.body, b.body)', 'resemblance(a.body, b.body)');
-- Many documents of one template, found together.
INSERT INTO docs SELECT 100 + i, 'a template of many words, all alike for every customer of this house, who is number ' || i % 7
FROM generate_series(1, 200) i;
SELECT rows, created, joined FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'docs', 'near_dup(a.body, b.body)', 'resemblance(a.body, b.body)');
UPDATE docs SET body = body || ', as we said' WHERE id BETWEEN 101 AND 250;
SELECT rows FROM near_dup_refresh('docs_clusters');
SELECT * FROM differences('docs_clusters', 'docs', 'near_dup(a.body, b.body)', 'resemblance(a.body, b.body)');
ALTER TABLE docs RENAME body TO content;
UPDATE docs SET content = 'word' WHERE id = 20;
SELECT rows, joined FROM near_dup_refresh('docs_clusters');
\set VERBOSITY terse
ALTER TABLE docs ALTER content TYPE varchar;
\set VERBOSITY default

-- Domains and varchar, in a scope.
CREATE DOMAIN prose AS varchar(1000) CHECK (value <> 'forbidden');
CREATE TABLE letters (id bigint PRIMARY KEY, tenant text, body prose);
CREATE INDEX ON letters USING neardup (tenant scope_ops, body);
SELECT near_dup_track('letters', 'body', 0.9, scope => '{tenant}');
INSERT INTO letters SELECT i, (ARRAY['a', 'b', NULL])[1 + i % 3], 'the same letter to everybody here' || repeat(' again', i / 20)
FROM generate_series(1, 60) i;
SELECT rows, created, joined FROM near_dup_refresh('letters_clusters');
SELECT * FROM differences('letters_clusters', 'letters', 'a.tenant = b.tenant AND near_dup(a.body, b.body, 0.9)',
    'resemblance(a.body, b.body)');

-- Bit strings, by their distance.
CREATE TABLE images (id bigint PRIMARY KEY, hash bit(16), any_length varbit);
CREATE INDEX ON images USING neardup (hash hamming_ops (distance = 2));
CREATE INDEX ON images USING neardup (any_length hamming_ops (distance = 1));
INSERT INTO images VALUES (1, x'0000', B''), (2, x'0001', B''), (3, x'0007', B'1'), (4, x'FFFF', B'0'), (5, NULL, NULL);
SELECT near_dup_track('images', 'hash', 2), near_dup_track('images', 'any_length', 1, clusters => 'by_any');
SELECT * FROM images_clusters ORDER BY key;
INSERT INTO images SELECT 10 + i, (i * 37)::bit(16), (i % 50)::bit(40)::varbit FROM generate_series(1, 150) i;
UPDATE images SET hash = x'0003', any_length = B'11' WHERE id = 1;
SELECT rows > 100 AS found_together FROM near_dup_refresh('images_clusters');
SELECT rows > 100 AS found_together FROM near_dup_refresh('by_any');
SELECT * FROM differences('images_clusters', 'images', 'hamming_within(a.hash, b.hash, 2)',
    '1 - bit_hamming(a.hash, b.hash)::float8 / 16');
SELECT * FROM differences('by_any', 'images', 'hamming_within(a.any_length, b.any_length, 1)',
    '1 - bit_hamming(a.any_length, b.any_length)::float8 / greatest(length(a.any_length), 1)');

-- Sets, by their Jaccard similarity.
CREATE TABLE baskets (id bigint PRIMARY KEY, goods bigint[]);
CREATE INDEX ON baskets USING neardup (goods);
INSERT INTO baskets VALUES (1, '{1,2,3,4}'), (2, '{4,3,2,1,1}'), (3, '{1,2,3,4,5,NULL}'), (4, '{}'), (5, NULL), (6, '{NULL}'),
    (7, '{{1,2},{3,4}}'), (8, '{9}');
SELECT near_dup_track('baskets', 'goods', 0.8);
SELECT * FROM baskets_clusters ORDER BY key;
INSERT INTO baskets SELECT 10 + i, ARRAY(SELECT g % 40 FROM generate_series(i % 20, i % 20 + 9) g) FROM generate_series(1, 150) i;
DELETE FROM baskets WHERE id = 1;
SELECT rows FROM near_dup_refresh('baskets_clusters');
SELECT * FROM differences('baskets_clusters', 'baskets', 'near_dup(a.goods, b.goods)', 'jaccard(a.goods, b.goods)');
SELECT clusters, threshold, k, unit, fold FROM near_dup_tracked WHERE k IS NULL ORDER BY clusters::text;

-- Unsuitable arguments.
SELECT near_dup_track('docs', 'content', 2);
SELECT near_dup_track('docs', 'content', k => 0);
SELECT near_dup_track('docs', 'content', unit => 'line');
SELECT near_dup_track('docs', 'content', fold => 'all');
SELECT near_dup_track('images', 'hash', 0.8);
SELECT near_dup_track('images', 'hash', 64);
SELECT near_dup_track('images', 'hash', 3, clusters => 'wider');
SELECT near_dup_track('images', 'hash', 2, k => 3);
SELECT near_dup_track('baskets', 'goods', 1.5);
SELECT near_dup_track('baskets', 'goods', unit => 'word');
-- Types that are not compared.
DO $$
DECLARE
    type_name text;
    accepted text[];
BEGIN
    FOR type_name IN SELECT format_type(t.oid, NULL) FROM pg_type t
        WHERE t.typtype <> 'p' AND t.typnamespace = 'pg_catalog'::regnamespace AND t.typisdefined ORDER BY t.oid
    LOOP
        BEGIN
            EXECUTE format('CREATE TABLE of_type (id int PRIMARY KEY, value %s)', type_name);
        EXCEPTION WHEN others THEN
            CONTINUE;
        END;
        BEGIN
            PERFORM near_dup_track('of_type', 'value', 1);
        EXCEPTION
            WHEN datatype_mismatch THEN NULL;
            WHEN object_not_in_prerequisite_state THEN accepted := accepted || type_name;
        END;
        DROP TABLE of_type;
    END LOOP;
    RAISE EXCEPTION 'compared: %', accepted;
END $$;

-- A threshold at which clusters cannot be computed is rejected before there are rows.
CREATE TABLE low (id int PRIMARY KEY, body text);
CREATE INDEX ON low USING neardup (body);
SELECT near_dup_track('low', 'body', 0.02);
DROP TABLE low;
