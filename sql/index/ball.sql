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
COMMENT ON FUNCTION bit_ball(bit, integer) IS
    'every bit string of equal length that differs in at most distance bits, for use with <@';
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
    COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel
);
CREATE OPERATOR @> (
    LEFTARG = minhash_ball, RIGHTARG = minhash_signature, FUNCTION = minhash_ball_contains,
    COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel
);
CREATE OPERATOR <@ (
    LEFTARG = bit, RIGHTARG = bit_ball, FUNCTION = bit_in_ball,
    COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel
);
CREATE OPERATOR @> (
    LEFTARG = bit_ball, RIGHTARG = bit, FUNCTION = bit_ball_contains,
    COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel
);
COMMENT ON OPERATOR <@ (minhash_signature, minhash_ball) IS 'is a near-duplicate of the center';
COMMENT ON OPERATOR @> (minhash_ball, minhash_signature) IS 'has a near-duplicate of its center';
COMMENT ON OPERATOR <@ (bit, bit_ball) IS 'is within the Hamming distance of the center';
COMMENT ON OPERATOR @> (bit_ball, bit) IS 'has a bit string within the Hamming distance of its center';
