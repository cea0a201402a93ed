COMMENT ON FUNCTION jaccard(bigint[], bigint[]) IS
    'Jaccard similarity of two sets, 0 to 1; 0 if one is empty; at least a constant, it uses a neardup index on either set';
COMMENT ON FUNCTION jaccard(text[], text[]) IS
    'Jaccard similarity of two sets, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION containment(bigint[], bigint[]) IS
    'share of the first set that is in the second, 0 to 1; 0 if one is empty; at least a constant, it uses a neardup index on either set';
COMMENT ON FUNCTION containment(text[], text[]) IS
    'share of the first set that is in the second, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION near_contained(bigint[], bigint[], double precision) IS
    'containment(part, whole) >= threshold (above 0, at most 1); uses a neardup index on either set';
COMMENT ON FUNCTION near_dup(bigint[], bigint[], double precision) IS
    'jaccard(a, b) >= threshold (above 0, at most 1); uses a neardup index on either set';
COMMENT ON FUNCTION resemblance(text, text, integer, text, text) IS
    'Jaccard similarity of the shingle sets of two documents, computed from the documents; at least a constant, it uses a neardup index on either document';
COMMENT ON FUNCTION containment(text, text, integer, text, text) IS
    'share of the first document''s shingles that are in the second document';
COMMENT ON FUNCTION near_dup(text, text, double precision, integer, text, text) IS
    'resemblance(a, b, k, unit, fold) >= threshold (above 0, at most 1); uses a neardup index on either document';
COMMENT ON FUNCTION near_contained(text, text, double precision, integer, text, text) IS
    'containment(part, whole, k, unit, fold) >= threshold (above 0, at most 1); uses a neardup index on the shingle_hashes of either document';
