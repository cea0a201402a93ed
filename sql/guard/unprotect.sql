CREATE FUNCTION near_dup_unprotect(relation regclass, trigger_name name = NULL) RETURNS void
VOLATILE PARALLEL UNSAFE COST 10000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_unprotect_wrapper';
COMMENT ON FUNCTION near_dup_unprotect(regclass, name) IS
    'drops the triggers of the guard whose main trigger has that name, or of all guards of a table; notes stay as they are';
