CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING neardup AS
    OPERATOR 1 <@ (minhash_signature, _ball),
    OPERATOR 2 <=> (minhash_signature, minhash_signature) FOR ORDER BY float_ops,
    FUNCTION 1 (minhash_signature, minhash_signature) near_dup(minhash_signature, minhash_signature, double precision),
    FUNCTION 2 (minhash_signature, minhash_signature) _minhash_options(internal);

COMMENT ON FUNCTION _minhash_options(internal) IS
    'index support for minhash_ops';
COMMENT ON OPERATOR CLASS minhash_ops USING neardup IS
    'exact near-duplicate lookup, and ORDER BY <=>; option threshold (above 0, at most 1, default 0.8)';
COMMENT ON OPERATOR FAMILY minhash_ops USING neardup IS
    'exact near-duplicate lookup';
