//! Refreshes of kept clusters, compared with computing the clusters from scratch.

use anyhow::Result;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};

/// The number of rows changed before a refresh, and the number of rounds.
const CHANGES: &[(u64, usize)] = &[(1, 9), (10, 9), (100, 5), (1000, 3), (10_000, 3)];

/// Trackers of one table: the name of the rows, the column that is compared, and the clusters.
const COMPARED: [(&str, &str, &str); 2] = [
    ("", "sig", "docs_clusters"),
    (", documents", "body", "docs_by_text"),
];

/// Documents number `i`: a description, and their words. Two thirds of the words of a listing are one template.
const DOCUMENTS: &[(&str, &str)] = &[
    (
        "strangers",
        "SELECT string_agg('own' || hashint8(i * 1000 + w), ' ') FROM generate_series(1, 180) w",
    ),
    (
        "listings",
        "SELECT string_agg(CASE WHEN w <= 60 THEN 'own' || hashint8(i * 1000 + w) ELSE 'footer' || w END, ' ')
         FROM generate_series(1, 180) w",
    ),
    (
        "one group",
        "SELECT string_agg('copy' || w, ' ') || ' ' || i % 50 FROM generate_series(1, 180) w",
    ),
];

/// The share of the documents that make up the largest group.
const SHARE: u64 = 100;

/// Groups whose first row is deleted: a description, and the words of row number `i`. 1024 slots are enough to
/// distinguish a version's neighbor (0.85) from the next version (0.72).
const GROUPS: &[(&str, &str)] = &[
    (
        "chain of versions",
        "SELECT string_agg('version' || w, ' ') FROM generate_series(i * 12, i * 12 + 153) w",
    ),
    (
        "copies of one text",
        "SELECT string_agg('copy' || w, ' ') || ' ' || i % 50 FROM generate_series(1, 100) w",
    ),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "live")?;
    let session = Session::open(&database)?;
    let documents = bench.scale.documents;
    let columns = "what | seconds | share of anew";
    let about = format!("{documents} documents of each kind, threshold 0.8. Medians.");
    let mut refreshes = Table::new("live.refresh", about, columns);
    for (what, words) in DOCUMENTS {
        session.execute(&format!(
            "CREATE UNLOGGED TABLE docs AS SELECT i AS id, ({words}) AS body FROM generate_series(1, {documents}::bigint) i"
        ))?;
        let rows = measure_changes(&session, documents, what)?;
        rows.into_iter().for_each(|row| refreshes.push(row));
        session.execute("DROP TABLE docs")?;
    }
    Ok(vec![
        refreshes,
        measure_groups(&session, documents / SHARE)?,
    ])
}

/// Gives the table `docs` a key, signatures and indexes.
fn prepare(session: &Session) -> Result<()> {
    session.execute(
        "ALTER TABLE docs ADD PRIMARY KEY (id), ADD sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED;
         CREATE INDEX ON docs USING neardup (sig); CREATE INDEX ON docs USING neardup (body)",
    )?;
    session.vacuum("docs")
}

/// Returns the rows of refreshes of both trackers after changes of the table `docs`, whose documents are `of_table`.
fn measure_changes(session: &Session, documents: u64, of_table: &str) -> Result<Vec<Vec<Cell>>> {
    prepare(session)?;
    let rounds = CHANGES.iter().filter(|(rows, _)| rows * 10 <= documents);
    let progress = bar(6 + 2 * rounds.clone().count() as u64, "refreshes")?;
    let mut table = Vec::new();
    let anew = COMPARED.map(|(_, column, _)| {
        session.seconds(&format!(
            "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'SELECT id, {column} FROM docs ORDER BY id DESC', 0.8)"
        ))
    });
    let [of_signatures, of_documents] = anew;
    let anew = [of_signatures?, of_documents?];
    let mut add = |what: String, seconds: [f64; 2]| {
        for (((of, ..), seconds), anew) in COMPARED.iter().zip(seconds).zip(anew) {
            let what = format!("{of_table}{of}: {what}");
            table.push(row![what, seconds, seconds / anew]);
            progress.inc(1);
        }
    };
    add("near_dup_clusters anew".to_string(), anew);
    let each = |statement: &str| -> Result<[f64; 2]> {
        let mut seconds = [0.0; 2];
        for (seconds, (_, column, clusters)) in seconds.iter_mut().zip(COMPARED) {
            let statement = statement.replace("{clusters}", clusters);
            *seconds = session.seconds(&statement.replace("{column}", column))?;
        }
        Ok(seconds)
    };
    let track = "SELECT near_dup_track('docs', '{column}', 0.8, 'id DESC', '{clusters}')";
    add("near_dup_track".to_string(), each(track)?);
    for (_, _, clusters) in COMPARED {
        session.vacuum(&format!("{clusters}, {clusters}_canonical"))?;
    }
    let refresh = "SELECT near_dup_refresh('{clusters}')";
    each(refresh)?;
    for &(rows, repeats) in rounds {
        let mut seconds = [Vec::new(), Vec::new()];
        for round in 0..repeats {
            session.execute(&format!(
                "UPDATE docs SET body = body || ' changed {round}' WHERE id IN (
                     SELECT id FROM docs ORDER BY hashint8(id + {round}) LIMIT {rows})"
            ))?;
            for (all, seconds) in seconds.iter_mut().zip(each(refresh)?) {
                all.push(seconds);
            }
        }
        let medians = seconds.map(|seconds| quantile(&seconds, 0.5));
        add(format!("{rows} changed rows"), medians);
    }
    let rebuild = "SELECT near_dup_refresh('{clusters}', true)";
    add("rebuild => true".to_string(), each(rebuild)?);
    progress.finish_and_clear();
    session.execute("DROP TABLE docs_clusters, docs_by_text")?;
    Ok(table)
}

/// Returns how long refreshes take after the first row of a group has been deleted, for a large group and for one a
/// tenth as large.
fn measure_groups(session: &Session, largest: u64) -> Result<Table> {
    let columns = "group | rows | changed rows | seconds | us a row";
    let about = "The first row of a group is deleted; threshold 0.8.".to_string();
    let mut table = Table::new("live.groups", about, columns);
    for (what, words) in GROUPS {
        for rows in [largest / 10, largest].map(|rows| rows.max(2)) {
            session.execute(&format!(
                "CREATE UNLOGGED TABLE members AS SELECT i AS id, minhash(body, slots => 1024) AS sig
                 FROM (SELECT i, ({words}) AS body FROM generate_series(1, {rows}) i) s;
                 ALTER TABLE members ADD PRIMARY KEY (id);
                 CREATE INDEX ON members USING neardup (sig);
                 SELECT near_dup_track('members', 'sig', 0.8);
                 DELETE FROM members WHERE id = 1"
            ))?;
            session.vacuum("members, members_clusters")?;
            let seconds = session.seconds("SELECT near_dup_refresh('members_clusters')")?;
            let changed = session.number("SELECT changed FROM near_dup_tracked")?;
            session.execute("DROP TABLE members, members_clusters CASCADE")?;
            let each = 1e6 * seconds / rows as f64;
            table.push(row![*what, rows as i64, changed as i64, seconds, each]);
        }
    }
    Ok(table)
}
