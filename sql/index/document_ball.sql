COMMENT ON FUNCTION _within(text, _ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _contains(_ball, text) IS
    'implementation of @> operator';

CREATE OPERATOR <@ (
    LEFTARG = text, RIGHTARG = _ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR @> (
    LEFTARG = _ball, RIGHTARG = text, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <@ (text, _ball) IS 'resembles the center';
COMMENT ON OPERATOR @> (_ball, text) IS 'has a center that the document resembles';
