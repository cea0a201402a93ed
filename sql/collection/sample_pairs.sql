CREATE FUNCTION near_dup_sample_pairs(
    key anyelement, query text, n integer DEFAULT 100,
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case',
    sample_rows integer DEFAULT 20000, seed bigint DEFAULT 0, params record DEFAULT NULL,
    OUT a_key anyelement, OUT b_key anyelement, OUT similarity double precision,
    OUT weight double precision, OUT a text, OUT b text
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100
AS 'MODULE_PATHNAME', 'near_dup_sample_pairs_wrapper';
COMMENT ON FUNCTION near_dup_sample_pairs(anyelement, text, integer, integer, text, text, integer, bigint, record) IS
    'pairs of documents to label, from sampled rows of a query for (key, document), spread over all similarities, the most similar first; weight is the number of pairs of those rows that a pair represents; n 1-10000, sample_rows 2-1000000';
