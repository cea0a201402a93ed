SET LOCAL max_parallel_workers_per_gather = 1;
CREATE TABLE shingles AS
    SELECT DISTINCT id, hashtext(w[i] || ' ' || w[i + 1] || ' ' || w[i + 2]) AS shingle
    FROM (SELECT id, regexp_split_to_array(lower(body), '\W+') AS w FROM docs OFFSET 0) d, generate_series(1, cardinality(w) - 2) i;
CREATE TABLE bands AS
    SELECT id, slot / 8 AS band, hashtextextended(string_agg(least::text, ' ' ORDER BY slot), slot / 8) AS key
    FROM (SELECT id, slot, min(hashint4extended(shingle, slot)) AS least
          FROM shingles, generate_series(0, 111) slot GROUP BY id, slot) slots
    GROUP BY id, slot / 8;
CREATE INDEX ON bands (band, key);
CREATE TABLE edges AS
    SELECT DISTINCT a.id AS a, b.id AS b FROM bands a JOIN bands b USING (band, key) WHERE a.id <> b.id;
CREATE TABLE clusters AS SELECT id AS key, id AS cluster FROM docs;
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
