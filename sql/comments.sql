-- COMMENTs on functions that Rust declares and that no other SQL object needs.
COMMENT ON FUNCTION pg_neardup_version() IS
    'version of the loaded library; the version of the SQL objects is in pg_extension';

COMMENT ON FUNCTION shingles(text, integer, text, text) IS
    'distinct shingles of a document in order of first appearance; k units (1-256), unit word|char|stop, fold none|case|marks';
COMMENT ON FUNCTION shingle_hashes(text, integer, text, text, bigint) IS
    'distinct 64-bit hashes of the shingles of a document, sorted';
COMMENT ON FUNCTION shingle_hashes(text[], bigint) IS
    'distinct 64-bit hashes of given shingles, sorted; a document''s shingles hash differently, word by word';
COMMENT ON FUNCTION shingle_sample(bigint[], integer) IS
    'the hashes that are 0 modulo the given number: a sample that keeps a hash in every set or in none';
COMMENT ON FUNCTION bucket_sketch(bigint[], integer) IS
    'the smallest hash of each residue class modulo the number of buckets';
COMMENT ON FUNCTION supershingles(bigint[], integer) IS
    'hashes of all runs of size hashes (1-256) of the sorted set';
COMMENT ON FUNCTION winnow(text, integer, integer, text, text, bigint) IS
    'fingerprints of passages: documents with a common run of window + k - 1 units share one; window 1-65536';

COMMENT ON FUNCTION jaccard(bigint[], bigint[]) IS
    'Jaccard similarity of two sets, 0 to 1; 0 if one is empty; with >= and a constant, it uses a neardup index on either set';
COMMENT ON FUNCTION jaccard(text[], text[]) IS
    'Jaccard similarity of two sets, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION containment(bigint[], bigint[]) IS
    'share of the first set that is in the second, 0 to 1; 0 if one is empty; with >= and a constant, it uses a neardup index on either set';
COMMENT ON FUNCTION containment(text[], text[]) IS
    'share of the first set that is in the second, 0 to 1; 0 if one is empty';
COMMENT ON FUNCTION near_contained(bigint[], bigint[], double precision) IS
    'containment(part, whole) >= threshold (above 0, at most 1); uses a neardup index on either set';
COMMENT ON FUNCTION near_dup(bigint[], bigint[], double precision) IS
    'jaccard(a, b) >= threshold (above 0, at most 1); uses a neardup index on either set';
COMMENT ON FUNCTION resemblance(text, text, integer, text, text) IS
    'Jaccard similarity of the shingle sets of two documents, computed from the documents; with >= and a constant, it uses a neardup index on either document';
COMMENT ON FUNCTION containment(text, text, integer, text, text) IS
    'share of the first document''s shingles that are in the second document; with >= and a constant, it uses a neardup index on either document, or on its shingle_hashes';
COMMENT ON FUNCTION near_dup(text, text, double precision, integer, text, text) IS
    'resemblance(a, b, k, unit, fold) >= threshold (above 0, at most 1); uses a neardup index on either document';
COMMENT ON FUNCTION near_contained(text, text, double precision, integer, text, text) IS
    'containment(part, whole, k, unit, fold) >= threshold (above 0, at most 1); uses a neardup index on either document, or on its shingle_hashes';

COMMENT ON FUNCTION longest_common_substring(text, text) IS
    'longest run of characters that both texts share';
COMMENT ON FUNCTION edit_distance(text, text, integer, integer, integer, bigint) IS
    'least cost of the insertions, deletions and substitutions of characters that turn a into b; NULL if above max';

COMMENT ON FUNCTION minhash(text, integer, text, text, integer, bigint) IS
    'MinHash signature of a document; k shingle length in units (1-256), unit word|char|stop, fold none|case|marks, slots 1-1024';
COMMENT ON FUNCTION minhash(text, bigint[], integer, text, text, integer, bigint) IS
    'MinHash signature of a document without the given shingles, comparable with signatures of minhash';

COMMENT ON FUNCTION minhash(text[], integer, bigint) IS
    'MinHash signature of a set of texts; slots 1-1024';
COMMENT ON FUNCTION minhash(bigint[], integer, bigint) IS
    'MinHash signature of a set of numbers; slots 1-1024';
COMMENT ON FUNCTION minhash(tsvector, integer, integer, bigint) IS
    'MinHash signature of runs of k lexemes (1-256) of a document; slots 1-1024';

COMMENT ON FUNCTION minhash_pack(minhash_signature, integer) IS
    'signature with only the low bits (1, 2, 4, 8, 16) of each slot';
