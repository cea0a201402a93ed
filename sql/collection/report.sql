CREATE FUNCTION near_dup_report(
    key anyelement, query text, threshold double precision,
    title text DEFAULT 'Near-duplicates', groups integer DEFAULT 100,
    params record DEFAULT NULL
) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'near_dup_report_wrapper';
COMMENT ON FUNCTION near_dup_report(anyelement, text, double precision, text, integer, record) IS
    'HTML page about the star clusters of a query for (key, document) or (key, signature, document), or about clusters that the query returns in columns canonical and similarity, as near_dup_track keeps them; columns source (text) and day (date) are counted; groups 0-10000 are shown';
