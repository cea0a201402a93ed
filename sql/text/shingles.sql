COMMENT ON FUNCTION shingles(text, integer, text, text) IS
    'distinct shingles of a document in order of first appearance; k units (1-256), unit word|char|stop, fold none|case|marks';
COMMENT ON FUNCTION shingle_hashes(text, integer, text, text, bigint) IS
    'distinct 64-bit hashes of the shingles of a document, sorted';
COMMENT ON FUNCTION shingle_hashes(text[], bigint) IS
    'distinct 64-bit hashes of given shingles, sorted; a document''s shingles hash differently, word by word';
COMMENT ON FUNCTION shingle_sample(bigint[], integer) IS
    'the hashes that are 0 modulo the given number: a sample that is the same wherever a hash occurs';
COMMENT ON FUNCTION bucket_sketch(bigint[], integer) IS
    'the smallest hash of each residue class modulo the number of buckets';
COMMENT ON FUNCTION supershingles(bigint[], integer) IS
    'hashes of all runs of size hashes (1-256) of the sorted set';
COMMENT ON FUNCTION winnow(text, integer, integer, text, text, bigint) IS
    'fingerprints of passages: documents with a common run of window + k - 1 units share one; window 1-65536';
