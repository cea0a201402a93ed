-- Columns before the one that is compared.
SET client_min_messages = warning;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');

-- Columns on which an index can be made.
CREATE TABLE columns (tenant int, flags bit(8), more varbit, t text, j jsonb, sig minhash_signature, b bit(64));
CREATE INDEX ON columns USING neardup (tenant);
CREATE INDEX ON columns USING neardup (sig, tenant);
CREATE INDEX ON columns USING neardup (sig, b);
CREATE INDEX ON columns USING neardup (flags, sig);
CREATE INDEX ON columns USING neardup (j, sig);
CREATE INDEX ON columns USING neardup (t, sig);
-- PostgreSQL 17 and later qualify the name in the message.
\set VERBOSITY sqlstate
CREATE INDEX ON columns USING neardup (tenant scope_ops (threshold = 0.5), sig);
\set VERBOSITY default
CREATE INDEX ON columns USING neardup (tenant, sig) INCLUDE (t);
CREATE INDEX ON columns USING neardup (flags scope_ops, more scope_ops, tenant, t scope_ops, b hamming_ops (distance = 5));
CREATE INDEX ON columns USING neardup (lower(t) scope_ops, sig minhash_ops (threshold = 0.5));
CREATE INDEX columns_more ON columns USING neardup (more);
SELECT opcname FROM pg_index, pg_opclass o WHERE indexrelid = 'columns_more'::regclass AND o.oid = indclass[0];
DROP TABLE columns;

-- One column of every type, with values in pairs that are written differently but equal if the type
-- has such values; every row has a near-duplicate in its own scope and one in the other, and there are rows
-- without a scope and without a signature.
CREATE TABLE scopes (name text, type text, a text, equal_a text, b text);
INSERT INTO scopes VALUES
    ('s_int2', 'int2', '1', '1', '2'), ('s_int4', 'int4', '-1', '-1', '2'), ('s_int8', 'int8', '9000000000', '9000000000', '-1'),
    ('s_float4', 'float4', '0', '-0', '1.5'), ('s_float8', 'float8', 'NaN', 'NaN', '-0'), ('s_numeric', 'numeric', '1.0', '1.00', '1.01'),
    ('s_timestamp', 'timestamp', '2026-01-01', '2026-01-01 00:00', '2026-01-02'),
    ('s_timestamptz', 'timestamptz', '2026-01-01 00:00+00', '2026-01-01 01:00+01', '2026-01-02'),
    ('s_time', 'time', '01:00', '01:00:00', '02:00'), ('s_timetz', 'timetz', '01:00+00', '01:00:00+00', '02:00+01'),
    ('s_date', 'date', '2026-01-01', 'January 1, 2026', '2026-01-02'), ('s_interval', 'interval', '1 month', '30 days', '1 day'),
    ('s_oid', 'oid', '1', '1', '4000000000'), ('s_money', 'money', '1', '1.00', '2'), ('s_char1', '"char"', 'a', 'a', 'b'),
    ('s_char', 'char(4)', 'a', 'a  ', 'b'), ('s_varchar', 'varchar(9)', 'a', 'a', 'a '), ('s_text', 'text', 'a', 'a', ''),
    ('s_bytea', 'bytea', '\x00', '\000', '\x0000'), ('s_bit', 'bit(4)', '0110', 'x6', '0111'), ('s_varbit', 'varbit', '0', '0', '00'),
    ('s_macaddr', 'macaddr', '08:00:2b:01:02:03', '08002b-010203', '08:00:2b:01:02:04'),
    ('s_macaddr8', 'macaddr8', '08:00:2b:01:02:03:04:05', '08002b0102030405', '08:00:2b:01:02:03:04:06'),
    ('s_inet', 'inet', '10.0.0.1', '10.0.0.1/32', '10.0.0.0/8'), ('s_cidr', 'cidr', '10.0.0.0/8', '10.0.0.0/8', '10.0.0.0/9'),
    ('s_uuid', 'uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
    ('s_bool', 'bool', 't', 'yes', 'f'), ('s_enum', 'mood', 'sad', 'sad', 'happy');
CREATE FUNCTION document(n int) RETURNS text IMMUTABLE LANGUAGE sql AS
$$ SELECT string_agg('word' || n * 100 + i, ' ') FROM generate_series(1, 60) i $$;
DO $$
DECLARE
    s scopes;
    used text;
    answers int[];
BEGIN
    SET LOCAL enable_seqscan = off;
    FOR s IN TABLE scopes LOOP
        EXECUTE format('CREATE TABLE %I (id int, scope %s, sig minhash_signature)', s.name, s.type);
        EXECUTE format(
            'INSERT INTO %I SELECT i, CASE i %% 4 WHEN 0 THEN %L WHEN 1 THEN %L WHEN 2 THEN %L END::%s,
                                   CASE WHEN i < 80 THEN minhash(document(i / 8) || repeat('' x'', i %% 8 / 4)) END FROM generate_series(0, 83) i',
            s.name, s.a, s.equal_a, s.b, s.type);
        EXECUTE format('CREATE INDEX %s_index ON %1$I USING neardup (scope %s, sig)', s.name,
                       CASE WHEN s.type IN ('bit(4)', 'varbit', 'text', 'varchar(9)') THEN 'scope_ops' ELSE '' END);
        EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %I WHERE scope = %L AND near_dup(sig, minhash(document(5)))',
                       s.name, s.equal_a) INTO answers;
        IF answers IS DISTINCT FROM '{40, 41, 44, 45}' THEN RAISE WARNING '%: %', s.name, answers; END IF;
        EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %I WHERE scope = %L AND near_dup(sig, minhash(document(5)))',
                       s.name, s.b) INTO answers;
        IF answers IS DISTINCT FROM '{42, 46}' THEN RAISE WARNING '%: %', s.name, answers; END IF;
        EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %I WHERE near_dup(sig, minhash(document(5)))', s.name) INTO answers;
        IF answers IS DISTINCT FROM '{40, 41, 42, 43, 44, 45, 46, 47}' THEN RAISE WARNING '%: %', s.name, answers; END IF;
        EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM %I WHERE scope = %L ORDER BY sig <=> minhash(document(5)) LIMIT 4) x',
                       s.name, s.a) INTO answers;
        IF answers IS DISTINCT FROM '{40, 41, 44, 45}' THEN RAISE WARNING '%: %', s.name, answers; END IF;
        EXECUTE format('SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM %I WHERE scope = %L ORDER BY sig <=> minhash(document(5))) x',
                       s.name, s.b) INTO answers;
        IF cardinality(answers) IS DISTINCT FROM 21 THEN RAISE WARNING '%: %', s.name, answers; END IF;
        EXECUTE format('EXPLAIN SELECT id FROM %I WHERE scope = %L AND near_dup(sig, minhash(document(5)))', s.name, s.a) INTO used;
        IF used NOT LIKE '%_index%' AND used NOT LIKE 'Bitmap%' THEN RAISE WARNING '%: %', s.name, used; END IF;
        EXECUTE format('SELECT near_dup_index_check(''%s_index'')', s.name);
    END LOOP;
