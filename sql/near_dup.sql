CREATE FUNCTION near_dup(a minhash_signature, b minhash_signature, threshold double precision DEFAULT 0.8) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 10 SUPPORT near_dup_support
LANGUAGE c AS 'MODULE_PATHNAME', 'near_dup_wrapper';
COMMENT ON FUNCTION near_dup(minhash_signature, minhash_signature, double precision) IS
    'minhash_sim(a, b) >= threshold; false if the parameters differ; uses a GIN index on either argument';
COMMENT ON FUNCTION hamming_within(bit, bit, integer) IS
    'at most distance differing bits; false if the lengths differ; uses a GIN index with hamming_ops on either argument';
COMMENT ON FUNCTION near_dup_support(internal) IS 'planner support for near_dup';
COMMENT ON FUNCTION hamming_within_support(internal) IS 'planner support for hamming_within';
