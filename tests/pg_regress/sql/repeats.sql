-- A repeated document: functions on documents keep its result for the call site.
CREATE TABLE docs AS
SELECT i AS id, 'document ' || i || ' of a few words ' || md5(i::text) AS body FROM generate_series(1, 4000) i;
-- Compressed and inline, compressed and out of line, uncompressed and out of line, and empty.
CREATE TABLE long (id int, body text);
INSERT INTO long SELECT 1, repeat('one two three four five six seven eight nine ten ', 1000);
INSERT INTO long SELECT 2, string_agg('number' || i, ' ') FROM generate_series(1, 5000) i;
ALTER TABLE long ALTER body SET STORAGE external;
INSERT INTO long SELECT 3, string_agg('number' || i, ' ') FROM generate_series(1, 1000) i;
INSERT INTO long VALUES (4, '');

-- The same result as when it is computed only once, whatever happens between two calls.
CREATE VIEW truth AS
SELECT id, minhash(body) AS m, simhash(body) AS s, shingles(body) AS t, shingle_hashes(body) AS h, winnow(body, 3, 10) AS w
FROM long;
CREATE TABLE expected AS TABLE truth;
SELECT l.id, count(*) FILTER (WHERE minhash(l.body) = e.m) AS m,
       count(*) FILTER (WHERE simhash(l.body) IS NOT DISTINCT FROM e.s) AS s,
       count(*) FILTER (WHERE shingle_hashes(l.body) = e.h) AS h,
       count(*) FILTER (WHERE winnow(l.body, 3, 10) = e.w) AS w,
       count(*) FILTER (WHERE shingles(l.body) = e.t) AS t
FROM (TABLE long OFFSET 0) l JOIN expected e USING (id), generate_series(1, 5)
GROUP BY l.id ORDER BY l.id;

-- One call site, with other documents and other options in between, in runs of every length.
DO $$
DECLARE
    doc text;
    sig minhash_signature;
    slot_count int;
BEGIN
    FOR i IN 1..400 LOOP
        doc := 'the document of run ' || floor(sqrt(i)) || CASE WHEN i % 7 = 0 THEN ' and more' ELSE '' END;
        slot_count := CASE WHEN i % 11 < 6 THEN 64 ELSE 128 END;
        sig := minhash(doc, slots => slot_count);
        IF sig::text <> (SELECT minhash(d, slots => s)::text FROM (VALUES (doc, slot_count)) v(d, s)) THEN
            RAISE 'wrong at %', i;
        END IF;
    END LOOP;
END $$;
-- Equal length, beginning and end.
SELECT count(DISTINCT minhash(format('the same beginning of all these documents %s and the same end', 100 + i / 3)))
FROM generate_series(0, 29) i;

-- A document of 4 MB: a statement on 4000 rows computes its value once, in less time than 400 computations take.
INSERT INTO long SELECT 5, string_agg('number' || i, ' ') FROM generate_series(1, 300000) i;
SET work_mem = '8MB';
CREATE TABLE sigs AS SELECT id, minhash(body) AS sig FROM docs;
DO $$
DECLARE
    call text;
    start timestamptz;
    once interval;
BEGIN
    FOREACH call IN ARRAY ARRAY['minhash(DOC)', 'simhash(DOC)', 'winnow(DOC, 3, 10000)', 'sig <=> minhash(DOC)'] LOOP
        call := replace(call, 'DOC', '(SELECT body FROM long WHERE id = 5)');
        start := clock_timestamp();
        EXECUTE format('SELECT count(%s) FROM sigs WHERE id = 1', call);
        once := clock_timestamp() - start;
        EXECUTE format('SELECT count(%s) FROM sigs', call);
        IF clock_timestamp() - start > 400 * once THEN
            RAISE '% is computed for every row', call;
        END IF;
    END LOOP;
END $$;
-- No more than work_mem is kept.
SET work_mem = '64kB';
SELECT count(DISTINCT minhash((SELECT body || '!' FROM long WHERE id = 5))) FROM docs WHERE id < 10;