END $$;

-- Integers of other types than the column's; the plans.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line LIKE '%Disabled: true';
        RETURN NEXT regexp_replace(line, '''(<?)minhash:.*?''', '''\1...''', 'g');
    END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT explain('SELECT id FROM s_int8 WHERE scope = 9000000000 AND near_dup(sig, minhash(document(5)))');
SELECT explain('SELECT id FROM s_int8 WHERE scope = -1 ORDER BY sig <=> minhash(document(5)) LIMIT 2');
SELECT id FROM s_int8 WHERE scope = -1 AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT id FROM s_int4 WHERE scope = 2::bigint AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT id FROM s_int4 WHERE scope = 2::smallint AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT id FROM s_int2 WHERE scope = 2 AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT id FROM s_float4 WHERE scope = 1.5::float8 AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT id FROM s_bool WHERE scope AND near_dup(sig, minhash(document(5))) ORDER BY id;
SELECT count(*) FROM s_int4 WHERE scope = NULL AND near_dup(sig, minhash(document(5)));
SELECT count(*) FROM s_int4 WHERE scope = 2;
SELECT count(*) FROM s_int4 WHERE scope = 2 AND scope = 3 AND near_dup(sig, minhash(document(5)));
SELECT id FROM s_int4 WHERE scope IS NULL AND near_dup(sig, minhash(document(5))) ORDER BY id;
RESET enable_bitmapscan;
RESET enable_seqscan;

-- A condition with the equality of another type, to which the column's type is cast without a change of its bytes.
CREATE TABLE padded (t text, n int, sig minhash_signature);
CREATE INDEX ON padded USING neardup (t scope_ops, n, sig);
INSERT INTO padded SELECT t, 5, minhash('the same text') FROM unnest('{a,"a  ",b}'::text[]) t;
SET enable_seqscan = off;
SELECT t || '.' AS t FROM padded WHERE t::bpchar = 'a ' AND n::oid = 5 AND near_dup(sig, minhash('the same text')) ORDER BY t;
RESET enable_seqscan;

-- Collations: values that are equal by the column's collation are in one scope.
CREATE TABLE words (lang text COLLATE "C", word text, sig minhash_signature);
CREATE INDEX ON words USING neardup (lang scope_ops, word scope_ops, sig);
INSERT INTO words SELECT l, w, minhash('the same text') FROM unnest('{de,en}'::text[]) l, unnest('{a,A,b}'::text[]) w;
SET enable_seqscan = off;
SELECT lang, word FROM words WHERE lang = 'de' AND word = 'a' AND near_dup(sig, minhash('the same text'));
SELECT lang, word FROM words WHERE lang = 'de' AND near_dup(sig, minhash('the same text')) ORDER BY word COLLATE "C";
RESET enable_seqscan;

-- A constraint within a tenant; rows without a tenant do not conflict.
CREATE TABLE tenants (tenant_id bigint, lang mood, id int, sig minhash_signature);
ALTER TABLE tenants ADD CONSTRAINT no_near_dup EXCLUDE USING neardup (tenant_id WITH =, near_dup_key(sig, 0.85) WITH %);
INSERT INTO tenants SELECT i % 3, 'ok', i, minhash(document(i / 3)) FROM generate_series(0, 29) i;
INSERT INTO tenants VALUES (2, 'sad', 100, minhash(document(5)));
INSERT INTO tenants VALUES (2, 'sad', 100, minhash(document(5))) ON CONFLICT DO NOTHING;
INSERT INTO tenants VALUES (7, 'sad', 100, minhash(document(5))), (NULL, 'ok', 1, minhash(document(5))), (NULL, 'ok', 1, minhash(document(5)));
UPDATE tenants SET tenant_id = 2 WHERE tenant_id = 7;
UPDATE tenants SET tenant_id = 8 WHERE tenant_id = 7;
SELECT near_dup_index_check('no_near_dup');
SET enable_seqscan = off;
SELECT id FROM tenants WHERE tenant_id = 1 AND near_dup_key(sig, 0.85) % near_dup_key(minhash(document(5)), 0.9);
RESET enable_seqscan;
CREATE TABLE partitioned (tenant int, sig minhash_signature) PARTITION BY LIST (tenant);
CREATE INDEX ON partitioned USING neardup (tenant, sig);
