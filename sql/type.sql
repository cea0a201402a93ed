-- The shell types, which input and output functions name before the types exist.
CREATE TYPE minhash_signature;
CREATE TYPE minhash_ball;
CREATE TYPE bit_ball;
CREATE TYPE set_share;
