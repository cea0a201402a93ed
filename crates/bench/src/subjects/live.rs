//! Refreshes of kept clusters beside clusters computed anew.

use anyhow::Result;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Table, row};
use crate::subjects::analytics;

/// Changed rows before a refresh, and rounds.
const CHANGES: &[(u64, usize)] = &[(1, 25), (100, 9), (10_000, 3)];

const REFRESH: &str = "SELECT near_dup_refresh('docs_clusters')";

/// The part of the documents that make the largest group.
const SHARE: u64 = 100;

/// Groups whose first row is deleted: what they are, and the words of the row of number `i`. Of 1024
/// slots, enough to tell a version's neighbor (0.85) from the one behind it (0.72).
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
    let generator = Generator::new(bench.words, Plan::mixed(documents));
    load_generated(&mut session.client(), "docs", &generator)?;
    Ok(vec![
        measure_changes(&session, documents)?,
        measure_groups(&session, documents / SHARE)?,
        analytics::measure(&session)?,
    ])
}

/// Returns how long refreshes take after changes of some rows.
fn measure_changes(session: &Session, documents: u64) -> Result<Table> {
    session.execute(
        "ALTER TABLE docs ADD PRIMARY KEY (id), ADD sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED;
         CREATE INDEX ON docs USING neardup (sig)",
    )?;
    session.vacuum("docs")?;
    let rounds = CHANGES.iter().filter(|(rows, _)| rows * 10 <= documents);
    let progress = bar(3 + rounds.clone().count() as u64, "refreshes")?;
    let columns = ["what", "seconds", "share of anew"];
    let about = format!("{documents} generated documents, threshold 0.8. Medians.");
    let mut table = Table::new("live.refresh", about, &columns);
    let anew = session.seconds(
        "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'SELECT id, sig FROM docs ORDER BY id DESC', 0.8)",
    )?;
    let mut add = |what: String, seconds: f64| {
        table.push(row![what, seconds, seconds / anew]);
        progress.inc(1);
    };
    add("near_dup_clusters anew".to_string(), anew);
    let track = "SELECT near_dup_track('docs', 'sig', 0.8, 'id DESC')";
    add("near_dup_track".to_string(), session.seconds(track)?);
    session.vacuum("docs_clusters, docs_clusters_canonical")?;
    session.execute(REFRESH)?;
    for &(rows, repeats) in rounds {
        let mut seconds = Vec::new();
        for round in 0..repeats {
            session.execute(&format!(
                "UPDATE docs SET body = body || ' changed {round}' WHERE id IN (
                     SELECT id FROM docs ORDER BY hashint8(id + {round}) LIMIT {rows})"
            ))?;
            seconds.push(session.seconds(REFRESH)?);
        }
        add(format!("{rows} changed rows"), quantile(&seconds, 0.5));
    }
    let rebuild = "SELECT near_dup_refresh('docs_clusters', true)";
    add("rebuild => true".to_string(), session.seconds(rebuild)?);
    progress.finish_and_clear();
    session.execute("DROP TABLE docs_clusters")?;
    Ok(table)
}

/// Returns how long refreshes take after the first row of a group has gone, of a large group and of a
/// tenth of it.
fn measure_groups(session: &Session, largest: u64) -> Result<Table> {
    let columns = ["group", "rows", "changed rows", "seconds", "us a row"];
    let about = "The first row of a group is deleted; threshold 0.8.".to_string();
    let mut table = Table::new("live.groups", about, &columns);
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
