COMMENT ON TYPE _minhash_ball IS
    'every signature at or above a similarity to a center: <signature,threshold>';
COMMENT ON TYPE _bit_ball IS
    'every bit string within a Hamming distance of a center: <bits,distance>';

COMMENT ON FUNCTION _minhash_ball_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(_minhash_ball) IS 'I/O';
COMMENT ON FUNCTION _minhash_ball_recv(internal) IS 'I/O';
COMMENT ON FUNCTION _send(_minhash_ball) IS 'I/O';
COMMENT ON FUNCTION _bit_ball_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(_bit_ball) IS 'I/O';
COMMENT ON FUNCTION _bit_ball_recv(internal) IS 'I/O';
COMMENT ON FUNCTION _send(_bit_ball) IS 'I/O';

COMMENT ON FUNCTION _minhash_ball(minhash_signature, double precision) IS
    'every signature at or above threshold (above 0, at most 1), for use with <@';
COMMENT ON FUNCTION _ball_at_least(minhash_signature, double precision) IS
    'planner support for minhash_sim: all at or above a similarity of any size; NULL above 1';
COMMENT ON FUNCTION _ball_within(minhash_signature, double precision) IS
    'planner support for minhash_distance: all within a distance of any size; NULL below 0';
COMMENT ON FUNCTION _bit_ball(bit, integer) IS
    'every bit string of equal length that differs in at most distance bits, for use with <@';
COMMENT ON FUNCTION _ball_within(bit, integer) IS
    'planner support for bit_hamming: all within a distance of any size; NULL below 0';
COMMENT ON FUNCTION _near_dup_sel(internal, oid, internal, integer) IS
    'planner support for <@ and @>: share of rows';
COMMENT ON FUNCTION _near_dup_sel(internal, oid, internal, smallint, internal) IS
    'planner support for <@ and @>: share of pairs';
COMMENT ON FUNCTION _within(minhash_signature, _minhash_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _contains(_minhash_ball, minhash_signature) IS
    'implementation of @> operator';
COMMENT ON FUNCTION _within(bit, _bit_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION _contains(_bit_ball, bit) IS
    'implementation of @> operator';

CREATE OPERATOR <@ (
    LEFTARG = minhash_signature, RIGHTARG = _minhash_ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR @> (
    LEFTARG = _minhash_ball, RIGHTARG = minhash_signature, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR <@ (
    LEFTARG = bit, RIGHTARG = _bit_ball, FUNCTION = _within,
    COMMUTATOR = @>, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
CREATE OPERATOR @> (
    LEFTARG = _bit_ball, RIGHTARG = bit, FUNCTION = _contains,
    COMMUTATOR = <@, RESTRICT = _near_dup_sel, JOIN = _near_dup_sel
);
COMMENT ON OPERATOR <@ (minhash_signature, _minhash_ball) IS 'is a near-duplicate of the center';
COMMENT ON OPERATOR @> (_minhash_ball, minhash_signature) IS 'has a near-duplicate of its center';
COMMENT ON OPERATOR <@ (bit, _bit_ball) IS 'is within the Hamming distance of the center';
COMMENT ON OPERATOR @> (_bit_ball, bit) IS 'has a bit string within the Hamming distance of its center';
