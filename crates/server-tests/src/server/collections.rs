//! Compares pairs and clusters of whole collections with brute force, exact lists and definitions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::corpora::Corpus;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;
use crate::known::{Collection, Generated};

/// How a collection is compared with its list of all pairs with a Jaccard similarity of at least 0.5.
struct Exact {
    corpus: &'static str,
    list: &'static str,
    /// The signature, and the value from which the exact similarity is computed.
    columns: &'static str,
    /// The condition for documents that are compared.
    rows: &'static str,
    thresholds: &'static [f64],
}

const EXACT: [Exact; 6] = [
    Exact {
        corpus: "mccormick_2500",
        list: "exact_w3",
        columns: "minhash(body), body",
        rows: ASCII,
        thresholds: &[0.5, 0.8],
    },
    Exact {
        corpus: "reuters21578",
        list: "exact_w3",
        columns: "minhash(body), body",
        rows: ASCII,
        thresholds: &[0.5, 0.8],
    },
    Exact {
        corpus: "newsgroups20",
        list: "exact_w3",
        columns: "minhash(body), body",
        rows: ASCII,
        thresholds: &[0.5, 0.8],
    },
    Exact {
        corpus: "hadith_ar",
        list: "exact_fold_w3",
        columns: "minhash(body, fold => 'marks'), shingle_hashes(body, fold => 'marks')",
        rows: "true",
        thresholds: &[0.5, 0.8],
    },
    Exact {
        corpus: "song_zh",
        list: "exact_c3",
        columns: "minhash(body), body",
        rows: "true",
        thresholds: &[0.5, 0.8],
    },
    // There are two million pairs at 0.5.
    Exact {
        corpus: "licenses",
        list: "exact_w3",
        columns: "minhash(body), body",
        rows: ASCII,
        thresholds: &[0.8],
    },
];

/// In ASCII documents, words are the same by every rule.
const ASCII: &str = "octet_length(body) = char_length(body)";

/// Checks that the pairs by estimates equal the pairs found by comparing all rows.
pub fn pairs_equal_brute_force(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::english(), &["mccormick_2500"]) {
        let database = Database::with_extension(&server.main, "pairs")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        check_pairs(&mut client).with_context(|| collection.name().to_string())?;
    }
    Ok(Outcome::Passed)
}

fn check_pairs(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE sigs AS SELECT id, minhash(body, slots => 96) AS sig FROM docs ORDER BY id;
         CREATE TABLE brute AS SELECT x.id AS a, y.id AS b, minhash_sim(x.sig, y.sig) AS s
             FROM sigs x JOIN sigs y ON x.id < y.id WHERE minhash_sim(x.sig, y.sig) >= 0.05",
    )?;
    for threshold in [0.05, 0.1, 0.3, 0.5, 0.8, 1.0] {
        let differing: i64 = client
            .query_one(
                "WITH found AS (SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM sigs ORDER BY id', $1)),
                      wanted AS (SELECT * FROM brute WHERE s >= $1)
                 SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE wanted) x)
                      + (SELECT count(*) FROM (TABLE wanted EXCEPT ALL TABLE found) x)",
                &[&threshold],
            )?
            .get(0);
        ensure!(
            differing == 0,
            "threshold {threshold}: {differing} pairs differ"
        );
        for (of_a, of_b) in [("= 0", "> 0"), ("> 0", "= 0")] {
            check_join(client, threshold, [of_a, of_b])?;
        }
    }
    Ok(())
}

/// Checks a join of a tenth of the rows with the others, in both orders of the queries.
fn check_join(client: &mut Client, threshold: f64, [of_a, of_b]: [&str; 2]) -> Result<()> {
    let query = |of_side| format!("'SELECT id, sig FROM sigs WHERE id % 10 {of_side} ORDER BY id'");
    let differing: i64 = client
        .query_one(
            &format!(
                "WITH found AS (SELECT * FROM near_dup_join(NULL::bigint, {}, {}, $1)),
                      both_ways AS (SELECT a, b, s FROM brute UNION ALL SELECT b, a, s FROM brute),
                      wanted AS (SELECT * FROM both_ways WHERE s >= $1 AND a % 10 {of_a} AND b % 10 {of_b})
                 SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE wanted) x)
                      + (SELECT count(*) FROM (TABLE wanted EXCEPT ALL TABLE found) x)",
                query(of_a),
                query(of_b)
            ),
            &[&threshold],
        )?
        .get(0);
    ensure!(
        differing == 0,
        "threshold {threshold}, id % 10 {of_a}: {differing} pairs of a join differ"
    );
    Ok(())
}

/// Checks that verified pairs are all true, have their true similarity, and are complete.
pub fn verified_pairs(server: &Server) -> Result<Outcome> {
    for (generated, exact) in [
        (Generated::english(), &EXACT[0]),
        (Generated::arabic(), &EXACT[3]),
        (Generated::han(), &EXACT[4]),
    ] {
        check_verified(server, &Collection::Generated(generated), exact)?;
    }
    for exact in &EXACT {
        if let Some(corpus) = Corpus::find(exact.corpus) {
            check_verified(server, &Collection::Corpus(corpus), exact)?;
        }
    }
    Ok(Outcome::Passed)
}

