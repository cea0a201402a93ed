CREATE FUNCTION neardup_handler(internal) RETURNS index_am_handler
LANGUAGE c AS 'MODULE_PATHNAME', 'neardup_handler_wrapper';

CREATE ACCESS METHOD neardup TYPE INDEX HANDLER neardup_handler;

COMMENT ON FUNCTION neardup_handler(internal) IS
    'handler of the index access method neardup';
COMMENT ON ACCESS METHOD neardup IS
    'lookup of near-duplicates';
