CREATE FUNCTION near_dup_track(
    relation regclass, column_name name, threshold double precision = 0.8, keep text = NULL,
    clusters name = NULL, scope name[] = '{}', key name = NULL, condition text = NULL,
    exceptions regclass = NULL, k integer = NULL, unit text = NULL, fold text = NULL) RETURNS regclass
VOLATILE PARALLEL UNSAFE COST 10000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_track_wrapper';
COMMENT ON FUNCTION near_dup_track(
    regclass, name, double precision, text, name, name[], name, text, regclass, integer, text, text) IS
    'creates a table of the star clusters of a table''s rows, which near_dup_refresh keeps up to date; rows are compared by a column of text, minhash_signature, bigint[] or bit strings (for bit strings, the threshold is a distance); keep is one item of ORDER BY whose first row is the canonical row of a cluster (NULL: the key); key is a column whose values are unique (NULL: the primary key); rows that do not satisfy condition are left out; the pairs in columns a and b of the table exceptions are not duplicates; k, unit and fold cut text as resemblance does (NULL: its defaults)';
