COMMENT ON TYPE minhash_ball IS
    'every signature at or above a similarity to a center: <signature,threshold>';
COMMENT ON TYPE bit_ball IS
    'every bit string within a Hamming distance of a center: <bits,distance>';

COMMENT ON FUNCTION minhash_ball_in(cstring) IS 'I/O';
COMMENT ON FUNCTION minhash_ball_out(minhash_ball) IS 'I/O';
COMMENT ON FUNCTION minhash_ball_recv(internal) IS 'I/O';
COMMENT ON FUNCTION minhash_ball_send(minhash_ball) IS 'I/O';
COMMENT ON FUNCTION bit_ball_in(cstring) IS 'I/O';
COMMENT ON FUNCTION bit_ball_out(bit_ball) IS 'I/O';
COMMENT ON FUNCTION bit_ball_recv(internal) IS 'I/O';
COMMENT ON FUNCTION bit_ball_send(bit_ball) IS 'I/O';

COMMENT ON FUNCTION minhash_ball(minhash_signature, double precision) IS
    'every signature at or above threshold (above 0, at most 1), for use with <@';
COMMENT ON FUNCTION minhash_ball_at_least(minhash_signature, double precision) IS
    'planner support for minhash_sim: all at or above a similarity of any size; NULL above 1';
COMMENT ON FUNCTION minhash_ball_within(minhash_signature, double precision) IS
    'planner support for minhash_distance: all within a distance of any size; NULL below 0';
COMMENT ON FUNCTION bit_ball(bit, integer) IS
    'every bit string of equal length that differs in at most distance bits, for use with <@';
COMMENT ON FUNCTION bit_ball_within(bit, integer) IS
    'planner support for bit_hamming: all within a distance of any size; NULL below 0';
COMMENT ON FUNCTION near_dup_ballsel(internal, oid, internal, integer) IS
    'planner support for <@ and @>: share of rows';
COMMENT ON FUNCTION near_dup_balljoinsel(internal, oid, internal, smallint, internal) IS
    'planner support for <@ and @>: share of pairs';
COMMENT ON FUNCTION minhash_in_ball(minhash_signature, minhash_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION minhash_ball_contains(minhash_ball, minhash_signature) IS
    'implementation of @> operator';
COMMENT ON FUNCTION bit_in_ball(bit, bit_ball) IS
    'implementation of <@ operator';
COMMENT ON FUNCTION bit_ball_contains(bit_ball, bit) IS
    'implementation of @> operator';

CREATE OPERATOR <@ (
    LEFTARG = minhash_signature, RIGHTARG = minhash_ball, FUNCTION = minhash_in_ball,
    COMMUTATOR = @>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR @> (
    LEFTARG = minhash_ball, RIGHTARG = minhash_signature, FUNCTION = minhash_ball_contains,
    COMMUTATOR = <@, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR <@ (
    LEFTARG = bit, RIGHTARG = bit_ball, FUNCTION = bit_in_ball,
    COMMUTATOR = @>, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
CREATE OPERATOR @> (
    LEFTARG = bit_ball, RIGHTARG = bit, FUNCTION = bit_ball_contains,
    COMMUTATOR = <@, RESTRICT = near_dup_ballsel, JOIN = near_dup_balljoinsel
);
COMMENT ON OPERATOR <@ (minhash_signature, minhash_ball) IS 'is a near-duplicate of the center';
COMMENT ON OPERATOR @> (minhash_ball, minhash_signature) IS 'has a near-duplicate of its center';
COMMENT ON OPERATOR <@ (bit, bit_ball) IS 'is within the Hamming distance of the center';
COMMENT ON OPERATOR @> (bit_ball, bit) IS 'has a bit string within the Hamming distance of its center';
