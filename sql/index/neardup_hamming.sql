-- Declared for bit varying, so that PostgreSQL prefers it to scope_ops for both types of bit strings.
CREATE OPERATOR CLASS hamming_ops DEFAULT FOR TYPE varbit USING neardup AS
    OPERATOR 1 <@ (bit, _ball),
    OPERATOR 2 <-> (bit, bit) FOR ORDER BY integer_ops,
    FUNCTION 1 (varbit, varbit) hamming_within(bit, bit, integer),
    FUNCTION 1 (bit, bit) hamming_within(bit, bit, integer),
    FUNCTION 2 (varbit, varbit) _hamming_options(internal);

COMMENT ON FUNCTION _hamming_options(internal) IS
    'index support for hamming_ops';
COMMENT ON OPERATOR CLASS hamming_ops USING neardup IS
    'exact Hamming lookup of bit strings, and ORDER BY <->; option distance (0 to 63, default 3)';
COMMENT ON OPERATOR FAMILY hamming_ops USING neardup IS
    'exact Hamming lookup of bit strings';
