CREATE OPERATOR CLASS near_dup_key_ops DEFAULT FOR TYPE near_dup_key USING neardup AS
    OPERATOR 3 % (near_dup_key, near_dup_key),
    FUNCTION 1 (near_dup_key, near_dup_key) neardup_near_dup_key_kind(internal);
CREATE OPERATOR CLASS hamming_key_ops DEFAULT FOR TYPE hamming_key USING neardup AS
    OPERATOR 3 % (hamming_key, hamming_key),
    FUNCTION 1 (hamming_key, hamming_key) neardup_hamming_key_kind(internal);

COMMENT ON FUNCTION neardup_near_dup_key_kind(internal) IS
    'index support for near_dup_key_ops';
COMMENT ON FUNCTION neardup_hamming_key_kind(internal) IS
    'index support for hamming_key_ops';
COMMENT ON OPERATOR CLASS near_dup_key_ops USING neardup IS
    'constraint keys of signatures: EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %)';
COMMENT ON OPERATOR CLASS hamming_key_ops USING neardup IS
    'constraint keys of bit strings: EXCLUDE USING neardup (hamming_key(bits, 3) WITH %)';
COMMENT ON OPERATOR FAMILY near_dup_key_ops USING neardup IS
    'constraint keys of signatures';
COMMENT ON OPERATOR FAMILY hamming_key_ops USING neardup IS
    'constraint keys of bit strings';
