//! Containment of sets: the same results as counting the elements in SQL, with an index and without, in both
//! directions, and for all pairs; resemblance of sets; and containment of documents.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use super::neardup::work;
use crate::harness::{Outcome, ensure_same_rows};
use crate::known::{Collection, Generated};

/// Sets with the numbers of shared elements, counted by SQL. Every tenth is a part of the previous one; some have more
/// elements than fit on a page of the index.
const SETS: &str = "
    CREATE FUNCTION share(part bigint[], whole bigint[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
        SELECT count(*) / nullif((SELECT count(DISTINCT x) FROM unnest(part) x), 0)::float8
        FROM (SELECT unnest(part) INTERSECT SELECT unnest(whole)) s (x) WHERE x IS NOT NULL $$;
    CREATE FUNCTION elements(id bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
        SELECT array_agg(hashint8extended(i, CASE WHEN id % 10 = 0 THEN id - 1 ELSE id END) % 150)
        FROM generate_series(1, 1 + id * id % CASE WHEN id % 10 = 0 THEN 7 ELSE 60 END) i $$;
    CREATE TABLE sets (id bigserial PRIMARY KEY, prints bigint[]);
    CREATE INDEX sets_prints ON sets USING neardup (prints);
    INSERT INTO sets (prints) SELECT elements(i) FROM generate_series(1, 300) i;
    INSERT INTO sets (prints) VALUES (NULL), ('{}'), ('{NULL}'), ('{7,NULL,7,8}'), ('{{1,2},{3,4}}');
    INSERT INTO sets (prints)
    SELECT array_agg(j * i) FROM (VALUES (1), (2), (3)) i (i), generate_series(1, 5000) j GROUP BY i";

/// The conditions between a query q and a row d, and the corresponding results counted by SQL.
const CONDITIONS: [[&str; 2]; 3] = [
    ["near_contained(q.prints, d.prints, {})", "containing"],
    ["near_contained(d.prints, q.prints, {})", "contained"],
    ["near_dup(d.prints, q.prints, {})", "similarity"],
];

/// The sets that are looked up.
const QUERIES: &str = "
    DROP TABLE IF EXISTS queries;
    CREATE TEMP TABLE queries AS SELECT * FROM sets WHERE id % 37 = 0 OR id BETWEEN 295 AND 310";

/// Counts the elements that queries and rows share, once for all thresholds.
const COUNT: &str = "
    DROP TABLE IF EXISTS asked, held, counted;
    CREATE TEMP TABLE asked AS
    SELECT id, e, count(*) OVER (PARTITION BY id)::float8 AS size
    FROM (SELECT DISTINCT id, e FROM queries, unnest(prints) e WHERE e IS NOT NULL) elements;
    CREATE TEMP TABLE held AS
    SELECT id, e, count(*) OVER (PARTITION BY id)::float8 AS size
    FROM (SELECT DISTINCT id, e FROM sets, unnest(prints) e WHERE e IS NOT NULL) elements;
    ANALYZE asked, held;
    CREATE TEMP TABLE counted AS
    SELECT q.id AS q, d.id, count(*) / q.size AS containing, count(*) / d.size AS contained,
           count(*) / (q.size + d.size - count(*)) AS similarity
    FROM asked q JOIN held d USING (e) GROUP BY q.id, d.id, q.size, d.size";

/// Compares index, function and SQL for every condition at a threshold.
fn ensure_equal(client: &mut Client, threshold: &str, state: &str) -> Result<()> {
    client.batch_execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")?;
    for [near, counted] in CONDITIONS {
        let near = near.replace("{}", threshold);
        let pairs = "SELECT q.id AS q, d.id FROM queries q, sets d WHERE";
        let counted = format!("SELECT q, id FROM counted WHERE {counted} >= {threshold}");
        for found in [
            format!("{pairs} {near}"),
            format!("{pairs} ({near}) IS TRUE"),
        ] {
            ensure_same_rows(client, &found, &counted).context(state.to_string())?;
        }
    }
    Ok(())
}

/// Checks thresholds from near 0 to 1: in the log, in segments, with rows larger than a page, and after deletes, VACUUM
/// and REINDEX.
pub fn equals_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "containment")?;
    let mut client = database.connect()?;
    client.batch_execute(SETS)?;
    for change in [
        "",
        "INSERT INTO sets (prints) SELECT elements(i) FROM generate_series(301, 400) i",
        "VACUUM sets",
        "DELETE FROM sets WHERE id % 7 = 0; VACUUM sets",
        "UPDATE sets SET prints = prints || 5000 WHERE id % 5 = 0 AND array_ndims(prints) = 1",
        "REINDEX INDEX sets_prints",
    ] {
        for statement in change.split(';') {
            client.batch_execute(statement)?;
        }
        client.batch_execute(QUERIES)?;
        client.batch_execute(COUNT)?;
        let state = format!("after {change:?}");
        for threshold in ["1e-300", "0.07", "0.2", "1.0 / 3", "0.8", "1"] {
            ensure_equal(&mut client, threshold, &state)?;
        }
        client.batch_execute("SELECT near_dup_index_check('sets_prints')")?;
    }
    Ok(Outcome::Passed)
}

/// Documents, and thirds of documents, as sets of their shingles.
const DOCUMENTS: &str = "
    CREATE TABLE sets AS SELECT id, shingle_hashes(body) AS prints FROM docs;
    CREATE INDEX ON sets USING neardup (prints);
    ANALYZE sets;
    CREATE TEMP TABLE queries AS
    (SELECT id, prints FROM sets ORDER BY hashint8(id) LIMIT 15)
    UNION ALL
    (SELECT -id - 1, shingle_hashes(left(body, length(body) / 3)) FROM docs ORDER BY hashint8(id + 1) LIMIT 15)";

/// Checks both directions and resemblance on documents, whole and in part.
pub fn documents_equal_counting(server: &Server) -> Result<Outcome> {
    let corpora = &["mccormick_2500", "msr_paraphrase", "hadith_ar"];
    for collection in Collection::all(Generated::english(), corpora) {
        let database = Database::with_extension(&server.main, "containment_documents")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        client.batch_execute(DOCUMENTS)?;
        client.batch_execute(COUNT)?;
        for threshold in ["0.001", "0.3", "0.8", "1"] {
            ensure_equal(&mut client, threshold, collection.name())?;
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that all pairs of one query, and all pairs of two queries, are those that SQL counts.
pub fn pairs_equal_counting(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "containment_pairs")?;
    let mut client = database.connect()?;
    client.batch_execute(SETS)?;
    client.batch_execute("INSERT INTO sets (prints) SELECT prints FROM sets WHERE id % 9 = 0")?;
    for (threshold, work_mem) in [
        ("0.05", "4MB"),
        ("0.5", "64kB"),
        ("1.0 / 3", "4MB"),
        ("1", "64kB"),
    ] {
        client.batch_execute(&format!("SET work_mem = '{work_mem}'"))?;
        for (call, sides) in [
            (
                "near_dup_pairs(NULL::bigint, 'SELECT id, prints FROM sets WHERE id > 200',",
                "a.id <> b.id",
            ),
            (
                "near_dup_join(NULL::bigint, 'SELECT id, prints FROM sets WHERE id > 200 AND id % 2 = 0',
                     'SELECT id, prints FROM sets WHERE id > 200 AND id % 2 = 1',",
                "a.id % 2 = 0 AND b.id % 2 = 1",
            ),
        ] {
            let found = format!("SELECT * FROM {call} {threshold}, measure => 'containment')");
            let counted = format!(
                "SELECT a.id, b.id, share(a.prints, b.prints) FROM sets a, sets b
                 WHERE {sides} AND a.prints && b.prints AND a.id > 200 AND b.id > 200
                     AND share(a.prints, b.prints) >= {threshold}"
            );
            ensure_same_rows(&mut client, &found, &counted)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that `near_contained` returns the same rows as `containment` of documents, with an index and without, in
/// every unit, and for columns with a collation of their own.
pub fn near_contained_documents(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "near_contained")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigserial, body text);
         INSERT INTO docs (body)
         SELECT string_agg(CASE WHEN w <= i % 10 THEN 'Edit' || i || w ELSE (ARRAY['the', 'of', 'and', 'to'])[w % 7]
                           END || ' ' || substr(md5(i / 10 || ' ' || w), 1, 5), ' ' ORDER BY w * 7 % 30)
         FROM generate_series(1, 200) i, generate_series(1, 30) w GROUP BY i;
         INSERT INTO docs (body) VALUES (NULL), (''), ('one'), ('one'), ('Two words'), ('two, words!'), ('two')",
    )?;
    for options in [
        "",
        ", 1",
        ", 5, 'char'",
        ", 2, 'stop', 'marks'",
        ", 4, 'char', 'none'",
    ] {
        ensure_containing(&mut client, options).context(options.to_string())?;
    }
    for type_ in ["text COLLATE \"C\"", "varchar(4000) COLLATE \"POSIX\""] {
        client.batch_execute(&format!(
            "DROP INDEX docs_shingles; ALTER TABLE docs ALTER body TYPE {type_}"
        ))?;
        ensure_containing(&mut client, "").context(type_)?;
    }
    Ok(Outcome::Passed)
}

/// Compares `near_contained`, and `containment` with a bound, with a scan, using an index for these options.
fn ensure_containing(client: &mut Client, options: &str) -> Result<()> {
    client.batch_execute(&format!(
        "DROP INDEX IF EXISTS docs_shingles; RESET enable_seqscan;
         CREATE INDEX docs_shingles ON docs USING neardup (shingle_hashes(body{options}));
         ANALYZE docs; SET enable_seqscan = off"
    ))?;
    let pairs = "SELECT q.id, d.id FROM docs q, docs d WHERE";
    for threshold in ["0.3", "0.8", "1"] {
        let found = format!("{pairs} near_contained(d.body, q.body, {threshold}{options})");
        let once = format!(
            "SELECT id FROM docs WHERE near_contained('a text', body, {threshold}{options})"
        );
        for query in [&found, &once] {
            let plan = client.query(&format!("EXPLAIN {query}"), &[])?;
            let uses_index = plan
                .iter()
                .any(|row| row.get::<_, String>(0).contains("docs_shingles"));
            ensure!(uses_index, "{query} does not take the index");
        }
        let compared = format!("containment(d.body, q.body{options}) >= {threshold}");
        let counted = format!("{pairs} ({compared}) IS TRUE");
        ensure_same_rows(client, &found, &counted)?;
        ensure_same_rows(client, &format!("{pairs} {compared}"), &counted)?;
    }
    Ok(())
}

/// Statements that concurrent sessions repeat: rows larger than a page of the index are inserted between others.
const WORK: &[&str] = &[
    "INSERT INTO sets (prints) SELECT array_agg(hashint8extended(j, i)) FROM generate_series(1, 4) i, generate_series(1, 3000) j GROUP BY i",
    "INSERT INTO sets (prints) SELECT array_agg(i * j) FROM generate_series(1, 2) i, generate_series(1, 9000) j GROUP BY i",
    "INSERT INTO sets (prints) SELECT elements(i) FROM generate_series(1, 200) i",
    "DELETE FROM sets WHERE id % 11 = (SELECT max(id) % 11 FROM sets)",
    "VACUUM sets",
];

/// Kills the server while rows larger than a page are inserted among others, and checks that a replica has the same
/// index as the primary.
pub fn crash(server: &Server) -> Result<Outcome> {
    let primary = server.scratch_cluster("containment_crash")?;
    primary.create(&[
        ("wal_level", "replica"),
        ("wal_consistency_checking", "generic"),
        // Without full-page images, the check would read pages that were cut off.
        ("full_page_writes", "on"),
    ])?;
    primary.start()?;
    let mut client = primary.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    client.batch_execute(SETS)?;
    drop(client);
    for kill in 0..3 {
        work(&primary, WORK, usize::MAX, || {
            thread::sleep(Duration::from_millis(900 + 470 * kill));
            primary.crash()
        })?;
        primary.start()?;
        let mut client = primary.connect("postgres")?;
        client.batch_execute("SELECT near_dup_index_check('sets_prints')")?;
    }
    let replica = server.scratch_cluster("containment_replica")?;
    replica.create_replica_of(&primary)?;
    work(&primary, WORK, 10, || Ok(()))?;
    replica.wait_for(&primary)?;
    let mut client = replica.connect("postgres")?;
    client.batch_execute("SELECT near_dup_index_check('sets_prints')")?;
    Ok(Outcome::Passed)
}
