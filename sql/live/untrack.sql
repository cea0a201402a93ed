CREATE FUNCTION near_dup_untrack(clusters regclass) RETURNS void
VOLATILE PARALLEL UNSAFE COST 10000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_untrack_wrapper';
COMMENT ON FUNCTION near_dup_untrack(regclass) IS
    'stops maintaining clusters made by near_dup_track: drops the triggers; clusters and log stay as they are';
