CREATE FUNCTION simhash(
    doc text, k integer DEFAULT 1, unit text DEFAULT 'word', fold text DEFAULT 'case', bits integer DEFAULT 64,
    weighting text DEFAULT 'log', seed bigint DEFAULT 0
) RETURNS bit
IMMUTABLE STRICT PARALLEL SAFE COST 500
LANGUAGE c AS 'MODULE_PATHNAME', 'simhash_wrapper';
COMMENT ON FUNCTION simhash(text, integer, text, text, integer, text, bigint) IS
    'SimHash of a document; k 1-256, unit word|char|stop, fold none|case|marks, bits 64-4096 in steps of 64, weighting tf|log|set';
