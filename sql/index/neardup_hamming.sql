CREATE OPERATOR CLASS hamming_ops DEFAULT FOR TYPE bit USING neardup AS
    OPERATOR 1 <@ (bit, _bit_ball),
    OPERATOR 2 <-> (bit, bit) FOR ORDER BY integer_ops,
    FUNCTION 1 (bit, bit) neardup_hamming_kind(internal),
    FUNCTION 2 (bit, bit) neardup_hamming_options(internal);

COMMENT ON FUNCTION neardup_hamming_kind(internal) IS
    'index support for hamming_ops';
COMMENT ON FUNCTION neardup_hamming_options(internal) IS
    'index support for hamming_ops';
COMMENT ON OPERATOR CLASS hamming_ops USING neardup IS
    'exact Hamming lookup of bit strings, and ORDER BY <->; option distance (0 to 63, default 3)';
COMMENT ON OPERATOR FAMILY hamming_ops USING neardup IS
    'exact Hamming lookup of bit strings';
