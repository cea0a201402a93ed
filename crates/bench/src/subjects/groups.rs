//! Clusters in a table of one large group, compared with a table of unrelated rows.

use anyhow::Result;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// The number of a row's 40 words that all rows share, and its effect on the rows at threshold 0.8.
const GROUPS: &[(u32, &str)] = &[
    (0, "strangers"),
    (38, "one template, similarity 0.90"),
    (36, "one template, similarity 0.81"),
    (35, "one template, similarity 0.77"),
    (30, "one template, similarity 0.58"),
];

/// Shares of the documents of the scale that make a group.
const SHARES: &[(u64, u64)] = &[(1, 100), (1, 10), (2, 5)];

/// The timed steps.
const STAR: &str = "SELECT count(*) FILTER (WHERE key = cluster)
    FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM members ORDER BY id', 0.8)";
const CONNECTED: &str = "SELECT count(*)
    FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM members ORDER BY id', 0.8, 'connected')";
const TRACK: &str = "SELECT near_dup_track('members', 'body', 0.8)";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "groups")?;
    let session = Session::open(&database)?;
    let columns = "rows | what | canonical rows | star, s | connected, s | near_dup_track, s | star beside \
         strangers";
    let about = "Documents of 40 words, some of them the same in all documents; threshold 0.8.";
    let mut table = Table::new("groups.clusters", about.to_string(), columns);
    let progress = bar((GROUPS.len() * SHARES.len()) as u64, "groups")?;
    for &(part, of) in SHARES {
        let rows = (bench.scale.documents * part / of).max(2);
        let mut strangers = None;
        for &(shared, what) in GROUPS {
            progress.inc(1);
            progress.set_message(format!("{rows} rows: {what}"));
            load(&session, rows, shared)?;
            let canonical = session.number(STAR)?;
            let [star, connected, track] =
                [STAR, CONNECTED, TRACK].map(|step| session.seconds(step));
            let star = star?;
            let beside = star / *strangers.get_or_insert(star);
            table.push(row![
                rows as i64,
                what,
                canonical as i64,
                star,
                connected?,
                track?,
                beside
            ]);
        }
    }
    progress.finish_and_clear();
    Ok(vec![table])
}

/// Creates the table `members` of documents whose first `shared` words are the same.
fn load(session: &Session, rows: u64, shared: u32) -> Result<()> {
    session.execute(&format!(
        "DROP TABLE IF EXISTS members, members_clusters CASCADE;
         CREATE UNLOGGED TABLE members AS SELECT i::bigint AS id, body
         FROM generate_series(1, {rows}) i, LATERAL (
             SELECT string_agg(CASE WHEN w > {shared} THEN 'own' || i || 'x' ELSE 'shared' END || w, ' ') AS body
             FROM generate_series(1, 40) w) d;
         ALTER TABLE members ADD PRIMARY KEY (id);
         CREATE INDEX ON members USING neardup (body)"
    ))?;
    session.vacuum("members")
}
