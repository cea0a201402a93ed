COMMENT ON TYPE _set_share IS
    'a set, and the share of it, of another, or of both that they have to share: <{elements},threshold>';

COMMENT ON FUNCTION _set_share_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(_set_share) IS 'I/O';
COMMENT ON FUNCTION _set_share_recv(internal) IS 'I/O';
COMMENT ON FUNCTION _send(_set_share) IS 'I/O';

COMMENT ON FUNCTION _set_share(bigint[], double precision) IS
    'a set, and the share (above 0, at most 1) of it, of another, or of both that they have to share, for use with %>, <% and <%>';
COMMENT ON FUNCTION _contains(bigint[], _set_share) IS
    'implementation of %> operator';
COMMENT ON FUNCTION _within(_set_share, bigint[]) IS
    'implementation of <% operator';
COMMENT ON FUNCTION _within(bigint[], _set_share) IS
    'implementation of <% operator';
COMMENT ON FUNCTION _contains(_set_share, bigint[]) IS
    'implementation of %> operator';

COMMENT ON FUNCTION _resembles(bigint[], _set_share) IS
    'implementation of <%> operator';
COMMENT ON FUNCTION _resembles(_set_share, bigint[]) IS
    'implementation of <%> operator';

CREATE OPERATOR %> (
    LEFTARG = bigint[], RIGHTARG = _set_share, FUNCTION = _contains,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <% (
    LEFTARG = _set_share, RIGHTARG = bigint[], FUNCTION = _within,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <% (
    LEFTARG = bigint[], RIGHTARG = _set_share, FUNCTION = _within,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR %> (
    LEFTARG = _set_share, RIGHTARG = bigint[], FUNCTION = _contains,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <%> (
    LEFTARG = bigint[], RIGHTARG = _set_share, FUNCTION = _resembles,
    COMMUTATOR = <%>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <%> (
    LEFTARG = _set_share, RIGHTARG = bigint[], FUNCTION = _resembles,
    COMMUTATOR = <%>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <%> (bigint[], _set_share) IS 'has the Jaccard similarity with the set';
COMMENT ON OPERATOR <%> (_set_share, bigint[]) IS 'has the Jaccard similarity with the elements';
COMMENT ON OPERATOR %> (bigint[], _set_share) IS 'contains the share of the set';
COMMENT ON OPERATOR <% (_set_share, bigint[]) IS 'has its share contained in';
COMMENT ON OPERATOR <% (bigint[], _set_share) IS 'has the share of its elements in the set';
COMMENT ON OPERATOR %> (_set_share, bigint[]) IS 'contains the share of the elements';
