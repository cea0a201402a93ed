CREATE FUNCTION near_dup_pairs(
    key anyelement, query text, threshold double precision,
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case',
    slots integer DEFAULT NULL, seed bigint DEFAULT 0, measure text DEFAULT 'resemblance',
    exceptions text DEFAULT NULL, most integer DEFAULT NULL, params record DEFAULT NULL,
    OUT a anyelement, OUT b anyelement, OUT similarity double precision
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'near_dup_pairs_wrapper';
COMMENT ON FUNCTION near_dup_pairs(anyelement, text, double precision, integer, text, text, integer, bigint, text, text, integer, record) IS
    'all pairs of similar rows of a query for (key, signature [, document or set]), (key, document), (key, set) or (key, bit string). With a document or set, the similarity is exact, and a pair of different ones is missed with a probability of at most 1e-9. For bit strings the threshold is the greatest Hamming distance, and the similarity the share of equal bits. k, unit, fold, slots, seed as for minhash, for the signatures that the search makes; slots (NULL: chosen for the threshold) and seed do not change the result, except for that probability. measure resemblance, or containment: every ordered pair of (key, document or set) such that b contains that share of a. exceptions: a query for pairs of keys that count as not similar. most: instead of all pairs, enough to give each row this number of partners (1-1000), or all that it has, identical ones first, in linear time even for copies';

CREATE FUNCTION near_dup_join(
    key anyelement, query_a text, query_b text, threshold double precision,
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case',
    slots integer DEFAULT NULL, seed bigint DEFAULT 0, measure text DEFAULT 'resemblance',
    params record DEFAULT NULL,
    OUT a anyelement, OUT b anyelement, OUT similarity double precision
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'near_dup_join_wrapper';
COMMENT ON FUNCTION near_dup_join(anyelement, text, text, double precision, integer, text, text, integer, bigint, text, record) IS
    'all pairs of similar rows, one of each query, for (key, signature [, document or set]), (key, document) or (key, set), not for bit strings; arguments as for near_dup_pairs, slots (NULL) as for minhash, or more if the threshold requires it';

CREATE FUNCTION near_dup_clusters(
    key anyelement, query text, threshold double precision, method text DEFAULT 'star',
    k integer DEFAULT 3, unit text DEFAULT 'word', fold text DEFAULT 'case',
    slots integer DEFAULT NULL, seed bigint DEFAULT 0,
    exceptions text DEFAULT NULL, params record DEFAULT NULL,
    OUT key anyelement, OUT cluster anyelement, OUT similarity double precision
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'near_dup_clusters_wrapper';
COMMENT ON FUNCTION near_dup_clusters(anyelement, text, double precision, text, integer, text, text, integer, bigint, text, record) IS
    'the cluster of every row of a query; method star|connected; query and further arguments as for near_dup_pairs';

CREATE FUNCTION connected_components(
    key anyelement, query text, params record DEFAULT NULL,
    OUT key anyelement, OUT component anyelement
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'connected_components_wrapper';
COMMENT ON FUNCTION connected_components(anyelement, text, record) IS
    'the component of every key of a list of edges, named by its smallest key';

CREATE FUNCTION star_clusters(
    key anyelement, rows text, pairs text, params record DEFAULT NULL,
    OUT key anyelement, OUT cluster anyelement, OUT similarity double precision
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 10000
AS 'MODULE_PATHNAME', 'star_clusters_wrapper';
COMMENT ON FUNCTION star_clusters(anyelement, text, text, record) IS
    'star clusters of the rows of a query for the key, in its order, from the pairs of a query for (key, key, similarity); like near_dup_clusters, but without a search';
