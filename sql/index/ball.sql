COMMENT ON TYPE _ball IS
    'implementation of lookups: a document, signature, bit string or set, and the bound within which others are in the ball';

COMMENT ON FUNCTION _ball_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(_ball) IS 'I/O';
COMMENT ON FUNCTION _near_dup_sel(internal, oid, internal, integer) IS
    'planner support for <@ and @>: share of rows';
COMMENT ON FUNCTION _near_dup_sel(internal, oid, internal, smallint, internal) IS
    'planner support for <@ and @>: share of pairs';
COMMENT ON FUNCTION _within(minhash_signature, _ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _within(bit, _ball) IS
    'implementation of <@ operator';

COMMENT ON FUNCTION _contains(bigint[], _ball) IS
    'implementation of %> operator';
COMMENT ON FUNCTION _within(bigint[], _ball) IS
    'implementation of <% operator';

COMMENT ON FUNCTION _near(bigint[], _ball) IS
    'implementation of <%> operator';

CREATE OPERATOR <@ (
    LEFTARG = minhash_signature, RIGHTARG = _ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _contains(ball _ball, m minhash_signature) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 10 RETURN m <@ ball;
COMMENT ON FUNCTION _contains(_ball, minhash_signature) IS
    'implementation of @> operator';
CREATE OPERATOR @> (
    LEFTARG = _ball, RIGHTARG = minhash_signature, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <@ (
    LEFTARG = bit, RIGHTARG = _ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _contains(ball _ball, b bit) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 10 RETURN b <@ ball;
COMMENT ON FUNCTION _contains(_ball, bit) IS
    'implementation of @> operator';
CREATE OPERATOR @> (
    LEFTARG = _ball, RIGHTARG = bit, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <@ (minhash_signature, _ball) IS 'is a near-duplicate of the center';
COMMENT ON OPERATOR @> (_ball, minhash_signature) IS 'has a near-duplicate of its center';
COMMENT ON OPERATOR <@ (bit, _ball) IS 'is within the Hamming distance of the center';
COMMENT ON OPERATOR @> (_ball, bit) IS 'has a bit string within the Hamming distance of its center';

CREATE OPERATOR %> (
    LEFTARG = bigint[], RIGHTARG = _ball, FUNCTION = _contains,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _within(part _ball, whole bigint[]) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 500 RETURN whole %> part;
COMMENT ON FUNCTION _within(_ball, bigint[]) IS
    'implementation of <% operator';
CREATE OPERATOR <% (
    LEFTARG = _ball, RIGHTARG = bigint[], FUNCTION = _within,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <% (
    LEFTARG = bigint[], RIGHTARG = _ball, FUNCTION = _within,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _contains(whole _ball, part bigint[]) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 500 RETURN part <% whole;
COMMENT ON FUNCTION _contains(_ball, bigint[]) IS
    'implementation of %> operator';
CREATE OPERATOR %> (
    LEFTARG = _ball, RIGHTARG = bigint[], FUNCTION = _contains,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <%> (
    LEFTARG = bigint[], RIGHTARG = _ball, FUNCTION = _near,
    COMMUTATOR = <%>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _near(b _ball, a bigint[]) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 500 RETURN a <%> b;
COMMENT ON FUNCTION _near(_ball, bigint[]) IS
    'implementation of <%> operator';
CREATE OPERATOR <%> (
    LEFTARG = _ball, RIGHTARG = bigint[], FUNCTION = _near,
    COMMUTATOR = <%>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <%> (bigint[], _ball) IS 'Jaccard similarity of set and center at least that of the ball';
COMMENT ON OPERATOR <%> (_ball, bigint[]) IS 'Jaccard similarity of center and set at least that of the ball';
COMMENT ON OPERATOR %> (bigint[], _ball) IS 'containment of the center in the set at least that of the ball';
COMMENT ON OPERATOR <% (_ball, bigint[]) IS 'containment of the center in the set at least that of the ball';
COMMENT ON OPERATOR <% (bigint[], _ball) IS 'containment of the set in the center at least that of the ball';
COMMENT ON OPERATOR %> (_ball, bigint[]) IS 'containment of the set in the center at least that of the ball';
COMMENT ON FUNCTION _within(text, _ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _contains(text, _ball) IS
    'implementation of %> operator';
COMMENT ON FUNCTION _part(text, _ball) IS
    'implementation of <% operator';

CREATE OPERATOR <@ (
    LEFTARG = text, RIGHTARG = _ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _contains(ball _ball, doc text) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 1000 RETURN doc <@ ball;
COMMENT ON FUNCTION _contains(_ball, text) IS
    'implementation of @> operator';
CREATE OPERATOR @> (
    LEFTARG = _ball, RIGHTARG = text, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR %> (
    LEFTARG = text, RIGHTARG = _ball, FUNCTION = _contains,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _within(part _ball, whole text) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 1000 RETURN whole %> part;
COMMENT ON FUNCTION _within(_ball, text) IS
    'implementation of <% operator';
CREATE OPERATOR <% (
    LEFTARG = _ball, RIGHTARG = text, FUNCTION = _within,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <% (
    LEFTARG = text, RIGHTARG = _ball, FUNCTION = _part,
    COMMUTATOR = %>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE FUNCTION _whole(whole _ball, part text) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE COST 1000 RETURN part <% whole;
COMMENT ON FUNCTION _whole(_ball, text) IS
    'implementation of %> operator';
CREATE OPERATOR %> (
    LEFTARG = _ball, RIGHTARG = text, FUNCTION = _whole,
    COMMUTATOR = <%, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <@ (text, _ball) IS 'resemblance of document and center at least that of the ball';
COMMENT ON OPERATOR @> (_ball, text) IS 'resemblance of center and document at least that of the ball';
COMMENT ON OPERATOR %> (text, _ball) IS 'containment of the center in the document at least that of the ball';
COMMENT ON OPERATOR <% (_ball, text) IS 'containment of the center in the document at least that of the ball';
COMMENT ON OPERATOR <% (text, _ball) IS 'containment of the document in the center at least that of the ball';
COMMENT ON OPERATOR %> (_ball, text) IS 'containment of the document in the center at least that of the ball';
