COMMENT ON FUNCTION minhash(text, integer, text, text, integer, bigint) IS
    'MinHash signature of a document; k shingle length in units (1-256), unit word|char|stop, fold none|case|marks, slots 1-1024';
COMMENT ON FUNCTION minhash(text, bigint[], integer, text, text, integer, bigint) IS
    'MinHash signature of a document without the given shingles, comparable with signatures of minhash';
