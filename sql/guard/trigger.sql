CREATE FUNCTION near_dup_guard() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'near_dup_guard';
COMMENT ON FUNCTION near_dup_guard() IS
    'trigger that keeps near-duplicates out: (column, threshold, reject|skip|mark [, into=column] [, scope=column,...] [, verify=column])';
