COMMENT ON FUNCTION minhash_union(minhash_signature, minhash_signature) IS
    'signature of the union of the two sets; error if the parameters differ';

CREATE OPERATOR || (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature,
    FUNCTION = minhash_union, COMMUTATOR = ||
);
COMMENT ON OPERATOR || (minhash_signature, minhash_signature) IS
    'signature of the union of the two sets';
