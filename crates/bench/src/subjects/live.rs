//! Refreshes of kept clusters, compared with computing the clusters anew.

use std::thread;
use std::time::Instant;

use anyhow::Result;
use postgres::{Client, Statement};
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};
use crate::subjects::analytics;

/// The number of rows changed before a refresh, and the number of rounds.
const CHANGES: &[(u64, usize)] = &[(0, 25), (1, 25), (100, 9), (10_000, 3)];

/// Trackers of one table: the name of the rows, the column that is compared, and the clusters.
const COMPARED: [(&str, &str, &str); 2] = [
    ("", "sig", "docs_clusters"),
    (", documents", "body", "docs_by_text"),
];

/// The part of the documents that make the largest group.
const SHARE: u64 = 100;

/// The part of the documents half of which are made from one template.
const TEMPLATED_SHARE: u64 = 10;

/// Tables that take rows one by one, and the tracker of each.
const TRACKERS: &[(&str, &str)] = &[
    ("not tracked", ""),
    ("tracked", "SELECT near_dup_track('{}', 'sig', 0.8)"),
    (
        "tracked, immediate",
        "SELECT near_dup_track('{}', 'sig', 0.8, immediate => true)",
    ),
];

/// Numbers of sessions at the same time; rows that they insert together in a turn, and turns.
const SESSIONS: &[u64] = &[1, 16];
const INSERTS: u64 = 800;
const TURNS: u64 = 5;

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
    let columns = ["what", "seconds", "share of anew"];
    let about = format!(
        "{documents} generated documents, threshold 0.8, and a tenth as many, half of them one template. Medians."
    );
    let mut refreshes = Table::new("live.refresh", about, &columns);
    let few = documents / TEMPLATED_SHARE;
    let plan = Plan::mixed(few).templated();
    load_generated(
        &mut session.client(),
        "docs",
        &Generator::new(bench.words, plan),
    )?;
    let templated = measure_changes(&session, few, ", half of them one template", &CHANGES[2..3])?;
    session.execute("DROP TABLE docs")?;
    let generator = Generator::new(bench.words, Plan::mixed(documents));
    load_generated(&mut session.client(), "docs", &generator)?;
    let rows = measure_changes(&session, documents, "", CHANGES)?;
    rows.into_iter()
        .chain(templated)
        .for_each(|row| refreshes.push(row));
    Ok(vec![
        refreshes,
        measure_groups(&session, documents / SHARE)?,
        measure_commits(bench, &database, &session)?,
        analytics::measure(&session)?,
    ])
}

/// Returns how long refreshes take after changes of some rows.
/// Returns the rows of refreshes of both trackers after changes of the table `docs`.
fn measure_changes(
    session: &Session,
    documents: u64,
    of_table: &str,
    changes: &[(u64, usize)],
) -> Result<Vec<Vec<Cell>>> {
    session.execute(
        "ALTER TABLE docs ADD PRIMARY KEY (id), ADD sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED;
         CREATE INDEX ON docs USING neardup (sig); CREATE INDEX ON docs USING neardup (body)",
    )?;
    session.vacuum("docs")?;
    let rounds = changes.iter().filter(|(rows, _)| rows * 10 <= documents);
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
            let what = format!("{what}{of}{of_table}");
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

/// Returns how many transactions with one row each sessions commit in a second, by tracker.
fn measure_commits(bench: &Bench<'_>, database: &Database<'_>, session: &Session) -> Result<Table> {
    let documents = bench.scale.documents;
    let turns = TURNS.min(bench.scale.rounds as u64);
    let columns = ["table", "sessions", "rows a second", "share of not tracked"];
    let about = format!(
        "Transactions that insert one of {documents} generated documents with its signature into a table of \
         as many; medians of {turns} turns of {INSERTS} rows."
    );
    let mut table = Table::new("live.immediate", about, &columns);
    let progress = bar(turns * SESSIONS.len() as u64, "transactions of one row")?;
    for (number, (_, tracker)) in TRACKERS.iter().enumerate() {
        let name = format!("target_{number}");
        session.execute(&format!(
            "CREATE TABLE {name} (id bigserial PRIMARY KEY, sig minhash_signature);
             INSERT INTO {name} (sig) SELECT sig FROM docs;
             CREATE INDEX ON {name} USING neardup (sig); {}",
            tracker.replace("{}", &name)
        ))?;
        session.vacuum(&name)?;
    }
    for &sessions in SESSIONS {
        let mut rates = vec![Vec::new(); TRACKERS.len()];
        for turn in 0..turns {
            for (number, rates) in rates.iter_mut().enumerate() {
                let from = turn * INSERTS % documents.max(1);
                rates.push(commits(
                    database,
                    &format!("target_{number}"),
                    sessions,
                    from,
                )?);
            }
            progress.inc(1);
        }
        let medians: Vec<f64> = rates.iter().map(|rates| quantile(rates, 0.5)).collect();
        for ((what, _), rate) in TRACKERS.iter().zip(&medians) {
            table.push(row![*what, sessions as i64, *rate, rate / medians[0]]);
        }
    }
    progress.finish_and_clear();
    Ok(table)
}

/// Inserts documents from a number on, each in a transaction of its own. Returns the rows inserted in a second.
fn commits(database: &Database<'_>, table: &str, sessions: u64, from: u64) -> Result<f64> {
    let statement = format!("INSERT INTO {table} (sig) SELECT sig FROM docs WHERE id = $1");
    let mut clients = Vec::new();
    for _ in 0..sessions {
        let mut client = database.connect()?;
        let insert = client.prepare(&statement)?;
        clients.push((client, insert));
    }
    let start = Instant::now();
    thread::scope(|scope| {
        let insert_some = |(place, (mut client, insert)): (u64, (Client, Statement))| {
            let mut ids = (from + place..from + INSERTS).step_by(sessions as usize);
            scope.spawn(move || {
                ids.try_for_each(|id| client.execute(&insert, &[&(id as i64)]).map(drop))
            })
        };
        let running: Vec<_> = (0..).zip(clients).map(insert_some).collect();
        let mut ends = running.into_iter().map(|session| session.join());
        ends.try_for_each(|end| end.expect("sessions do not panic"))
    })?;
    Ok(INSERTS as f64 / start.elapsed().as_secs_f64())
}

/// Returns how long refreshes take after the first row of a group has been deleted, for a large group and for one a
/// tenth as large.
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
