CREATE FUNCTION near_dup_track() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'near_dup_note';
COMMENT ON FUNCTION near_dup_track() IS
    'trigger that near_dup_track makes: notes which rows have changed';
