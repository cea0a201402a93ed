CREATE FUNCTION minhash_sim(a minhash_signature, b minhash_signature) RETURNS double precision
IMMUTABLE STRICT PARALLEL SAFE COST 10 SUPPORT _near_dup_support
LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_sim_wrapper';
COMMENT ON FUNCTION minhash_sim(minhash_signature, minhash_signature) IS
    'estimated Jaccard similarity, 0 to 1; error if the parameters differ';
COMMENT ON FUNCTION minhash_distance(minhash_signature, minhash_signature) IS
    '1 - minhash_sim';

CREATE OPERATOR <=> (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_distance,
    COMMUTATOR = <=>
);
COMMENT ON OPERATOR <=> (minhash_signature, minhash_signature) IS
    'estimated Jaccard distance: 1 - minhash_sim';

CREATE FUNCTION near_dup(a minhash_signature, b minhash_signature, threshold double precision DEFAULT 0.8) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 10 SUPPORT _near_dup_support
LANGUAGE c AS 'MODULE_PATHNAME', 'near_dup_wrapper';
COMMENT ON FUNCTION near_dup(minhash_signature, minhash_signature, double precision) IS
    'minhash_sim(a, b) >= threshold; false if the parameters differ; uses a neardup index on either argument';
