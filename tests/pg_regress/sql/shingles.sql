-- Shingles: the worked examples of the literature.
SELECT shingles('to be or not to be, that is the question', 4);
SELECT resemblance('a rose is red a rose is white', 'a rose is white a rose is red', 4);

-- Unchanged characters: 17/21, 16/26, and two examples from a lecture.
SELECT resemblance(a, b, 2, 'char', 'none') AS k2, resemblance(a, b, 5, 'char', 'none') AS k5,
       (SELECT count(*) FILTER (WHERE x = y)::float8 / count(DISTINCT coalesce(x, y))
        FROM (SELECT DISTINCT substr(a, i, 5) AS x FROM generate_series(1, length(a) - 4) i) p
        FULL JOIN (SELECT DISTINCT substr(b, i, 5) AS y FROM generate_series(1, length(b) - 4) i) q
        ON x = y) AS k5_brute_force
FROM (VALUES ('The cat sat on the mat.', 'The red cat sat on the mat.')) v (a, b);
SELECT resemblance(a, 'how long does it take to fly from Berlin to Helsinki?', 4, 'char', 'none') AS other_words,
       resemblance(a, 'what''s the flight time from Berlin to Oulu?', 4, 'char', 'none') AS other_city
FROM (VALUES ('what''s the flight time from Berlin to Helsinki?')) v (a);
SELECT shingles('  A  b ', 2, 'char', 'none') AS "none", shingles(E'  A\t b ', 2, 'char') AS "case";

-- Five words and one more; a sentence of 16 words and the same twice; N words give N - 4.
SELECT resemblance('one two three four five', 'one two three four five six', 5);
SELECT cardinality(shingles(s, 5)) AS once, cardinality(shingles(s || ' ' || s, 5)) AS twice,
       resemblance(s, s || ' ' || s, 5)
FROM (SELECT string_agg('w' || i, ' ' ORDER BY i) FROM generate_series(1, 16) i) v (s);
SELECT bool_and(cardinality(shingle_hashes(s, 5)) = n - 4) AS n_minus_4
FROM (SELECT n, (SELECT string_agg('w' || i, ' ') FROM generate_series(1, n) i) AS s
      FROM (VALUES (5), (6), (1000), (20000)) v (n)) d;

-- Stop words: if all k words exist.
SELECT shingles('At a rally to kick off a weeklong campaign for the South Carolina primary', 3, 'stop');
SELECT shingles('The end', 3, 'stop') AS short, shingles('The end of', 3, 'stop') AS full;

-- Short and empty documents.
SELECT shingles('Only two') AS short, shingles(' -- !') AS no_word, shingles('', 1, 'char') AS empty,
       shingle_hashes('') AS no_hash, resemblance('', '') AS empty_empty, resemblance('', 'a') AS empty_some;

-- Spellings that folding makes equal; how wide psql shows them depends on its version.
\pset format unaligned
SELECT a, b, resemblance(a, b) AS "case", resemblance(a, b, fold => 'marks') AS marks, resemblance(a, b, fold => 'none') AS "none"
FROM (VALUES ('Café', E'cafe\u0301'), ('１５０６', '1506'), ('ﬁne', 'fine'), ('STRASSE', 'straße'),
             ('ΣΟΦΟΣ', 'σοφος'), (E'ex\u00adam\u200bple', 'example'), ('ｶﾞ', 'ガ'), ('Crème', 'creme'),
             ('السَّلَامُ', 'السلام'), ('FM 1506', 'FM 1507')) v (a, b);
\pset format aligned

-- Scripts.
SELECT language, shingles(text, k) FROM (VALUES
    ('Chinese', '床前明月光，疑是地上霜。', 3), ('Japanese', '東京タワーへ行きました。', 3),
    ('Thai', 'สวัสดีครับ', 3), ('Arabic', 'السلام عليكم ورحمة الله', 2), ('Hindi', 'हिन्दी भाषा सुन्दर है।', 2),
    ('Russian', 'Съешь ещё этих мягких булок', 2), ('Turkish', 'İstanbul''da ILIK bir gün', 2),
    ('Korean', '한국어로 쓴 글', 2), ('Emoji', 'so 👩‍👩‍👧 happy ✌🏽️ today', 2)) v (language, text, k);

-- Hashes: sorted, distinct, depending on the seed, also for texts.
SELECT h, h = ARRAY(SELECT DISTINCT unnest(h) ORDER BY 1) AS is_set, shingle_hashes('a b c d a b c') = h AS repeated,
       shingle_hashes('a b c d', seed => 1) && h AS other_seed
