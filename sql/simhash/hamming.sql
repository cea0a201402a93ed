COMMENT ON FUNCTION bit_hamming(bit, bit) IS
    'number of differing bits; error if the lengths differ';

CREATE OPERATOR <-> (
    LEFTARG = bit, RIGHTARG = bit, FUNCTION = bit_hamming, COMMUTATOR = <->
);
COMMENT ON OPERATOR <-> (bit, bit) IS
    'number of differing bits; error if the lengths differ';
COMMENT ON FUNCTION hamming_within(bit, bit, integer) IS
    'at most distance differing bits; false if the lengths differ; uses a neardup index on either argument';
