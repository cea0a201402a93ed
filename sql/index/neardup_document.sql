CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING neardup AS
    OPERATOR 1 <% (text, _ball),
    OPERATOR 5 %> (text, _ball),
    OPERATOR 6 <@ (text, _ball),
    FUNCTION 1 (text, text) near_dup(text, text, double precision, integer, text, text),
    FUNCTION 2 (text, text) _document_options(internal);

COMMENT ON FUNCTION _document_options(internal) IS
    'index support for text_ops';
COMMENT ON OPERATOR CLASS text_ops USING neardup IS
    'lookup of documents by resemblance, and by containment in both directions, at every threshold; a document of more shingles than keys is missed with a probability of at most 1e-9; options keys (64-1024, default 512), k (1-256, default 3), unit word|char|stop, fold none|case|marks, seed';
COMMENT ON OPERATOR FAMILY text_ops USING neardup IS
    'lookup of documents by resemblance and containment';
