-- Equality classes for the columns in front of the one that is compared. Hash functions are those of
-- hash indexes; money and date are hashed as the integers that they are stored as, bit strings by their
-- bytes.
CREATE OPERATOR FAMILY integer_ops USING neardup;
COMMENT ON OPERATOR FAMILY integer_ops USING neardup IS
    'equality of integers';
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2 USING neardup FAMILY integer_ops AS
    OPERATOR 4 =, FUNCTION 3 hashint2extended(int2, int8);
COMMENT ON OPERATOR CLASS int2_ops USING neardup IS
    'scope column: equality of int2';
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4 USING neardup FAMILY integer_ops AS
    OPERATOR 4 =, FUNCTION 3 hashint4extended(int4, int8);
COMMENT ON OPERATOR CLASS int4_ops USING neardup IS
    'scope column: equality of int4';
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8 USING neardup FAMILY integer_ops AS
    OPERATOR 4 =, FUNCTION 3 hashint8extended(int8, int8);
COMMENT ON OPERATOR CLASS int8_ops USING neardup IS
    'scope column: equality of int8';
ALTER OPERATOR FAMILY integer_ops USING neardup ADD
    OPERATOR 4 = (int2, int4),
    OPERATOR 4 = (int2, int8),
    OPERATOR 4 = (int4, int2),
    OPERATOR 4 = (int4, int8),
    OPERATOR 4 = (int8, int2),
    OPERATOR 4 = (int8, int4);
CREATE OPERATOR FAMILY float_ops USING neardup;
COMMENT ON OPERATOR FAMILY float_ops USING neardup IS
    'equality of floating-point numbers';
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4 USING neardup FAMILY float_ops AS
    OPERATOR 4 =, FUNCTION 3 hashfloat4extended(float4, int8);
COMMENT ON OPERATOR CLASS float4_ops USING neardup IS
    'scope column: equality of float4';
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8 USING neardup FAMILY float_ops AS
    OPERATOR 4 =, FUNCTION 3 hashfloat8extended(float8, int8);
COMMENT ON OPERATOR CLASS float8_ops USING neardup IS
    'scope column: equality of float8';
ALTER OPERATOR FAMILY float_ops USING neardup ADD
    OPERATOR 4 = (float4, float8),
    OPERATOR 4 = (float8, float4);
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hash_numeric_extended(numeric, int8);
COMMENT ON OPERATOR CLASS numeric_ops USING neardup IS
    'scope column: equality of numeric';
COMMENT ON OPERATOR FAMILY numeric_ops USING neardup IS
    'equality of numeric';
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING neardup AS
    OPERATOR 4 =, FUNCTION 3 timestamp_hash_extended(timestamp, int8);
COMMENT ON OPERATOR CLASS timestamp_ops USING neardup IS
    'scope column: equality of timestamp';
COMMENT ON OPERATOR FAMILY timestamp_ops USING neardup IS
    'equality of timestamp';
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING neardup AS
    OPERATOR 4 =, FUNCTION 3 timestamp_hash_extended(timestamp, int8);
COMMENT ON OPERATOR CLASS timestamptz_ops USING neardup IS
    'scope column: equality of timestamptz';
COMMENT ON OPERATOR FAMILY timestamptz_ops USING neardup IS
    'equality of timestamptz';
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING neardup AS
    OPERATOR 4 =, FUNCTION 3 time_hash_extended(time, int8);
COMMENT ON OPERATOR CLASS time_ops USING neardup IS
    'scope column: equality of time';
COMMENT ON OPERATOR FAMILY time_ops USING neardup IS
    'equality of time';
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING neardup AS
    OPERATOR 4 =, FUNCTION 3 timetz_hash_extended(timetz, int8);
COMMENT ON OPERATOR CLASS timetz_ops USING neardup IS
    'scope column: equality of timetz';
COMMENT ON OPERATOR FAMILY timetz_ops USING neardup IS
    'equality of timetz';
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashint4extended(int4, int8);
COMMENT ON OPERATOR CLASS date_ops USING neardup IS
    'scope column: equality of date';
COMMENT ON OPERATOR FAMILY date_ops USING neardup IS
    'equality of date';
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING neardup AS
    OPERATOR 4 =, FUNCTION 3 interval_hash_extended(interval, int8);
