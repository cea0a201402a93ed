-- One class for the columns before the one that is compared, whatever their type. Values are hashed as
-- in hash indexes; values of types not listed here by their bytes.
CREATE OPERATOR CLASS scope_ops DEFAULT FOR TYPE anyelement USING neardup AS
    OPERATOR 4 = (int2, int2),
    OPERATOR 4 = (int4, int4),
    OPERATOR 4 = (int8, int8),
    OPERATOR 4 = (float4, float4),
    OPERATOR 4 = (float8, float8),
    OPERATOR 4 = (numeric, numeric),
    OPERATOR 4 = (timestamp, timestamp),
    OPERATOR 4 = (timestamptz, timestamptz),
    OPERATOR 4 = (time, time),
    OPERATOR 4 = (timetz, timetz),
    OPERATOR 4 = (date, date),
    OPERATOR 4 = (interval, interval),
    OPERATOR 4 = (oid, oid),
    OPERATOR 4 = (money, money),
    OPERATOR 4 = ("char", "char"),
    OPERATOR 4 = (bpchar, bpchar),
    OPERATOR 4 = (text, text),
    OPERATOR 4 = (bytea, bytea),
    OPERATOR 4 = (macaddr, macaddr),
    OPERATOR 4 = (macaddr8, macaddr8),
    OPERATOR 4 = (inet, inet),
    OPERATOR 4 = (uuid, uuid),
    OPERATOR 4 = (bool, bool),
    OPERATOR 4 = (anyenum, anyenum),
    OPERATOR 4 = (bit, bit),
    OPERATOR 4 = (varbit, varbit),
    OPERATOR 4 = (int2, int4),
    OPERATOR 4 = (int2, int8),
    OPERATOR 4 = (int4, int2),
    OPERATOR 4 = (int4, int8),
    OPERATOR 4 = (int8, int2),
    OPERATOR 4 = (int8, int4),
    OPERATOR 4 = (float4, float8),
    OPERATOR 4 = (float8, float4),
    FUNCTION 3 (money, money) hashint8extended(int8, int8),
    FUNCTION 3 (bit, bit) hashvarlenaextended(internal, int8),
    FUNCTION 3 (varbit, varbit) hashvarlenaextended(internal, int8);
COMMENT ON OPERATOR CLASS scope_ops USING neardup IS
    'scope column: equality of scalars';
COMMENT ON OPERATOR FAMILY scope_ops USING neardup IS
    'equality of scalars';
