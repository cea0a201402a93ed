CREATE FUNCTION copied_passages(
    key anyelement, query text, min_words integer DEFAULT 50, fold text DEFAULT 'case',
    params record DEFAULT NULL,
    OUT key anyelement, OUT start integer, OUT length integer, OUT words integer,
    OUT source anyelement, OUT source_start integer, OUT source_length integer
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'copied_passages_wrapper';
COMMENT ON FUNCTION copied_passages(anyelement, text, integer, text, record) IS
    'every passage of at least min_words words that is a copy of an earlier one in the documents of a query for (key, document), with its source: positions in characters, counted from 1';

CREATE FUNCTION frequent_passages(
    query text, min_words integer DEFAULT 50, fold text DEFAULT 'case', most integer DEFAULT 100,
    params record DEFAULT NULL,
    OUT passage text, OUT words integer, OUT documents bigint, OUT places bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100
AS 'MODULE_PATHNAME', 'frequent_passages_wrapper';
COMMENT ON FUNCTION frequent_passages(text, integer, text, integer, record) IS
    'the passages of at least min_words words that the most documents of a query (one column of text) share, at most the number most of them, as written in the first document';
