CREATE FUNCTION common_chunks(
    a text, b text, min_words integer DEFAULT 5, matching text DEFAULT 'literal'
) RETURNS TABLE (
    words integer, a_word integer, a_start integer, a_length integer,
    b_word integer, b_start integer, b_length integer, chunk text
)
LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 20000 ROWS 20
AS 'MODULE_PATHNAME', 'common_chunks_wrapper';
COMMENT ON FUNCTION common_chunks(text, text, integer, text) IS
    'common runs of words (literal: no word used twice, information: repeats count once), with word and character positions from 1';

CREATE FUNCTION chunk_similarity(
    a text, b text, min_words integer DEFAULT 5, matching text DEFAULT 'literal',
    OUT common integer, OUT longer integer, OUT shorter integer,
    OUT s_l double precision, OUT s_j double precision
)
LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 20000
AS 'MODULE_PATHNAME', 'chunk_similarity_wrapper';
COMMENT ON FUNCTION chunk_similarity(text, text, integer, text) IS
    'words in common chunks (C) and in the longer (L) and shorter (S) document; s_l = C / L, s_j = C / (L + S - C)';

CREATE FUNCTION near_dup_explain(
    a text, b text,
    OUT kind text, OUT similarity double precision,
    OUT words_only_in_a text[], OUT words_only_in_b text[]
)
LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 100000
AS 'MODULE_PATHNAME', 'near_dup_explain_wrapper';
COMMENT ON FUNCTION near_dup_explain(text, text) IS
    'how b differs from a: identical, format, numbers, added or removed at start, in middle, added at end, truncated, reordered, rewritten';
