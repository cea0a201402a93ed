-- A short mail and its reply: resemblance 1/2, S_J 5/6.
SELECT common, longer, shorter, s_l, s_j,
       resemblance('Lunch at noon on Friday?', 'Lunch at noon on Friday? Yes!', 5) AS s_r
FROM chunk_similarity('Lunch at noon on Friday?', 'Lunch at noon on Friday? Yes!');

-- A sentence of 12 shingles pasted twice: literal 50 %, information 100 %, resemblance 75 %.
CREATE VIEW pasted AS
SELECT string_agg('w' || i, ' ') AS once, string_agg('w' || i, ' ') || '; ' || string_agg('w' || i, ' ') AS twice
FROM generate_series(1, 16) i;
SELECT (chunk_similarity(once, twice)).s_l AS literal,
       (chunk_similarity(once, twice, 5, 'information')).s_l AS information,
       resemblance(once, twice, 5)
FROM pasted;

-- Overlapping chunks: literal C = 5, information C = 9, resemblance 2/14.
CREATE VIEW overlapping AS
SELECT 'And cigars for the mayor? Later on, he said, I will need money and luck.' AS a,
       'I will need money and cigars for the mayor.' AS b;
SELECT matching, s.* FROM overlapping,
       (VALUES ('literal'), ('information')) m (matching), chunk_similarity(a, b, 5, matching) s;
SELECT resemblance(a, b, 5) = 2 / 14::float8 AS two_of_14 FROM overlapping;
SELECT matching, c.* FROM overlapping,
       (VALUES ('literal'), ('information')) m (matching), common_chunks(a, b, 5, matching) c;

-- L = 100, S = 97, C = 85 in two chunks: 69 %, 76 %, 85 %.
WITH parts AS (
    SELECT p, string_agg(p || i, ' ' ORDER BY i) AS words
    FROM (VALUES ('c', 42), ('d', 43), ('e', 7), ('f', 8), ('g', 5), ('h', 7)) v (p, n), generate_series(1, n) i
    GROUP BY p
), docs AS (
    SELECT (SELECT string_agg(words, ' ' ORDER BY position(p IN 'ecfd')) FROM parts WHERE p IN ('e', 'c', 'f', 'd')) AS a,
           (SELECT string_agg(words, ' ' ORDER BY position(p IN 'cgdh')) FROM parts WHERE p IN ('c', 'g', 'd', 'h')) AS b
)
SELECT common, longer, shorter, round(100 * resemblance(a, b, 5)) AS s_r, round(100 * s_j) AS s_j, round(100 * s_l) AS s_l
FROM docs, chunk_similarity(a, b);

-- A common chunk of 3, 4, 5, 6, 7, 100 words counts 0, 0, 5, 6, 7, 100.
SELECT n, common
FROM (VALUES (3), (4), (5), (6), (7), (100)) v (n),
     (SELECT 1) x,
     LATERAL (SELECT string_agg('c' || i, ' ') AS chunk FROM generate_series(1, n) i) c,
     chunk_similarity('one ' || chunk || ' two three', 'four five ' || chunk || ' six') ORDER BY n;

-- Positions are the same as for substr.
SELECT words, substr(a, a_start, a_length) = chunk AS in_a, substr(b, b_start, b_length) AS in_b
FROM (VALUES ('Ça va? One, two; THREE four five.', '– one two three four five six')) v (a, b), common_chunks(a, b);

-- Longest common substring.
SELECT longest_common_substring('größer', 'Vergrößerung'), longest_common_substring('abc', 'xyz') = '' AS none;

-- Edit distance, with the examples of fuzzystrmatch's manual.
SELECT edit_distance('GUMBO', 'GAMBOL') AS unit, edit_distance('GUMBO', 'GAMBOL', 2, 1, 1) AS weighted,
       edit_distance('extensive', 'exhaustive', max => 2) AS above, edit_distance('extensive', 'exhaustive', max => 4) AS within,
       edit_distance(NULL, 'x') AS "null", edit_distance('', 'größe') AS chars;
SELECT edit_distance(repeat('0123456789', 10000), repeat('0123456789', 9999) || '012345678x');

-- Kinds of difference.
SELECT kind, round(similarity::numeric, 2) AS similarity, words_only_in_a, words_only_in_b
FROM (VALUES (1, 'Invoice 2041: 12 chairs at 80.00, total 960.00'), (2, 'INVOICE 2041 - 12 chairs at 80.00; total: 960.00'),
             (3, 'Invoice 2042: 12 chairs at 85.00, total 1020.00'), (4, 'Reminder. Invoice 2041: 12 chairs at 80.00, total 960.00'),
             (5, 'Invoice 2041: 12 chairs at 80.00, net, total 960.00'), (6, 'Invoice 2041: 12 chairs at 80.00, total 960.00 EUR'),
             (7, 'Invoice 2041: 12 chairs at 80.00, tot'), (8, 'Total 960.00: 12 chairs at 80.00, invoice 2041'),
             (9, 'Offer 2041: 12 tables at 80.00, total 960.00')) v (id, other),
     near_dup_explain('Invoice 2041: 12 chairs at 80.00, total 960.00', other) ORDER BY id;

-- Bad arguments.
SELECT common_chunks('a', 'b', 0);
SELECT chunk_similarity('a', 'b', 5, 'fuzzy');
SELECT edit_distance('a', 'b', -1);
SELECT edit_distance('a', 'b', sub_cost => 1000001);
SELECT edit_distance('a', 'b', max => -1);

-- NULL, empty documents, documents without words.
SELECT count(*) FROM common_chunks(NULL, 'x');
SELECT * FROM chunk_similarity('', '?!');
SELECT * FROM near_dup_explain('', '');
SELECT * FROM near_dup_explain('!', '?');

-- Quadratic cases end early on a timeout.
SET statement_timeout = '200ms';
SELECT edit_distance(string_agg(chr(97 + i % 10007 % 23), ''), string_agg(chr(97 + i % 10009 % 19), ''), 2, 2, 3)
FROM generate_series(1, 300000) i;
RESET statement_timeout;
