CREATE FUNCTION near_dup_trackers(
    OUT relation regclass, OUT clusters regclass, OUT column_name text,
    OUT threshold double precision, OUT keep text, OUT scope text[], OUT key text, OUT condition text,
    OUT exceptions regclass, OUT k integer, OUT unit text, OUT fold text, OUT behind bigint,
    OUT refreshed_at timestamptz, OUT seconds double precision, OUT changed bigint,
    OUT problem text) RETURNS SETOF record
STABLE PARALLEL UNSAFE COST 10000 ROWS 10 LANGUAGE c
AS 'MODULE_PATHNAME', 'near_dup_trackers_wrapper';
COMMENT ON FUNCTION near_dup_trackers() IS
    'result of the view near_dup_tracked';
CREATE VIEW near_dup_tracked AS SELECT * FROM near_dup_trackers();
GRANT SELECT ON near_dup_tracked TO PUBLIC;
COMMENT ON VIEW near_dup_tracked IS
    'kept clusters of the tables that the role may read: the number of noted changes that are waiting (behind; NULL if not every change was noted, so that the next refresh recomputes everything), the time, duration and rows of the last refresh, and what is wrong with an altered table of the tracker (problem)';
