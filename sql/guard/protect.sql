CREATE FUNCTION near_dup_protect(
    relation regclass, signature_column name, threshold double precision,
    scope name[] = NULL, verify name = NULL, trigger_name name = NULL,
    within name = NULL, by interval = NULL) RETURNS void
VOLATILE PARALLEL UNSAFE COST 10000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_protect_wrapper';
COMMENT ON FUNCTION near_dup_protect(regclass, name, double precision, name[], name, name, name, interval) IS
    'creates the triggers near_dup_guard on a table, after checking its columns and its index';
