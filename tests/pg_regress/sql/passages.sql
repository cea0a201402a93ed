-- Passages that are copies of earlier ones, parts of documents, and cutting.
CREATE TABLE pages (id int PRIMARY KEY, body text);
INSERT INTO pages VALUES
    (1, 'One two three four five. Legal notice: all rights are reserved by the authors.'),
    (2, 'Six seven eight. LEGAL NOTICE -- all rights are reserved by the authors!'),
    (3, 'Nine ten, legal notice: all rights are reserved by the publisher. One two three four five.'),
    (4, NULL),
    (5, ''),
    (6, 'a a a a a a a a'),
    (7, 'Größe in Äpfeln: one two three four five. Größe in Äpfeln, legal notice: all rights are reserved.');

SELECT c.*, substr(p.body, start, length) AS text, substr(s.body, source_start, source_length) AS source_text
FROM copied_passages(NULL::int, 'SELECT id, body FROM pages ORDER BY id', 4) c
JOIN pages p ON p.id = key JOIN pages s ON s.id = source
ORDER BY key, start;

-- Copies cut; each cut word occurs uncut somewhere.
SELECT id, cut_passages(body, range_agg(int4range(start, start + length)), '...')
FROM copied_passages(NULL::int, 'SELECT id, body FROM pages ORDER BY id', 4) JOIN pages ON id = key GROUP BY id, body ORDER BY id;

SELECT * FROM frequent_passages('SELECT body FROM pages ORDER BY id', 4);
SELECT * FROM frequent_passages('SELECT body FROM pages ORDER BY id', 4, most => 1);
SELECT * FROM frequent_passages('SELECT body FROM pages WHERE id < $1 ORDER BY id', 5, 'none', params => ROW(4));
SELECT * FROM frequent_passages('SELECT body FROM pages WHERE false');

-- Bad input.
SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM pages', 0);
SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM pages', 65537);
SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM pages', NULL);
SELECT * FROM copied_passages(NULL::int, NULL, 5);
SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM pages', 5, NULL);
SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM pages', 5, 'vowels');
SELECT * FROM copied_passages(NULL::int, 'SELECT body FROM pages', 5);
SELECT * FROM copied_passages(NULL::int, 'SELECT id, id FROM pages', 5);
SELECT * FROM copied_passages(NULL::bigint, 'SELECT id, body FROM pages', 5);
SELECT * FROM copied_passages(NULL::int, 'SELECT nothing', 5);
SELECT * FROM frequent_passages('SELECT body FROM pages', 0);
SELECT * FROM frequent_passages('SELECT body FROM pages', 5, most => 0);
SELECT * FROM frequent_passages('SELECT body FROM pages', 5, most => NULL);
SELECT * FROM frequent_passages('SELECT id, body FROM pages', 5);
SELECT * FROM frequent_passages('SELECT id FROM pages', 5);
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

-- A thousand zeros are one row.
SELECT * FROM copied_passages(NULL::int, 'SELECT 1, repeat(''0 '', 1000)');
DROP TABLE pages;

-- If the source jumps, a new row begins.
CREATE TABLE chain (id int PRIMARY KEY, body text);
INSERT INTO chain VALUES (1, 'a b c d e f'), (2, 'x c d e f g h'), (3, 'y c d e f g h z');
SELECT c.*, substr(body, start, length) AS text
FROM copied_passages(NULL::int, 'SELECT id, body FROM chain ORDER BY id', 4) c JOIN chain ON id = c.key ORDER BY key, start;
DROP TABLE chain;
