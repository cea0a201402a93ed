-- The shell types, which input and output functions name before the types exist.
CREATE TYPE minhash_signature;
CREATE TYPE _ball;
CREATE TYPE near_dup_key;