COMMENT ON FUNCTION minhash_describe(minhash_signature) IS
    'parameters of a signature; its slots as numbers, and as a bit string, each with its highest bit first';
COMMENT ON FUNCTION minhash_import(bigint[], text) IS
    'signature of slots computed elsewhere (smallest 32-bit hashes); comparable within one source';

COMMENT ON FUNCTION minhash_interval(minhash_signature, minhash_signature, float8) IS
    'estimated Jaccard similarity and the limits between which the true one lies with at least this confidence';
COMMENT ON FUNCTION minhash_containment(minhash_signature, minhash_signature) IS
    'estimated share of a that is in b, 0 to 1, useful if b is at most 8 times as large as a; NULL if no slot is informative';
COMMENT ON FUNCTION minhash_cardinality(minhash_signature) IS
    'estimated number of distinct shingles or elements';

COMMENT ON FUNCTION minhash_bands(minhash_signature, double precision) IS
    'band keys of a signature for a B-tree; of b keys, signatures of k slots at or above t share at least b - (1 - t) k';
COMMENT ON FUNCTION minhash_bands(minhash_signature, integer, integer) IS
    'keys of the classic scheme: bands of rows slots each; similar documents probably share one';
COMMENT ON FUNCTION minhash_probe(minhash_signature, double precision, double precision) IS
    'fewest keys such that every signature at or above threshold has at least one, made for index_threshold';
COMMENT ON FUNCTION minhash_shared_band(minhash_signature, minhash_signature, double precision) IS
    'first of the band keys for threshold that two signatures share; NULL if they share none';

COMMENT ON FUNCTION lsh_probability(float8, integer, integer) IS
    'probability that documents of this Jaccard similarity share one of these bands';
COMMENT ON FUNCTION lsh_params(float8, integer, float8, float8) IS
    'bands and rows with the least weighted area of false positives and false negatives at a threshold';

COMMENT ON FUNCTION simhash(text[], float8[], integer, bigint) IS
    'SimHash of weighted terms; bits 64-4096 in steps of 64';
COMMENT ON FUNCTION simhash(tsvector, integer, text, bigint) IS
    'SimHash of the lexemes of a document by frequency and weight class; bits 64-4096 in steps of 64, weighting tf|log|set';

COMMENT ON FUNCTION hamming_bands(bit, integer, integer) IS
    'B-tree keys for lookups up to a Hamming distance; one for every subset of blocks - distance blocks';
COMMENT ON FUNCTION hamming_probe(bit, integer, integer, integer) IS
    'keys such that every bit string within distance has at least one, made for index_distance';

COMMENT ON FUNCTION _ball(minhash_signature, double precision) IS
    'implementation of lookups: every signature at or above threshold (above 0, at most 1), for use with <@';
COMMENT ON FUNCTION _ball(minhash_signature, double precision, boolean) IS
    'planner support for minhash_sim and minhash_distance: the ball of a bound that is not known while planning; NULL if no signature can be in it';
COMMENT ON FUNCTION _ball(bit, integer) IS
    'implementation of lookups: every bit string of equal length that differs in at most distance bits, for use with <@';
COMMENT ON FUNCTION _ball(bit, integer, boolean) IS
    'planner support for bit_hamming: the ball of a bound that is not known while planning; NULL if no bit string can be in it';
COMMENT ON FUNCTION _ball(bigint[], double precision) IS
    'implementation of lookups: a set and the least containment of it (%>), containment in it (<%) or Jaccard similarity with it (<%>), above 0, at most 1';

COMMENT ON FUNCTION _ball(text, double precision, integer, text, text) IS
    'implementation of lookups: a document and the least resemblance to it (<@), containment of it (%>) or containment in it (<%), above 0, at most 1';

COMMENT ON FUNCTION near_dup_key(text, double precision, integer, text, text, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(body, 0.8) WITH %): no two documents whose resemblance reaches a threshold; with a label, such as label => id::text, that a violation prints in place of a digest';
COMMENT ON FUNCTION near_dup_key(minhash_signature, double precision, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %): no two rows at or above a threshold (above 0, at most 1); a violation prints the first 200 bytes of the label, such as label => id::text, in place of a digest';
COMMENT ON FUNCTION near_dup_key(bit, integer, text) IS
    'key for EXCLUDE USING neardup (near_dup_key(bits, 3) WITH %): no two rows within a Hamming distance (0 to 63); a violation prints the label';
