COMMENT ON TYPE near_dup_key IS
    'a document, signature or bit string, and the bound within which an exclusion constraint rejects another; made by near_dup_key, never stored';

COMMENT ON FUNCTION near_dup_key_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(near_dup_key) IS 'I/O';
COMMENT ON FUNCTION _near(near_dup_key, near_dup_key) IS
    'implementation of % operator';

CREATE OPERATOR % (
    LEFTARG = near_dup_key, RIGHTARG = near_dup_key, FUNCTION = _near,
    COMMUTATOR = %, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR % (near_dup_key, near_dup_key) IS
    'each is within the bound of the other; false for values of different kinds';
