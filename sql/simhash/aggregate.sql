-- SSPACE: 64 sums of 8 bytes.
CREATE FUNCTION _agg_add(state internal, term text, weight float8) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'simhash_agg_add_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text, float8) IS
    'transition of simhash_agg';
CREATE AGGREGATE simhash_agg(text, float8) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 640,
    COMBINEFUNC = simhash_agg_combine, SERIALFUNC = simhash_agg_serialize,
    DESERIALFUNC = simhash_agg_deserialize, FINALFUNC = simhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE simhash_agg(text, float8) IS
    'SimHash of weighted terms, as simhash of their arrays';

CREATE FUNCTION _agg_add(state internal, term text, weight float8, bits integer) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'simhash_agg_add_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text, float8, integer) IS
    'transition of simhash_agg';
CREATE AGGREGATE simhash_agg(text, float8, integer) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 640,
    COMBINEFUNC = simhash_agg_combine, SERIALFUNC = simhash_agg_serialize,
    DESERIALFUNC = simhash_agg_deserialize, FINALFUNC = simhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE simhash_agg(text, float8, integer) IS
    'SimHash of weighted terms, as simhash of their arrays, bits 64-4096 in steps of 64';

CREATE FUNCTION _agg_add(state internal, term text, weight float8, bits integer, seed bigint) RETURNS internal
IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'simhash_agg_add_wrapper';
COMMENT ON FUNCTION _agg_add(internal, text, float8, integer, bigint) IS
    'transition of simhash_agg';
CREATE AGGREGATE simhash_agg(text, float8, integer, bigint) (
    SFUNC = _agg_add, STYPE = internal, SSPACE = 640,
    COMBINEFUNC = simhash_agg_combine, SERIALFUNC = simhash_agg_serialize,
    DESERIALFUNC = simhash_agg_deserialize, FINALFUNC = simhash_agg_result,
    FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE simhash_agg(text, float8, integer, bigint) IS
    'SimHash of weighted terms, as simhash of their arrays, bits 64-4096 in steps of 64, seed';

COMMENT ON FUNCTION simhash_agg_combine(internal, internal) IS
    'combination of partial states of simhash_agg';
COMMENT ON FUNCTION simhash_agg_serialize(internal) IS
    'serialization of states of simhash_agg';
COMMENT ON FUNCTION simhash_agg_deserialize(bytea, internal) IS
    'deserialization of states of simhash_agg';
COMMENT ON FUNCTION simhash_agg_result(internal) IS
    'result of simhash_agg';
