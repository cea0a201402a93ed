CREATE FUNCTION near_dup_track() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'near_dup_note';
COMMENT ON FUNCTION near_dup_track() IS
    'trigger created by near_dup_track: notes which rows have changed';