COMMENT ON OPERATOR CLASS interval_ops USING neardup IS
    'scope column: equality of interval';
COMMENT ON OPERATOR FAMILY interval_ops USING neardup IS
    'equality of interval';
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashoidextended(oid, int8);
COMMENT ON OPERATOR CLASS oid_ops USING neardup IS
    'scope column: equality of oid';
COMMENT ON OPERATOR FAMILY oid_ops USING neardup IS
    'equality of oid';
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashint8extended(int8, int8);
COMMENT ON OPERATOR CLASS money_ops USING neardup IS
    'scope column: equality of money';
COMMENT ON OPERATOR FAMILY money_ops USING neardup IS
    'equality of money';
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashcharextended("char", int8);
COMMENT ON OPERATOR CLASS char_ops USING neardup IS
    'scope column: equality of "char"';
COMMENT ON OPERATOR FAMILY char_ops USING neardup IS
    'equality of "char"';
CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashbpcharextended(bpchar, int8);
COMMENT ON OPERATOR CLASS bpchar_ops USING neardup IS
    'scope column: equality of bpchar';
COMMENT ON OPERATOR FAMILY bpchar_ops USING neardup IS
    'equality of bpchar';
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashtextextended(text, int8);
COMMENT ON OPERATOR CLASS text_ops USING neardup IS
    'scope column: equality of text';
COMMENT ON OPERATOR FAMILY text_ops USING neardup IS
    'equality of text';
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashvarlenaextended(internal, int8);
COMMENT ON OPERATOR CLASS bytea_ops USING neardup IS
    'scope column: equality of bytea';
COMMENT ON OPERATOR FAMILY bytea_ops USING neardup IS
    'equality of bytea';
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashmacaddrextended(macaddr, int8);
COMMENT ON OPERATOR CLASS macaddr_ops USING neardup IS
    'scope column: equality of macaddr';
COMMENT ON OPERATOR FAMILY macaddr_ops USING neardup IS
    'equality of macaddr';
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashmacaddr8extended(macaddr8, int8);
COMMENT ON OPERATOR CLASS macaddr8_ops USING neardup IS
    'scope column: equality of macaddr8';
COMMENT ON OPERATOR FAMILY macaddr8_ops USING neardup IS
    'equality of macaddr8';
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashinetextended(inet, int8);
COMMENT ON OPERATOR CLASS inet_ops USING neardup IS
    'scope column: equality of inet';
COMMENT ON OPERATOR FAMILY inet_ops USING neardup IS
    'equality of inet';
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING neardup AS
    OPERATOR 4 =, FUNCTION 3 uuid_hash_extended(uuid, int8);
COMMENT ON OPERATOR CLASS uuid_ops USING neardup IS
    'scope column: equality of uuid';
COMMENT ON OPERATOR FAMILY uuid_ops USING neardup IS
    'equality of uuid';
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashcharextended("char", int8);
COMMENT ON OPERATOR CLASS bool_ops USING neardup IS
    'scope column: equality of bool';
COMMENT ON OPERATOR FAMILY bool_ops USING neardup IS
    'equality of bool';
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashenumextended(anyenum, int8);
COMMENT ON OPERATOR CLASS enum_ops USING neardup IS
    'scope column: equality of enums';
COMMENT ON OPERATOR FAMILY enum_ops USING neardup IS
    'equality of enums';
CREATE OPERATOR CLASS bit_ops FOR TYPE bit USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashvarlenaextended(internal, int8);
COMMENT ON OPERATOR CLASS bit_ops USING neardup IS
    'scope column: equality of bit';
COMMENT ON OPERATOR FAMILY bit_ops USING neardup IS
    'equality of bit';
CREATE OPERATOR CLASS varbit_ops FOR TYPE varbit USING neardup AS
    OPERATOR 4 =, FUNCTION 3 hashvarlenaextended(internal, int8);
COMMENT ON OPERATOR CLASS varbit_ops USING neardup IS
    'scope column: equality of varbit';
COMMENT ON OPERATOR FAMILY varbit_ops USING neardup IS
    'equality of varbit';
