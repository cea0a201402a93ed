SET LOCAL max_parallel_workers_per_gather = 1;
DO $$
BEGIN
    EXECUTE (SELECT format($slots$
        CREATE TABLE slots AS
        SELECT id, (SELECT ARRAY[%s] FROM (
                SELECT hashtextextended(w[i] || ' ' || w[i + 1] || ' ' || w[i + 2], 0) AS shingle
                FROM generate_series(1, cardinality(w) - 2) i OFFSET 0) shingles) AS slots
        FROM (SELECT id, regexp_split_to_array(lower(body), '\W+') AS w FROM docs OFFSET 0) d
        $slots$, string_agg(format('min(hashint8extended(shingle, %s))', slot), ', ')) FROM generate_series(1, 112) slot);
END $$;
CREATE TABLE bands AS
    SELECT id, band, hash_array_extended(slots[8 * band + 1:8 * band + 8], 0) AS key
    FROM slots, generate_series(0, 13) band WHERE slots[1] IS NOT NULL;
CREATE INDEX ON bands (band, key);
ANALYZE bands;
CREATE TABLE edges AS
    SELECT DISTINCT a.id AS a, b.id AS b FROM bands a JOIN bands b USING (band, key) WHERE a.id <> b.id;
CREATE TABLE clusters AS SELECT id AS key, id AS cluster FROM docs;
ANALYZE edges, clusters;
DO $$
BEGIN
    LOOP
        UPDATE clusters c SET cluster = near.least
        FROM (SELECT e.b, min(a.cluster) AS least FROM edges e JOIN clusters a ON a.key = e.a GROUP BY e.b) near
        WHERE near.b = c.key AND near.least < c.cluster;
        EXIT WHEN NOT FOUND;
    END LOOP;
END $$;
CREATE TABLE kept AS
    SELECT docs.* FROM docs JOIN clusters c ON c.key = docs.id WHERE c.key = c.cluster;
