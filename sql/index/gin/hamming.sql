CREATE OPERATOR CLASS hamming_ops FOR TYPE bit USING gin AS
    OPERATOR 1 <@ (bit, bit_ball),
    FUNCTION 2 (bit, bit) gin_hamming_extract_value(bit, internal, internal),
    FUNCTION 3 (bit, bit) gin_hamming_extract_query(bit, internal, smallint, internal, internal, internal, internal),
    FUNCTION 4 (bit, bit) gin_hamming_consistent(internal, smallint, bit, integer, internal, internal, internal, internal),
    FUNCTION 6 (bit, bit) gin_hamming_triconsistent(internal, smallint, bit, integer, internal, internal, internal),
    FUNCTION 7 (bit, bit) gin_hamming_options(internal),
    STORAGE integer;

COMMENT ON FUNCTION gin_hamming_extract_value(bit, internal, internal) IS
    'GIN support for hamming_ops';
COMMENT ON FUNCTION gin_hamming_extract_query(bit, internal, smallint, internal, internal, internal, internal) IS
    'GIN support for hamming_ops';
COMMENT ON FUNCTION gin_hamming_consistent(internal, smallint, bit, integer, internal, internal, internal, internal) IS
    'GIN support for hamming_ops';
COMMENT ON FUNCTION gin_hamming_triconsistent(internal, smallint, bit, integer, internal, internal, internal) IS
    'GIN support for hamming_ops';
COMMENT ON FUNCTION gin_hamming_options(internal) IS
    'GIN support for hamming_ops';
COMMENT ON OPERATOR CLASS hamming_ops USING gin IS
    'exact Hamming lookup of bit strings; options distance (0-63, default 3) and blocks (keys a row, at most 64, default distance + 1)';
COMMENT ON OPERATOR FAMILY hamming_ops USING gin IS
    'exact Hamming lookup of bit strings';
