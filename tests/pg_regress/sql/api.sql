-- The stable interface: every object of the extension, each with a comment. PostgreSQL 17 counts the
-- array types, which belong to the types, as objects of the extension, too.
CREATE TEMP VIEW objects AS
SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, d.objsubid) AS object
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_neardup' AND d.deptype = 'e'
  -- Arrays, and, since PostgreSQL 17, row types of views.
  AND NOT EXISTS (SELECT FROM pg_type WHERE classid = 'pg_type'::regclass AND oid = objid AND (typcategory = 'A' OR typrelid > 0));

SELECT object AS uncommented FROM objects
WHERE obj_description(objid, classid::regclass::text::name) IS NULL
ORDER BY object COLLATE "C";

SELECT object FROM objects WHERE classid <> 'pg_proc'::regclass ORDER BY object COLLATE "C";

-- Arguments with their names and defaults, result, volatility (i, s, v), parallel safety (s, r, u).
\pset format unaligned
SELECT * FROM (
    SELECT format('%s(%s) -> %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)) AS function,
           p.provolatile, p.proparallel, p.procost
    FROM objects o JOIN pg_proc p ON p.oid = o.objid AND o.classid = 'pg_proc'::regclass) functions
ORDER BY function COLLATE "C";
