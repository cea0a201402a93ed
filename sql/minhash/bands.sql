COMMENT ON FUNCTION minhash_bands(minhash_signature, double precision) IS
    'band keys of a signature for a B-tree; similar signatures share at least minhash_intact of them';
COMMENT ON FUNCTION minhash_bands(minhash_signature, integer, integer) IS
    'keys of the classic scheme: bands of rows slots each; similar documents probably share one';
COMMENT ON FUNCTION minhash_intact(integer, double precision, double precision, integer) IS
    'least number of band keys made for index_threshold that two signatures at or above threshold share';
COMMENT ON FUNCTION minhash_probe(minhash_signature, double precision, double precision) IS
    'fewest keys such that every signature at or above threshold has at least one, made for index_threshold';
COMMENT ON FUNCTION minhash_shared_band(minhash_signature, minhash_signature, double precision) IS
    'first of the band keys for threshold that two signatures share; null if they share none';
