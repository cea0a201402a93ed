-- The shell types, which input and output functions name before the types exist.
CREATE TYPE minhash_signature;
CREATE TYPE _minhash_ball;
CREATE TYPE _bit_ball;
CREATE TYPE _set_share;
CREATE TYPE near_dup_key;