FROM (SELECT shingle_hashes('A b, c: D')) v (h);
SELECT shingle_hashes(ARRAY['b', NULL, 'a', 'b']) = shingle_hashes('{{a},{b}}'::text[]) AS sets,
       shingle_hashes('{}'::text[]) AS empty, shingle_hashes(ARRAY['a'], 5) && shingle_hashes(ARRAY['a']) AS other_seed;

-- Sets: repeated and NULL elements, any dimension.
SELECT jaccard('{1,2,2,NULL,3}'::bigint[], '{{2},{3},{4}}'::bigint[]), containment('{1,2,2,NULL}'::bigint[], '{2,3}'::bigint[]);
SELECT jaccard('{a,b,b,NULL,ä}'::text[], '{b,ä,d}'::text[]), containment('{a,b,NULL}'::text[], '{{b},{c}}'::text[]);
SELECT jaccard('{}'::text[], '{}'), jaccard('{NULL}'::bigint[], '{1}'), containment('{}'::bigint[], '{}'), containment('{1}'::bigint[], NULL) IS NULL AS "null";
SELECT resemblance(a, b), containment(a, b), containment(b, a)
FROM (VALUES ('one two three four', 'zero one two three four five')) v (a, b);

-- Samples, sketches, supershingles.
WITH d AS (SELECT shingle_hashes(string_agg('w' || i * i % 977, ' ')) AS h FROM generate_series(1, 400) i)
SELECT n, shingle_sample(h, n) = ARRAY(SELECT x FROM unnest(h) x WHERE ((x % n) + n) % n = 0 ORDER BY x) AS sample,
       bucket_sketch(h, n) = ARRAY(SELECT min(x) FROM unnest(h) x GROUP BY ((x % n) + n) % n ORDER BY 1) AS sketch
FROM d, (VALUES (1), (2), (7), (64)) v (n);
SELECT cardinality(supershingles('{5,1,4,2,3}', 2)) AS four, supershingles('{1,2,3}', 3) = supershingles('{1,2,3}', 9) AS whole,
       supershingles('{1,2,3,50,60}', 3) && supershingles('{1,2,3,70}', 3) AS shared, supershingles('{}', 2) AS empty;

-- Winnowing: a common run of window + k - 1 words is found.
SELECT winnow(a, 3, 4) && winnow(b, 3, 4) AS passage_of_6,
       cardinality(winnow('one two three', 3, 4)) AS short, winnow('', 3, 4) AS empty
FROM (VALUES ('it was said that the ships of the harbour sail at dawn or not at all',
              'nobody heard THE SHIPS OF THE HARBOUR SAIL in this town')) v (a, b);

-- Reposts of short messages: an inverted index on samples ranks by matched / available shingles.
CREATE TABLE messages (id int PRIMARY KEY, body text, sample bigint[] GENERATED ALWAYS AS (shingle_sample(shingle_hashes(body, 2), 2)) STORED);
CREATE INDEX ON messages USING gin (sample);
INSERT INTO messages
SELECT i, (ARRAY['RT ', 'RT @anna: ', '', 'so true! ', 'look: '])[i % 5 + 1]
          || 'the ferry to the island leaves at seven every morning and comes back when it is dark'
          || (ARRAY['', ' #ferry', ' lol', ' ... who knew?', ' (thanks)'])[i % 3 + 1]
FROM generate_series(1, 10) i
UNION ALL SELECT 11, 'my neighbour sells apples and pears from her garden behind the old school';
SET enable_seqscan = off;
WITH q AS (SELECT shingle_sample(shingle_hashes('RT the ferry to the island leaves at seven every morning and comes back when it is dark', 2), 2) AS sample)
SELECT count(*) AS reposts, bool_or(id = 11) AS unrelated, min(round(containment(q.sample, m.sample)::numeric, 2)) AS least
FROM messages m, q WHERE m.sample && q.sample;
SELECT count(*) AS matches FROM messages m
WHERE m.sample && (SELECT sample FROM messages WHERE id = 11) AND id <> 11;
RESET enable_seqscan;
DROP TABLE messages;

-- Bad arguments.
SELECT shingles('a', 0);
SELECT shingles('a', 257);
SELECT shingles('a', unit => 'line');
SELECT shingles('a', fold => 'lower');
SELECT shingle_sample('{1}', 0);
SELECT bucket_sketch('{1}', -1);
SELECT supershingles('{1}', 257);
SELECT winnow('a', 3, 0);
SELECT winnow('a', 3, 65537);
\echo :LAST_ERROR_SQLSTATE
