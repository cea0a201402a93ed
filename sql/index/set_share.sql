COMMENT ON TYPE set_share IS
    'a set, and the share of it, of another, or of both that they have to share: <{elements},threshold>';

COMMENT ON FUNCTION set_share_in(cstring) IS 'I/O';
COMMENT ON FUNCTION set_share_out(set_share) IS 'I/O';
COMMENT ON FUNCTION set_share_recv(internal) IS 'I/O';
COMMENT ON FUNCTION set_share_send(set_share) IS 'I/O';

COMMENT ON FUNCTION set_share(bigint[], double precision) IS
    'a set, and the share (above 0, at most 1) of it, of another, or of both that they have to share, for use with %>, <% and <%>';
COMMENT ON FUNCTION set_contains(bigint[], set_share) IS
    'implementation of %> operator';
COMMENT ON FUNCTION set_contained(set_share, bigint[]) IS
    'implementation of <% operator';
COMMENT ON FUNCTION set_contained(bigint[], set_share) IS
    'implementation of <% operator';
COMMENT ON FUNCTION set_contains(set_share, bigint[]) IS
    'implementation of %> operator';

COMMENT ON FUNCTION set_resembles(bigint[], set_share) IS
    'implementation of <%> operator';
COMMENT ON FUNCTION set_resembles(set_share, bigint[]) IS
    'implementation of <%> operator';

CREATE OPERATOR %> (
    LEFTARG = bigint[], RIGHTARG = set_share, FUNCTION = set_contains,
    COMMUTATOR = <%, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR <% (
    LEFTARG = set_share, RIGHTARG = bigint[], FUNCTION = set_contained,
    COMMUTATOR = %>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR <% (
    LEFTARG = bigint[], RIGHTARG = set_share, FUNCTION = set_contained,
    COMMUTATOR = %>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR %> (
    LEFTARG = set_share, RIGHTARG = bigint[], FUNCTION = set_contains,
    COMMUTATOR = <%, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR <%> (
    LEFTARG = bigint[], RIGHTARG = set_share, FUNCTION = set_resembles,
    COMMUTATOR = <%>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR <%> (
    LEFTARG = set_share, RIGHTARG = bigint[], FUNCTION = set_resembles,
    COMMUTATOR = <%>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
COMMENT ON OPERATOR <%> (bigint[], set_share) IS 'has the Jaccard similarity with the set';
COMMENT ON OPERATOR <%> (set_share, bigint[]) IS 'has the Jaccard similarity with the elements';
COMMENT ON OPERATOR %> (bigint[], set_share) IS 'contains the share of the set';
COMMENT ON OPERATOR <% (set_share, bigint[]) IS 'has its share contained in';
COMMENT ON OPERATOR <% (bigint[], set_share) IS 'has the share of its elements in the set';
COMMENT ON OPERATOR %> (set_share, bigint[]) IS 'contains the share of the elements';
