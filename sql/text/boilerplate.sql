CREATE FUNCTION common_shingles(
    query text, min_documents integer,
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case', seed bigint DEFAULT 0,
    params record DEFAULT NULL,
    OUT shingle text, OUT documents bigint, OUT hash bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000
AS 'MODULE_PATHNAME', 'common_shingles_wrapper';
COMMENT ON FUNCTION common_shingles(text, integer, integer, text, text, bigint, record) IS
    'the shingles of at least min_documents documents of the query (one column of text), in the words of their first document, with the number of documents and the hash';
