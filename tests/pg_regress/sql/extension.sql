-- The extension is installed and its library loads.
SELECT extname, extrelocatable FROM pg_extension WHERE extname = 'pg_neardup';
LOAD 'pg_neardup';