fn check_verified(server: &Server, collection: &Collection, exact: &Exact) -> Result<()> {
    let (name, columns, rows) = (collection.name(), exact.columns, exact.rows);
    let database = Database::with_extension(&server.main, "verified")?;
    let mut client = database.connect()?;
    collection.load(&mut client, "docs")?;
    collection.load_exact(&mut client, exact.list, "exact")?;
    client.batch_execute(&format!(
        "DELETE FROM docs WHERE NOT ({rows});
             ALTER TABLE docs ADD PRIMARY KEY (id);
             DELETE FROM exact WHERE NOT EXISTS (SELECT FROM docs WHERE id = a)
                                  OR NOT EXISTS (SELECT FROM docs WHERE id = b)"
    ))?;
    let documents = format!("SELECT id, {columns} FROM docs ORDER BY id");
    for &threshold in exact.thresholds {
        let row = client.query_one(
                "SELECT count(p.a), count(*) FILTER (WHERE e.jaccard IS NULL OR abs(e.jaccard - p.similarity) > 6e-7),
                        (SELECT count(*) FROM exact WHERE jaccard >= $1)
                 FROM near_dup_pairs(NULL::bigint, $2, $1) p
                 LEFT JOIN exact e ON e.a = least(p.a, p.b) AND e.b = greatest(p.a, p.b)",
                &[&threshold, &documents],
            )?;
        let (found, wrong, wanted): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        ensure!(
            wrong == 0,
            "{name}, {threshold}: {wrong} pairs are not in the exact list"
        );
        ensure!(
            found == wanted,
            "{name}, {threshold}: {found} of {wanted} pairs"
        );
    }
    Ok(())
}

/// Checks `'star'` by its definition, using the pairs, and `'connected'` by the components of the pairs.
pub fn clusters_follow_their_definition(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::english(), &["reuters21578"]) {
        let database = Database::with_extension(&server.main, "clusters")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        check_clusters(&mut client).with_context(|| collection.name().to_string())?;
    }
    Ok(Outcome::Passed)
}

fn check_clusters(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE sigs AS SELECT id, minhash(body) AS sig FROM docs ORDER BY id",
    )?;
    for threshold in [0.2, 0.5, 0.8] {
        check_stars(client, "id, sig", threshold)?;
        check_components(client, "id, sig", threshold)?;
    }
    Ok(())
}

fn check_components(client: &mut Client, columns: &str, threshold: f64) -> Result<()> {
    let differing: i64 = client
        .query_one(
            "SELECT count(*) FROM connected_components(NULL::bigint,
                 format('SELECT a, b FROM near_dup_pairs(NULL::bigint, ''SELECT %s FROM sigs'', %s)', $2::text, $1::float8)) c
             JOIN near_dup_clusters(NULL::bigint, format('SELECT %s FROM sigs ORDER BY id', $2::text), $1, 'connected') n
                 USING (key)
             WHERE c.component <> n.cluster",
            &[&threshold, &columns],
        )?
        .get(0);
    ensure!(
        differing == 0,
        "connected, {columns}, {threshold}: {differing} rows differ"
    );
    Ok(())
}

fn check_stars(client: &mut Client, columns: &str, threshold: f64) -> Result<()> {
    let mut earlier: BTreeMap<i64, Vec<(i64, f64)>> = BTreeMap::new();
    let rows = format!("SELECT {columns} FROM sigs ORDER BY id");
    let pairs = "SELECT * FROM near_dup_pairs(NULL::bigint, $2, $1)";
    for row in client.query(pairs, &[&threshold, &rows])? {
        earlier
            .entry(row.get(1))
            .or_default()
            .push((row.get(0), row.get(2)));
    }
    let mut joined = BTreeSet::new();
    let clusters = "SELECT * FROM near_dup_clusters(NULL::bigint, $2, $1) ORDER BY key";
    for row in client.query(clusters, &[&threshold, &rows])? {
        // Empty rows are similar to nothing, and have no similarity.
        let (key, similarity): (i64, Option<f64>) = (row.get(0), row.get(2));
        let found = (row.get(1), similarity.unwrap_or(1.0));
        let similar = earlier.get(&key).into_iter().flatten();
        let canonical = similar.filter(|(other, _)| !joined.contains(other));
        let best = canonical.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let expected = best.map_or((key, 1.0), |best| *best);
        ensure!(
            found == expected,
            "star, {columns}, {threshold}: {key} is in {found:?}, not {expected:?}"
        );
        if expected.0 != key {
            joined.insert(key);
        }
    }
    Ok(())
}

