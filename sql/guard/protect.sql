CREATE FUNCTION near_dup_protect(
    relation regclass, column_name name, threshold double precision,
    scope name[] = NULL, trigger_name name = NULL, within name = NULL, by interval = NULL,
    k integer = NULL, unit text = NULL, fold text = NULL,
    action text = 'reject', notes name = NULL, most integer = 10, key name = NULL,
    condition text = NULL, exceptions regclass = NULL) RETURNS void
VOLATILE PARALLEL UNSAFE COST 10000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_protect_wrapper';
COMMENT ON FUNCTION near_dup_protect(regclass, name, double precision, name[], name, name, interval, integer, text, text, text, name, integer, name, text, regclass) IS
    'creates the triggers near_dup_guard on a table, after checking its columns and its index; they reject near-duplicates, or accept them (action note) and note them in a table of notes, together with at most the number most of the most similar earlier rows, by the values of the column key (NULL: the only column of the primary key); condition is a boolean expression: rows that do not satisfy it do not count; exceptions is a table with columns a and b of keys: these pairs do not count; k, unit and fold cut text as resemblance does (NULL: its defaults)';
