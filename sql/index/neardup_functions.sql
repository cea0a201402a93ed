CREATE FUNCTION near_dup_index_stats(index regclass)
RETURNS TABLE (
    rows bigint, dead_rows bigint, log_rows bigint, segments integer, merging integer,
    bytes bigint, next_vacuum text)
VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 1 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_index_stats_wrapper';
COMMENT ON FUNCTION near_dup_index_stats(regclass) IS
    'contents of a neardup index, and the work of the next VACUUM';

CREATE FUNCTION near_dup_index_check(index regclass) RETURNS void
VOLATILE STRICT PARALLEL UNSAFE COST 100000 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_index_check_wrapper';
COMMENT ON FUNCTION near_dup_index_check(regclass) IS
    'raises an error if a neardup index is damaged or lacks a row of its table';