/// Tables half of which follow one template: the number of 40 words that their rows share.
const SHARED_WORDS: [u32; 3] = [38, 35, 31];

/// Checks that clusters follow the definition if half of the table follows one template, whether all, some or none of
/// its rows reach the threshold; in memory and in temporary files; estimated and verified; and for bit strings.
pub fn clusters_of_templates(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "templates")?;
    let mut client = database.connect()?;
    for shared in SHARED_WORDS {
        // Every tenth member is a copy of another.
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS sigs;
             CREATE TABLE sigs AS SELECT id, body, minhash(body, 1) AS sig, bits, id::bit(2) AS short FROM (
                 SELECT (i * 7919) % 1201 AS id,
                     hashint8extended(CASE WHEN i % 2 = 0 THEN 0 ELSE i END, 0)::bit(64)
                         # (1::bit(64) << i::int % 16) # (1::bit(64) << i::int / 16 % 60) AS bits,
                     string_agg(CASE WHEN i % 2 = 0 AND w <= {shared} THEN 'shared' || w
                     ELSE 'own' || (CASE WHEN i % 20 = 0 THEN i % 600 ELSE i END) || 'x' || w END, ' ') AS body
                 FROM generate_series(1::bigint, 1200) i, generate_series(1, 40) w GROUP BY i) d"
        ))?;
        for work_mem in ["64kB", "64MB"] {
            client.batch_execute(&format!("SET work_mem = '{work_mem}'"))?;
            for (columns, threshold) in [
                ("id, sig", 0.8),
                ("id, sig, body", 0.8),
                ("id, body", 0.8),
                ("id, shingle_hashes(body)", 0.8),
                ("id, bits", 3.0),
                ("id, short", 3.0),
            ] {
                let check = |check: fn(&mut Client, &str, f64) -> Result<()>,
                             client: &mut Client| {
                    check(client, columns, threshold)
                        .with_context(|| format!("{shared} shared words, {work_mem}"))
                };
                check(check_stars, &mut client)?;
                check(check_components, &mut client)?;
            }
            check_pairs_of_template(&mut client)
                .with_context(|| format!("{shared} shared words, {work_mem}"))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Compares the pairs and joins of documents, half of them copies of one template, with a comparison of all documents.
fn check_pairs_of_template(client: &mut Client) -> Result<()> {
    let documents = |side: &str| format!("$$SELECT id, body FROM sigs WHERE {side} ORDER BY id$$");
    let differing: i64 = client
        .query_one(
            &format!(
                "WITH members AS MATERIALIZED (SELECT id, shingle_hashes(body) AS set FROM sigs WHERE body LIKE 'shared%'),
                      brute AS (SELECT x.id AS a, y.id AS b FROM members x JOIN members y
                                ON x.id < y.id AND jaccard(x.set, y.set) >= 0.8),
                      found AS (SELECT a, b FROM near_dup_pairs(NULL::bigint, {}, 0.8)),
                      between AS (SELECT least(a, b) AS a, greatest(a, b) AS b FROM near_dup_join(NULL::bigint, {}, {}, 0.8)),
                      wanted AS (TABLE brute UNION ALL SELECT a, b FROM brute WHERE a % 2 <> b % 2)
                 SELECT (SELECT count(*) FROM (TABLE wanted EXCEPT ALL (TABLE found UNION ALL TABLE between)) x)
                      + (SELECT count(*) FROM ((TABLE found UNION ALL TABLE between) EXCEPT ALL TABLE wanted) x)",
                documents("body LIKE 'shared%'"),
                documents("id % 2 = 0 AND body LIKE 'shared%'"),
                documents("id % 2 = 1")
            ),
            &[],
        )?
        .get(0);
    ensure!(differing == 0, "{differing} pairs differ");
    Ok(())
}

/// Checks that a join does not look through the copies on one side for each document that is similar to them.
pub fn join_of_many_copies(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("copies", &[])?;
    let database = Database::with_extension(&cluster, "copies")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE rows AS SELECT i AS id, CASE WHEN i > 100000 THEN 'v' || i || ' ' ELSE '' END || body AS body
         FROM (SELECT string_agg('w' || w, ' ') AS body FROM generate_series(1, 60) w) b, generate_series(1, 110000) i",
    )?;
    let mut seconds = |end: &str| {
        let before = cluster.processor_seconds()?;
        let join = format!(
            "SELECT count(*) FROM near_dup_join(NULL::int, 'TABLE rows',
                 'SELECT 0, body || ''{end}'' FROM rows WHERE id = 1', 0.8, measure => 'containment')"
        );
        let pairs: i64 = client.query_one(&join, &[])?.get(0);
        ensure!(pairs == 110_000, "{pairs} pairs");
        anyhow::Ok(cluster.processor_seconds()? - before)
    };
    let (similar, copy) = (seconds(" end")?, seconds("")?);
    ensure!(copy < 4.0 * similar, "{copy} s instead of {similar} s");
    Ok(Outcome::Passed)
}
