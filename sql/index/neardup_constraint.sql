CREATE OPERATOR CLASS near_dup_key_ops DEFAULT FOR TYPE near_dup_key USING neardup AS
    OPERATOR 3 % (near_dup_key, near_dup_key),
    FUNCTION 1 (near_dup_key, near_dup_key) _near(near_dup_key, near_dup_key);

COMMENT ON OPERATOR CLASS near_dup_key_ops USING neardup IS
    'constraint keys: EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %)';
COMMENT ON OPERATOR FAMILY near_dup_key_ops USING neardup IS
    'constraint keys';
