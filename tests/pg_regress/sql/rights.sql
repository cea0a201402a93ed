-- Code that runs with other rights than the caller's, as described in SECURITY.md.
SELECT count(*) AS security_definers FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid JOIN pg_proc p ON p.oid = d.objid
WHERE e.extname = 'pg_neardup' AND d.classid = 'pg_proc'::regclass AND p.prosecdef;

-- A role that can create temporary tables, and nothing else.
CREATE ROLE regress_owner;
CREATE ROLE regress_stranger;
CREATE SCHEMA owned AUTHORIZATION regress_owner;
GRANT USAGE ON SCHEMA owned TO regress_stranger;
SET ROLE regress_owner;
CREATE FUNCTION owned.helper(body text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT body';
CREATE TABLE owned.docs (id int PRIMARY KEY, body text, sig minhash_signature);
INSERT INTO owned.docs VALUES (1, 'some text', minhash('some text'));
CREATE INDEX docs_sig ON owned.docs USING neardup (sig);
SELECT near_dup_track('owned.docs', 'sig');
SET ROLE regress_stranger;
SELECT near_dup_track('owned.docs', 'sig', clusters => 'mine');
SELECT near_dup_refresh('owned.docs_clusters');
SELECT near_dup_untrack('owned.docs_clusters');
SELECT near_dup_index_check('owned.docs_sig');
SELECT near_dup_protect('owned.docs', 'sig', 0.8);
SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, sig FROM owned.docs', 0.8);
SELECT * FROM near_dup_tracked;
-- Triggers of a tracker on a role's own table do not affect another owner's tables.
CREATE TEMPORARY TABLE mine (id int PRIMARY KEY, body text, sig minhash_signature);
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'owned.docs'::regclass AND NOT tgisinternal LOOP
        EXECUTE replace(definition, ' ON owned.docs ', ' ON pg_temp.mine ');
    END LOOP;
END $$;
DO $$
DECLARE
    hint text;
BEGIN
    INSERT INTO mine VALUES (1, 'some text', minhash('some text'));
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE NOTICE '%', regexp_replace(concat_ws(e'\n', sqlerrm, hint), 'pg_temp_\d+', 'pg_temp', 'g');
END $$;
TRUNCATE mine;
DROP TABLE mine;
RESET ROLE;
SELECT count(*) FROM owned.docs_clusters_queue;

-- The owner's code runs with the owner's rights, and finds no functions on another's search_path.
CREATE ROLE regress_monitor IN ROLE pg_stat_scan_tables;
CREATE SCHEMA trap AUTHORIZATION regress_monitor;
GRANT USAGE ON SCHEMA trap TO regress_owner;
GRANT USAGE ON SCHEMA owned TO regress_monitor;
SET ROLE regress_monitor;
CREATE FUNCTION trap.helper(body text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'the trap runs as %', current_user;
    RETURN body;
END $$;
SET ROLE regress_owner;
SET search_path = owned, public;
CREATE FUNCTION owned.told(body text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT body';
CREATE INDEX docs_told ON owned.docs USING neardup (minhash(told(body)));
CREATE OR REPLACE FUNCTION owned.told(body text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'the owner''s function runs as %, search_path %', current_user, current_setting('search_path');
    RETURN helper(body);
END $$;
SET ROLE regress_monitor;
SET search_path = trap, public;
\set VERBOSITY terse
SELECT near_dup_index_check('owned.docs_told');
\set VERBOSITY default
SET ROLE regress_owner;
SET search_path = public;
DROP INDEX owned.docs_told;
CREATE OR REPLACE FUNCTION owned.told(body text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'the owner''s function runs as %, search_path %', current_user, current_setting('search_path');
    RETURN owned.helper(body);
END $$;
SELECT near_dup_untrack('owned.docs_clusters');
DROP TABLE owned.docs_clusters, owned.docs_clusters_log;
SELECT near_dup_track('owned.docs', 'sig', keep => 'owned.told(body)');
GRANT INSERT ON owned.docs TO regress_stranger;
SET ROLE regress_stranger;
INSERT INTO owned.docs VALUES (2, 'some text', minhash('some text'));
RESET ROLE;
SET search_path = trap, public;
SELECT rows FROM near_dup_refresh('owned.docs_clusters');
SET search_path = public;
SELECT * FROM owned.docs_clusters ORDER BY key;
\set VERBOSITY terse
DROP SCHEMA owned, trap CASCADE;
DROP ROLE regress_owner, regress_stranger, regress_monitor;
