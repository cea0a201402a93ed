CREATE FUNCTION split_text(
    doc text, by text, OUT number integer, OUT start integer, OUT text text
) RETURNS SETOF record
LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 10000 ROWS 100
AS 'MODULE_PATHNAME', 'split_text_wrapper';
COMMENT ON FUNCTION split_text(text, text) IS
    'the paragraphs, lines or sentences of a document with their first characters from 1, without white space around them';

CREATE FUNCTION cut_passages(
    doc text, spans int4multirange, replacement text DEFAULT ''
) RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 2000
AS 'MODULE_PATHNAME', 'cut_passages_wrapper';
COMMENT ON FUNCTION cut_passages(text, int4multirange, text) IS
    'the document without the given spans of characters, counted from 1; the replacement takes the place of each span';
