CREATE FUNCTION near_dup_advise(
    relation regclass, signature_column name, threshold double precision = 0.8,
    sample_rows integer = 5000, document_column name = NULL)
RETURNS TABLE (
    rows bigint, sampled integer, bands integer, intact integer,
    bytes_per_row double precision, candidates double precision, crowded double precision,
    relaxed_threshold double precision, true_pairs bigint, recall double precision,
    recall_low double precision, recall_high double precision, recall_relaxed double precision)
VOLATILE PARALLEL UNSAFE COST 100000 ROWS 1 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_advise_wrapper';
COMMENT ON FUNCTION near_dup_advise(regclass, name, double precision, integer, name) IS
    'estimated size and selectivity of an index on the signatures, and the recall of thresholds with 95 % confidence limits, from a random sample of rows (2-50000)';
