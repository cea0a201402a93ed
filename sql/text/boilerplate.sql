COMMENT ON FUNCTION common_shingles(text, integer, integer, text, text, bigint) IS
    'hashes of the shingles that at least that many documents of the query (one column of text) have';
