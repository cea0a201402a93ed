COMMENT ON FUNCTION shingles(text, integer, text, text) IS
    'distinct shingles of a document in order of first appearance';
COMMENT ON FUNCTION shingle_hashes(text, integer, text, text, bigint) IS
    'distinct 64-bit hashes of the shingles of a document, sorted';
COMMENT ON FUNCTION jaccard(bigint[], bigint[]) IS
    'Jaccard similarity of two sets, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION containment(bigint[], bigint[]) IS
    'share of the first set that is in the second, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION resemblance(text, text, integer, text, text) IS
    'exact Jaccard similarity of the shingle sets of two documents';
