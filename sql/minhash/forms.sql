COMMENT ON FUNCTION minhash_union(minhash_signature, minhash_signature) IS
    'signature of the union of the two sets; error if the parameters differ';
COMMENT ON FUNCTION minhash_pack(minhash_signature, integer) IS
    'signature with only the low bits (1, 2, 4, 8, 16) of each slot';
COMMENT ON FUNCTION minhash_describe(minhash_signature) IS
    'parameters of a signature; its slots as numbers, and as a bit string, each with its highest bit first';
COMMENT ON FUNCTION minhash_import(bigint[], text) IS
    'signature of slots computed elsewhere (smallest 32-bit hashes); comparable within one source';

CREATE OPERATOR || (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature,
    FUNCTION = minhash_union, COMMUTATOR = ||
);
COMMENT ON OPERATOR || (minhash_signature, minhash_signature) IS
    'signature of the union of the two sets';
