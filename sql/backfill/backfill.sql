CREATE PROCEDURE near_dup_backfill(
    relation regclass, target name, expression text,
    batch bigint = 1000, pause double precision = 0, wait_for_replicas boolean = false)
LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_backfill_wrapper';
COMMENT ON PROCEDURE near_dup_backfill(regclass, name, text, bigint, double precision, boolean) IS
    'fills a column, where it is NULL, with an expression over the row, in batches that are committed one by one, with a pause in seconds between them; it can be stopped and called again';
