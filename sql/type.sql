-- The shell type, which the input and output functions name before the type exists.
CREATE TYPE minhash_signature;
