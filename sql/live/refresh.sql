CREATE FUNCTION near_dup_refresh(
    clusters regclass, rebuild boolean = false,
    OUT rows bigint, OUT created bigint, OUT joined bigint, OUT "left" bigint, OUT merged bigint,
    OUT split bigint, OUT new_canonical bigint) RETURNS SETOF record
VOLATILE PARALLEL UNSAFE COST 10000 ROWS 1 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_refresh_wrapper';
COMMENT ON FUNCTION near_dup_refresh(regclass, boolean) IS
    'brings clusters made by near_dup_track up to date, in proportion to the changes, and returns the number of each kind; rebuild recomputes the clusters';
