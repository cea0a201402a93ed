CREATE FUNCTION repeated_passages(
    key anyelement, query text, min_words integer DEFAULT 50, fold text DEFAULT 'case',
    params record DEFAULT NULL,
    OUT passage bigint, OUT key anyelement, OUT start integer, OUT length integer,
    OUT words integer, OUT occurrences bigint, OUT documents bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'repeated_passages_wrapper';
COMMENT ON FUNCTION repeated_passages(anyelement, text, integer, text, record) IS
    'every run of at least min_words words that occurs more than once in the documents of a query for (key, document): its places, in characters from 1';
