CREATE FUNCTION near_dup_guard() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'near_dup_guard';
COMMENT ON FUNCTION near_dup_guard() IS
    'AFTER ROW trigger that rejects near-duplicates, or notes them if near_dup_protect has made it so: (column, threshold [, k=..., unit=..., fold=...] [, scope=column,...] [, within=column, by=interval] [, key=column, most=..., exceptions]), the columns of scope written as in SQL; without arguments, a BEFORE INSERT trigger that keeps sessions from waiting for each other';
