COMMENT ON FUNCTION lsh_probability(float8, integer, integer) IS
    'probability that documents of this Jaccard similarity share one of these bands';
COMMENT ON FUNCTION lsh_params(float8, integer, float8, float8) IS
    'bands and rows with the least weighted area of false positives and false negatives at a threshold';
