-- A table's owner has triggers that interfere with the notes and the refreshes of a tracker.
CREATE TABLE docs (id bigint PRIMARY KEY, body text);
CREATE INDEX ON docs USING neardup (body);
SELECT near_dup_track('docs', 'body');
-- One alters the queue between two rows of a statement.
CREATE FUNCTION alter_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id = 1 THEN ALTER TABLE docs_clusters_queue ALTER key TYPE text; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER zzz AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION alter_queue();
INSERT INTO docs VALUES (1, 'one text of several words'), (2, 'another text of several words');
DROP TRIGGER zzz ON docs;
-- One names a system column as the key.
CREATE TABLE queue (key cid);
CREATE TABLE forged (id int);
CREATE TRIGGER forged AFTER INSERT OR UPDATE ON forged FOR EACH ROW
    WHEN (ROW('forged'::regclass, 'forged'::regclass, 'forged'::regclass, 'queue'::regclass, 'forged'::regclass) IS NOT NULL
        AND (ROW(NEW.cmax, NEW.id) IS NULL OR true)) EXECUTE FUNCTION near_dup_track();
INSERT INTO forged VALUES (1);
TABLE queue;
-- One empties the rows of new clusters while they are written.
CREATE FUNCTION take_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE public.docs SET body = NULL WHERE id IN (NEW.key, NEW.canonical);
    RETURN NULL;
END $$;
CREATE TRIGGER take_down AFTER INSERT ON docs_clusters FOR EACH ROW WHEN (NEW.key <> NEW.canonical) EXECUTE FUNCTION take_down();
INSERT INTO docs VALUES (1, 'the same letter of some words to everybody'), (2, 'the same letter of some words to everybody');
SELECT rows, created, joined FROM near_dup_refresh('docs_clusters');
SELECT rows, created, joined FROM near_dup_refresh('docs_clusters');
SELECT key, canonical, similarity FROM docs_clusters ORDER BY key;
-- All signatures are made with other parameters.
CREATE TABLE signed (id int PRIMARY KEY, body text, sig minhash_signature);
CREATE INDEX ON signed USING neardup (sig);
INSERT INTO signed SELECT id, body, minhash(body) FROM (SELECT id, 'one text of several words, number ' || id / 2 AS body FROM generate_series(1, 6) id) s;
SELECT near_dup_track('signed', 'sig');
UPDATE signed SET sig = minhash(body, 2);
SELECT rows FROM near_dup_refresh('signed_clusters');
-- Keys without a unique index are equal, and have different texts.
CREATE TABLE numbered (code numeric, place int, body text);
CREATE INDEX ON numbered USING neardup (body);
CREATE INDEX ON numbered (code);
INSERT INTO numbered VALUES (5, 1, 'the same letter of some words to everybody'), (5.0, 2, 'another text that nothing else resembles');
SELECT near_dup_track('numbered', 'body', keep => 'place', key => 'code');
DELETE FROM numbered WHERE place = 2;
SELECT near_dup_track('numbered', 'body', keep => 'place', key => 'code');
INSERT INTO numbered VALUES (5.0, 2, 'another text that nothing else resembles');
SELECT rows FROM near_dup_refresh('numbered_clusters');
-- A function of the order renames columns of the canonical rows while a refresh reads them.
CREATE TABLE sorted (id bigint PRIMARY KEY, title text, body text);
CREATE INDEX ON sorted USING neardup (body);
CREATE FUNCTION swap() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('my.swap', true) = 'on' THEN
        PERFORM set_config('my.swap', 'off', false);
        ALTER TABLE public.sorted_clusters_canonical RENAME order1 TO other;
        ALTER TABLE public.sorted_clusters_canonical RENAME order2 TO order1;
        ALTER TABLE public.sorted_clusters_canonical RENAME other TO order2;
    END IF;
END $$;
CREATE FUNCTION place_of(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM public.swap();
    RETURN $1;
END $$;
INSERT INTO sorted VALUES (2, 'a', 'the same letter of some words to everybody');
SELECT near_dup_track('sorted', 'body', keep => 'place_of(title)');
SELECT rows FROM near_dup_refresh('sorted_clusters');
INSERT INTO sorted VALUES (3, 'b', 'the same letter of some words to everybody');
SET my.swap = 'on';
SELECT rows FROM near_dup_refresh('sorted_clusters');
-- A function of the order rejects NULL, which the table does not have, and rows are deleted.
CREATE TABLE ranked (id int PRIMARY KEY, source text NOT NULL, body text);
CREATE INDEX ON ranked USING neardup (body);
CREATE FUNCTION rank_of(source text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    CASE source WHEN 'agency' THEN RETURN 1; WHEN 'blog' THEN RETURN 2; END CASE;
END $$;
INSERT INTO ranked SELECT id, CASE id WHEN 2 THEN 'agency' ELSE 'blog' END, 'the same letter of some words to everybody' FROM generate_series(1, 3) id;
SELECT near_dup_track('ranked', 'body', keep => 'rank_of(source) DESC');
DELETE FROM ranked WHERE id = 1;
SELECT rows FROM near_dup_refresh('ranked_clusters');
DELETE FROM ranked WHERE id = 3;
SELECT rows FROM near_dup_refresh('ranked_clusters', rebuild => true);
SELECT * FROM ranked_clusters ORDER BY key;
-- The row of the state is deleted.
DELETE FROM ranked_clusters_state;
INSERT INTO ranked VALUES (4, 'blog', 'nothing here resembles any of the other texts');
SELECT rows FROM near_dup_refresh('ranked_clusters');
SELECT cluster, canonical FROM ranked_clusters ORDER BY key;
SELECT rows FROM ranked_clusters_state;
