COMMENT ON FUNCTION minhash(text[], integer, bigint) IS
    'MinHash signature of a set of texts; slots 1-1024';
COMMENT ON FUNCTION minhash(bigint[], integer, bigint) IS
    'MinHash signature of a set of numbers; slots 1-1024';
COMMENT ON FUNCTION minhash(tsvector, integer, integer, bigint) IS
    'MinHash signature of runs of k lexemes (1-256) of a document; slots 1-1024';
