-- Passages that stand in several documents, parts of documents, and cutting.
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages VALUES
    (1, 'One two three four five. Legal notice: all rights are reserved by the authors.'),
    (2, 'Six seven eight. LEGAL NOTICE -- all rights are reserved by the authors!'),
    (3, 'Nine ten, legal notice: all rights are reserved by the publisher. One two three four five.'),
    (4, NULL),
    (5, ''),
    (6, 'a a a a a a a a');

SELECT passage, key, start, length, words, occurrences, documents, substr(body, start, length) AS text
FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', 4) p JOIN pages ON id = key
ORDER BY passage, key, start;

-- All but the first of each passage, cut.
WITH places AS (
    SELECT *, row_number() OVER (PARTITION BY passage ORDER BY key, start) AS place
    FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages ORDER BY id', 4)
), spans AS (
    SELECT key, range_agg(int4range(start, start + length)) AS spans FROM places WHERE place > 1 GROUP BY key
)
SELECT id, cut_passages(body, spans, '...') FROM pages JOIN spans ON id = key ORDER BY id;

-- Bad input.
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', 0);
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', 65537);
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', NULL);
SELECT * FROM repeated_passages(NULL::int, NULL, 5);
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', 5, NULL);
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, body FROM pages', 5, 'vowels');
SELECT * FROM repeated_passages(NULL::int, 'SELECT body FROM pages', 5);
SELECT * FROM repeated_passages(NULL::int, 'SELECT id, id FROM pages', 5);
SELECT * FROM repeated_passages(NULL::bigint, 'SELECT id, body FROM pages', 5);
SELECT * FROM repeated_passages(NULL::int, 'SELECT nothing', 5);
SELECT cut_passages('abc', '{[0,2)}');
SELECT cut_passages('abc', '{[2,5)}');
SELECT cut_passages('abc', '{(,2)}');
SELECT cut_passages('abc', '{[2,)}');
SELECT cut_passages('abc', '{}'), cut_passages('', '{}', 'x'), cut_passages(NULL, '{}') IS NULL AS none;
SELECT cut_passages('größer', '{[1,3),[2,4),[6,7)}', '_');

SELECT kind, s.* FROM unnest(ARRAY['paragraph', 'line', 'sentence']) kind,
    split_text(E'  One. Two!\nThree?\n \nVier fünf.\n今天下雨。我们回家吧。', kind) s;
SELECT * FROM split_text('One.', 'word');
SELECT * FROM split_text(' ', 'line');
SELECT * FROM split_text(NULL, 'line');
DROP TABLE pages;

-- A passage may stand first in a document that shares a part of it with an earlier one: that part is cut there, too.
CREATE TABLE chain (id int PRIMARY KEY, body text);
INSERT INTO chain VALUES (1, 'a b c d e f'), (2, 'x c d e f g h'), (3, 'y e f g h z');
SELECT p.key, passage, first_value(p.key) OVER w AS first_in, row_number() OVER w > 1 AS is_cut, substr(body, start, length) AS text
FROM repeated_passages(NULL::int, 'SELECT id, body FROM chain ORDER BY id', 4) p JOIN chain ON id = p.key
WINDOW w AS (PARTITION BY passage ORDER BY p.key, start) ORDER BY passage, 1;
