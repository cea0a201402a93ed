COMMENT ON FUNCTION common_shingles(text, integer, integer, text, text, bigint) IS
    'hashes of the shingles that at least that many documents of the query (one column of text) have';
COMMENT ON FUNCTION minhash_excluding(text, bigint[], integer, text, text, integer, bigint) IS
    'MinHash signature of a document without the given shingles, comparable with those of minhash';
