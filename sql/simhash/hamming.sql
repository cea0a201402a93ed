COMMENT ON FUNCTION bit_hamming(bit, bit) IS
    'number of differing bits; error if the lengths differ';

CREATE OPERATOR <-> (
    LEFTARG = bit, RIGHTARG = bit, FUNCTION = bit_hamming, COMMUTATOR = <->
);
COMMENT ON OPERATOR <-> (bit, bit) IS
    'number of differing bits; error if the lengths differ';

COMMENT ON FUNCTION hamming_bands(bit, integer, integer) IS
    'B-tree keys for lookups up to a Hamming distance; one for every subset of blocks - distance blocks';
COMMENT ON FUNCTION hamming_probe(bit, integer, integer, integer) IS
    'keys such that every bit string within distance has at least one, made for index_distance';
COMMENT ON FUNCTION hamming_within(bit, bit, integer) IS
    'at most distance differing bits; false if the lengths differ; uses a neardup index on either argument';
