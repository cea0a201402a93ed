CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING gin AS
    OPERATOR 1 <@ (minhash_signature, minhash_ball),
    FUNCTION 2 (minhash_signature, minhash_signature) gin_minhash_extract_value(minhash_signature, internal, internal),
    FUNCTION 3 (minhash_signature, minhash_signature) gin_minhash_extract_query(minhash_signature, internal, smallint, internal, internal, internal, internal),
    FUNCTION 4 (minhash_signature, minhash_signature) gin_minhash_consistent(internal, smallint, minhash_signature, integer, internal, internal, internal, internal),
    FUNCTION 6 (minhash_signature, minhash_signature) gin_minhash_triconsistent(internal, smallint, minhash_signature, integer, internal, internal, internal),
    FUNCTION 7 (minhash_signature, minhash_signature) gin_minhash_options(internal),
    STORAGE integer;

COMMENT ON FUNCTION gin_minhash_extract_value(minhash_signature, internal, internal) IS
    'GIN support for minhash_ops';
COMMENT ON FUNCTION gin_minhash_extract_query(minhash_signature, internal, smallint, internal, internal, internal, internal) IS
    'GIN support for minhash_ops';
COMMENT ON FUNCTION gin_minhash_consistent(internal, smallint, minhash_signature, integer, internal, internal, internal, internal) IS
    'GIN support for minhash_ops';
COMMENT ON FUNCTION gin_minhash_triconsistent(internal, smallint, minhash_signature, integer, internal, internal, internal) IS
    'GIN support for minhash_ops';
COMMENT ON FUNCTION gin_minhash_options(internal) IS
    'GIN support for minhash_ops';
COMMENT ON OPERATOR CLASS minhash_ops USING gin IS
    'exact near-duplicate lookup; options threshold (above 0, at most 1, default 0.8) and key_bits (8-24, default 16)';
COMMENT ON OPERATOR FAMILY minhash_ops USING gin IS
    'exact near-duplicate lookup';
