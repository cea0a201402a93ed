-- The loaded library has the version that is installed.
SELECT extversion = pg_neardup_version() AS same FROM pg_extension WHERE extname = 'pg_neardup';
