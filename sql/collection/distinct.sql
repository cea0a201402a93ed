CREATE FUNCTION near_dup_distinct(
    key anyelement, query text, threshold double precision, rows integer DEFAULT 10,
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case',
    exceptions text DEFAULT NULL, params record DEFAULT NULL,
    OUT key anyelement, OUT rank bigint, OUT repeats bigint, OUT repeat_keys anyarray, OUT exhausted boolean
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 10
AS 'MODULE_PATHNAME', 'near_dup_distinct_wrapper';
COMMENT ON FUNCTION near_dup_distinct(anyelement, text, double precision, integer, integer, text, text, text, record) IS
    'the first rows (1-10000) of a ranked query for (key, document, signature, bit string or set) that are not similar to an earlier result: the place of each in the query, the number and keys of the rows that repeat it, and whether the query ended. Reads no further than necessary. For bit strings the threshold is the greatest Hamming distance; k, unit, fold of documents as for minhash. exceptions: a query for pairs of keys that count as not similar';
