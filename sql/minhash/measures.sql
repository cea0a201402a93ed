COMMENT ON FUNCTION minhash_interval(minhash_signature, minhash_signature, float8) IS
    'estimated Jaccard similarity and the limits between which the true one lies with this confidence';
COMMENT ON FUNCTION minhash_margin(integer, float8) IS
    'half the width of the widest interval of estimates from that number of slots';
COMMENT ON FUNCTION minhash_relax(float8, integer, float8) IS
    'threshold on minhash_sim that two different documents of true similarity threshold reach with a probability of recall';
COMMENT ON FUNCTION minhash_containment(minhash_signature, minhash_signature) IS
    'estimated share of a that is in b, 0 to 1, of use where b is at most 8 times as large; NULL where no slot tells';
COMMENT ON FUNCTION minhash_cardinality(minhash_signature) IS
    'estimated number of distinct shingles or elements';
