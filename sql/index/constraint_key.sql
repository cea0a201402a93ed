COMMENT ON TYPE near_dup_key IS
    'a signature or bit string and the bound within which an exclusion constraint refuses another; made by near_dup_key, never stored';

COMMENT ON FUNCTION near_dup_key_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(near_dup_key) IS 'I/O';

COMMENT ON FUNCTION near_dup_key(text, double precision, integer, text, text, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(body, 0.8) WITH %): no two documents whose resemblance reaches a threshold (0.5 to 1); with a label, such as label => id::text, that a violation prints in place of a digest';
COMMENT ON FUNCTION near_dup_key(minhash_signature, double precision, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %): no two rows at or above a threshold (above 0, at most 1); a violation prints the label, such as label => id::text, in place of a digest; of more than 200 bytes the first';
COMMENT ON FUNCTION near_dup_key(bit, integer, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(bits, 3) WITH %): no two rows within a Hamming distance (0 to 63); a violation prints the label';
COMMENT ON FUNCTION _near(near_dup_key, near_dup_key) IS
    'implementation of % operator';

CREATE OPERATOR % (
    LEFTARG = near_dup_key, RIGHTARG = near_dup_key, FUNCTION = _near,
    COMMUTATOR = %, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR % (near_dup_key, near_dup_key) IS
    'each is within the bound of the other; never a signature and a bit string';
