COMMENT ON TYPE minhash_signature IS
    'MinHash signature of a document or a set, with the parameters it was made with; default 128 slots, 528 bytes';

COMMENT ON FUNCTION minhash_signature_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _out(minhash_signature) IS 'I/O';
COMMENT ON FUNCTION minhash_signature_recv(internal) IS 'I/O';
COMMENT ON FUNCTION minhash_signature_send(minhash_signature) IS 'I/O';

CREATE CAST (bytea AS minhash_signature) WITH FUNCTION _minhash_from_bytea(bytea);
CREATE CAST (minhash_signature AS bytea) WITHOUT FUNCTION;
COMMENT ON CAST (bytea AS minhash_signature) IS 'signature from its binary form; every byte is checked';
COMMENT ON CAST (minhash_signature AS bytea) IS 'binary form of a signature';
COMMENT ON FUNCTION _minhash_from_bytea(bytea) IS 'implementation of the cast from bytea';

-- Ordered and compared as bytea, by the stored bytes.
CREATE FUNCTION _minhash_eq(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteaeq';
CREATE FUNCTION _minhash_ne(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteane';
CREATE FUNCTION _minhash_lt(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'bytealt';
CREATE FUNCTION _minhash_le(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteale';
CREATE FUNCTION _minhash_gt(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteagt';
CREATE FUNCTION _minhash_ge(minhash_signature, minhash_signature) RETURNS boolean
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteage';
CREATE FUNCTION _minhash_cmp(minhash_signature, minhash_signature) RETURNS integer
IMMUTABLE STRICT PARALLEL SAFE COST 5 LANGUAGE internal AS 'byteacmp';
CREATE FUNCTION _minhash_hash(minhash_signature) RETURNS integer
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashvarlena';
CREATE FUNCTION _minhash_hash(minhash_signature, bigint) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashvarlenaextended';

CREATE OPERATOR = (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_eq,
    COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_ne,
    COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_lt,
    COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_le,
    COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_gt,
    COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = minhash_signature, RIGHTARG = minhash_signature, FUNCTION = _minhash_ge,
    COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel
);

CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 _minhash_cmp(minhash_signature, minhash_signature);

CREATE OPERATOR CLASS minhash_ops DEFAULT FOR TYPE minhash_signature USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 _minhash_hash(minhash_signature),
    FUNCTION 2 _minhash_hash(minhash_signature, bigint);

COMMENT ON OPERATOR = (minhash_signature, minhash_signature) IS 'equal bytes: same parameters, same slots';
COMMENT ON OPERATOR <> (minhash_signature, minhash_signature) IS 'not the same bytes';
COMMENT ON OPERATOR < (minhash_signature, minhash_signature) IS 'before in bytewise order';
COMMENT ON OPERATOR <= (minhash_signature, minhash_signature) IS 'before in bytewise order, or equal';
COMMENT ON OPERATOR > (minhash_signature, minhash_signature) IS 'after in bytewise order';
COMMENT ON OPERATOR >= (minhash_signature, minhash_signature) IS 'after in bytewise order, or equal';
COMMENT ON OPERATOR CLASS minhash_ops USING btree IS 'bytewise order, for DISTINCT, ORDER BY and merge joins';
COMMENT ON OPERATOR FAMILY minhash_ops USING btree IS 'bytewise order, for DISTINCT, ORDER BY and merge joins';
COMMENT ON OPERATOR CLASS minhash_ops USING hash IS 'bytewise equality, for GROUP BY and hash joins';
COMMENT ON OPERATOR FAMILY minhash_ops USING hash IS 'bytewise equality, for GROUP BY and hash joins';
COMMENT ON FUNCTION _minhash_cmp(minhash_signature, minhash_signature) IS 'bytewise order: -1, 0 or 1';
COMMENT ON FUNCTION _minhash_eq(minhash_signature, minhash_signature) IS 'implementation of = operator';
COMMENT ON FUNCTION _minhash_ne(minhash_signature, minhash_signature) IS 'implementation of <> operator';
COMMENT ON FUNCTION _minhash_lt(minhash_signature, minhash_signature) IS 'implementation of < operator';
COMMENT ON FUNCTION _minhash_le(minhash_signature, minhash_signature) IS 'implementation of <= operator';
COMMENT ON FUNCTION _minhash_gt(minhash_signature, minhash_signature) IS 'implementation of > operator';
COMMENT ON FUNCTION _minhash_ge(minhash_signature, minhash_signature) IS 'implementation of >= operator';
COMMENT ON FUNCTION _minhash_hash(minhash_signature) IS 'hash for hash joins and hash indexes';
COMMENT ON FUNCTION _minhash_hash(minhash_signature, bigint) IS 'salted hash for hash partitioning';
