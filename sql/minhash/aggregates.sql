-- SSPACE: 128 slots of 4 bytes, and some waiting elements.
CREATE FUNCTION _agg_add(state internal, element text) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_text_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(text) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(text) IS
    'signature of a set of texts, as minhash of their array';

CREATE FUNCTION _agg_add(state internal, element text, slots integer) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_text_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text, integer) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(text, integer) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(text, integer) IS
    'signature of a set of texts, as minhash of their array, with the given slots';

CREATE FUNCTION _agg_add(state internal, element text, slots integer, seed bigint) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_text_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text, integer, bigint) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(text, integer, bigint) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(text, integer, bigint) IS
    'signature of a set of texts, as minhash of their array, with the given slots and seed';

CREATE FUNCTION _agg_add(state internal, element bigint) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_bigint_wrapper';
COMMENT ON FUNCTION _agg_add(internal, bigint) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(bigint) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(bigint) IS
    'signature of a set of numbers, as minhash of their array';

CREATE FUNCTION _agg_add(state internal, element bigint, slots integer) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_bigint_wrapper';
COMMENT ON FUNCTION _agg_add(internal, bigint, integer) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(bigint, integer) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(bigint, integer) IS
    'signature of a set of numbers, as minhash of their array, with the given slots';

CREATE FUNCTION _agg_add(state internal, element bigint, slots integer, seed bigint) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'minhash_agg_add_bigint_wrapper';
COMMENT ON FUNCTION _agg_add(internal, bigint, integer, bigint) IS
    'transition of minhash_agg';
CREATE AGGREGATE minhash_agg(bigint, integer, bigint) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 2048,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_agg(bigint, integer, bigint) IS
    'signature of a set of numbers, as minhash of their array, with the given slots and seed';

CREATE AGGREGATE minhash_union(minhash_signature) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 1024,
    COMBINEFUNC = minhash_agg_combine, SERIALFUNC = minhash_agg_serialize,
    DESERIALFUNC = minhash_agg_deserialize, FINALFUNC = minhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE minhash_union(minhash_signature) IS
    'signature of the union of the sets; error if the parameters differ';
COMMENT ON FUNCTION _agg_add(internal, minhash_signature) IS
    'transition of minhash_union';
COMMENT ON FUNCTION minhash_agg_combine(internal, internal) IS
    'combination of partial states of minhash_agg and minhash_union';
COMMENT ON FUNCTION minhash_agg_serialize(internal) IS
    'serialization of states of minhash_agg and minhash_union';
COMMENT ON FUNCTION minhash_agg_deserialize(bytea, internal) IS
    'deserialization of states of minhash_agg and minhash_union';
COMMENT ON FUNCTION minhash_agg_result(internal) IS
    'result of minhash_agg and minhash_union';
