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

/// Changed rows before a refresh, and rounds.
const CHANGES: &[(u64, usize)] = &[(1, 25), (100, 9), (10_000, 3)];

/// The share of all documents that are copies of one, and the share that is a chain of versions.
const SHARE: u64 = 100;

/// Versions of a text of which each is near the next one alone, and copies of one.
const GROUPS: &str = "INSERT INTO docs (id, body)
    SELECT -i, (SELECT string_agg('version' || w, ' ') FROM generate_series(i * 16, i * 16 + 159) w)
    FROM generate_series(1, {count}) i;
    INSERT INTO docs (id, body)
    SELECT -10000000 - i, (SELECT string_agg('copy' || w, ' ') FROM generate_series(1, 100) w) || ' ' || i % 50
    FROM generate_series(1, {count}) i";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "live")?;
    let session = Session::open(&database)?;
    let documents = bench.scale.documents;
    let generator = Generator::new(bench.words, Plan::mixed(documents));
    load_generated(&mut session.client(), "docs", &generator)?;
    let groups = (documents / SHARE).max(2);
    session.execute(&GROUPS.replace("{count}", &groups.to_string()))?;
    session.execute(
        "ALTER TABLE docs ADD PRIMARY KEY (id), ADD sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED;
         CREATE INDEX ON docs USING neardup (sig); ANALYZE docs;
         SELECT near_dup_track('docs', 'sig', 0.8, 'id DESC')",
    )?;
    let rounds = CHANGES.iter().filter(|(rows, _)| rows * 10 <= documents);
    let progress = bar(4 + rounds.clone().count() as u64, "refreshes")?;
    let anew = session.seconds(
        "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'SELECT id, sig FROM docs ORDER BY id DESC', 0.8)",
    )?;
    progress.inc(1);
    let about = format!(
        "{documents} generated documents, {groups} copies of one text, and a chain of {groups} versions; \
         threshold 0.8. Medians."
    );
    let columns = ["what", "seconds", "share of anew"];
    let mut table = Table::new("live.refresh", about, &columns);
    let mut add = |what: String, seconds: f64| table.push(row![what, seconds, seconds / anew]);
    add("near_dup_clusters anew".to_string(), anew);
    let refresh = "SELECT near_dup_refresh('docs_clusters')";
    session.execute(refresh)?;
    for &(rows, repeats) in rounds {
        let mut seconds = Vec::new();
        for round in 0..repeats {
            session.execute(&format!(
                "UPDATE docs SET body = body || ' changed {round}' WHERE id IN (
                     SELECT id FROM docs WHERE id > 0 ORDER BY hashint8(id + {round}) LIMIT {rows})"
            ))?;
            seconds.push(session.seconds(refresh)?);
        }
        add(format!("{rows} changed rows"), quantile(&seconds, 0.5));
        progress.inc(1);
    }
    for (what, first) in [
        ("first version of the chain deleted", "SELECT -1"),
        ("canonical row of the copies deleted", "SELECT -10000001"),
    ] {
        session.execute(&format!("DELETE FROM docs WHERE id IN ({first})"))?;
        add(what.to_string(), session.seconds(refresh)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(vec![table])
}
