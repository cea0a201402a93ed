-- The shell types, to which input and output functions refer before the types exist.
CREATE TYPE minhash_signature;
CREATE TYPE _ball;
CREATE TYPE near_dup_key;
