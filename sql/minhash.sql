CREATE FUNCTION minhash_sim(a minhash_signature, b minhash_signature) RETURNS double precision
IMMUTABLE STRICT PARALLEL SAFE COST 10 SUPPORT minhash_sim_support
LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_sim_wrapper';
COMMENT ON FUNCTION minhash(text, integer, text, text, integer, bigint) IS
    'MinHash signature of a document; k shingle length in units (1-256), unit word|char|stop, fold none|case|marks, slots 1-1024';
COMMENT ON FUNCTION minhash_sim(minhash_signature, minhash_signature) IS
    'estimated Jaccard similarity, 0 to 1; error if the parameters differ';
COMMENT ON FUNCTION minhash_distance(minhash_signature, minhash_signature) IS
    '1 - minhash_sim';
COMMENT ON FUNCTION minhash_describe(minhash_signature) IS
    'parameters of a signature as jsonb';

CREATE OPERATOR <=> (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_distance,
    COMMUTATOR = <=>
);
COMMENT ON OPERATOR <=> (minhash_signature, minhash_signature) IS
    'estimated Jaccard distance: 1 - minhash_sim';
