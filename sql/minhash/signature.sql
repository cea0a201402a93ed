COMMENT ON TYPE minhash_signature IS
    'MinHash signature of a document or a set, with the parameters it was made with; default 128 slots, 528 bytes';

COMMENT ON FUNCTION minhash_signature_in(cstring) IS 'I/O';
COMMENT ON FUNCTION minhash_signature_out(minhash_signature) IS 'I/O';
COMMENT ON FUNCTION minhash_signature_recv(internal) IS 'I/O';
COMMENT ON FUNCTION minhash_signature_send(minhash_signature) IS 'I/O';

CREATE CAST (bytea AS minhash_signature) WITH FUNCTION minhash_signature_from_bytea(bytea);
CREATE CAST (minhash_signature AS bytea) WITH FUNCTION minhash_signature_to_bytea(minhash_signature);
COMMENT ON CAST (bytea AS minhash_signature) IS 'signature from its binary form; every byte is checked';
COMMENT ON CAST (minhash_signature AS bytea) IS 'binary form of a signature';
COMMENT ON FUNCTION minhash_signature_from_bytea(bytea) IS 'implementation of the cast from bytea';
COMMENT ON FUNCTION minhash_signature_to_bytea(minhash_signature) IS 'implementation of the cast to bytea';

CREATE OPERATOR = (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = minhash_signature_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);

CREATE OPERATOR CLASS minhash_signature_btree_ops DEFAULT FOR TYPE minhash_signature USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 minhash_signature_cmp(minhash_signature, minhash_signature);

CREATE OPERATOR CLASS minhash_signature_hash_ops DEFAULT FOR TYPE minhash_signature USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 minhash_signature_hash(minhash_signature),
    FUNCTION 2 minhash_signature_hash_extended(minhash_signature, bigint);

COMMENT ON OPERATOR = (minhash_signature, minhash_signature) IS 'equal bytes: same parameters, same slots';
COMMENT ON OPERATOR <> (minhash_signature, minhash_signature) IS 'not the same bytes';
COMMENT ON OPERATOR < (minhash_signature, minhash_signature) IS 'before in bytewise order';
COMMENT ON OPERATOR <= (minhash_signature, minhash_signature) IS 'before in bytewise order, or equal';
COMMENT ON OPERATOR > (minhash_signature, minhash_signature) IS 'after in bytewise order';
COMMENT ON OPERATOR >= (minhash_signature, minhash_signature) IS 'after in bytewise order, or equal';
COMMENT ON OPERATOR CLASS minhash_signature_btree_ops USING btree IS 'bytewise order, for DISTINCT, ORDER BY and merge joins';
COMMENT ON OPERATOR FAMILY minhash_signature_btree_ops USING btree IS 'bytewise order, for DISTINCT, ORDER BY and merge joins';
COMMENT ON OPERATOR CLASS minhash_signature_hash_ops USING hash IS 'bytewise equality, for GROUP BY and hash joins';
COMMENT ON OPERATOR FAMILY minhash_signature_hash_ops USING hash IS 'bytewise equality, for GROUP BY and hash joins';
COMMENT ON FUNCTION minhash_signature_cmp(minhash_signature, minhash_signature) IS 'bytewise order: -1, 0 or 1';
COMMENT ON FUNCTION minhash_signature_eq(minhash_signature, minhash_signature) IS 'implementation of = operator';
COMMENT ON FUNCTION minhash_signature_ne(minhash_signature, minhash_signature) IS 'implementation of <> operator';
COMMENT ON FUNCTION minhash_signature_lt(minhash_signature, minhash_signature) IS 'implementation of < operator';
COMMENT ON FUNCTION minhash_signature_le(minhash_signature, minhash_signature) IS 'implementation of <= operator';
COMMENT ON FUNCTION minhash_signature_gt(minhash_signature, minhash_signature) IS 'implementation of > operator';
COMMENT ON FUNCTION minhash_signature_ge(minhash_signature, minhash_signature) IS 'implementation of >= operator';
COMMENT ON FUNCTION minhash_signature_hash(minhash_signature) IS 'hash for hash joins and hash indexes';
COMMENT ON FUNCTION minhash_signature_hash_extended(minhash_signature, bigint) IS 'salted hash for hash partitioning';
