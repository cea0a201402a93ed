//! The cost of rejecting near-duplicates, or of noting them, row by row, and while a statement of many rows runs.

use std::thread;

use anyhow::{Result, anyhow};
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::{Times, quantile};
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// Tables that receive the same documents, each with the definitions that follow its columns: partitions, index, guard.
const TABLES: &[(&str, &str)] = &[
    ("without an index", ""),
    ("indexed", "; CREATE INDEX ON {} USING neardup (sig)"),
    (
        "constrained",
        "; ALTER TABLE {} ADD EXCLUDE USING neardup (near_dup_key(sig, 0.8) WITH %)",
    ),
    (
        "guarded",
        "; CREATE INDEX ON {} USING neardup (sig); SELECT near_dup_protect('{}', 'sig', 0.8)",
    ),
    (
        "guarded, by the text",
        "; CREATE INDEX ON {} USING neardup (body); SELECT near_dup_protect('{}', 'body', 0.8)",
    ),
    (
        "guarded, by the text, within a week",
        "; CREATE INDEX ON {} USING neardup (body);
         SELECT near_dup_protect('{}', 'body', 0.8, within => 'day', by => interval '7 days')",
    ),
    (
        "guarded, by the text, within a week, 60 partitions by day",
        "PARTITION BY RANGE (day);
         DO $$ BEGIN
             FOR day IN 0 .. 59 LOOP
                 EXECUTE format('CREATE TABLE {}_%s PARTITION OF {} FOR VALUES FROM (%L) TO (%L)',
                     day, date '2024-01-01' + day, date '2024-01-02' + day);
             END LOOP;
         END $$;
         CREATE INDEX ON {} USING neardup (body);
         SELECT near_dup_protect('{}', 'body', 0.8, within => 'day', by => interval '7 days')",
    ),
    (
        "noted",
        "; CREATE INDEX ON {} USING neardup (sig); SELECT near_dup_protect('{}', 'sig', 0.8, action => 'note', key => 'number')",
    ),
    (
        "noted, each row beside a copy",
        "; INSERT INTO {} SELECT -1 - number, body, sig, day FROM originals;
         CREATE INDEX ON {} USING neardup (sig); SELECT near_dup_protect('{}', 'sig', 0.8, action => 'note', key => 'number')",
    ),
];

/// The share of the documents that is inserted, and the number of turns.
const SHARE: u64 = 10;
const TURNS: u64 = 20;

/// The factor by which there are fewer documents where half of them are made from one template: each is compared with
/// many others.
const FEWER: u64 = 10;

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let columns = "table | µs an insert | 99 % of the turns, µs an insert | times indexed";
    let mut table = Table::new("pairs.guard", "", columns);
    let documents = bench.scale.documents / SHARE;
    let mixed = Plan::mixed(documents);
    let (turn, all) = inserts(bench, &cluster, mixed, TABLES)?;
    let templated = Plan::mixed(documents / FEWER).templated();
    let (few, mut half) = inserts(bench, &cluster, templated, &[TABLES[1], TABLES[4]])?;
    for times in &mut half {
        times.name += &format!(", {} rows, half of them one template", few * TURNS);
    }
    for (turn, all, indexed) in [(turn, &all, &all[1]), (few, &half, &half[0])] {
        for times in all {
            let slow = 1e6 * quantile(&times.seconds, 0.99) / turn as f64;
            let name = times.name.clone();
            table.push(row![name, times.microseconds(), slow, times.over(indexed)]);
        }
    }
    table.about = format!(
        "{} documents without near-duplicates, their signatures computed before, inserted row by row in one session, \
         {turn} in turn into each table.",
        turn * TURNS
    );
    Ok(vec![table, beside_one_statement(bench, &cluster)?])
}

/// The number of single rows that are inserted before the statement of many rows.
const ALONE: u64 = 200;

/// A document that is near no other one.
const UNLIKE: &str =
    "(SELECT string_agg(md5(n || ' ' || word), ' ') FROM generate_series(1, 20) word)";

/// Returns the table of the times that single inserts of unrelated rows take while one statement of many rows runs.
fn beside_one_statement(bench: &Bench<'_>, cluster: &Cluster) -> Result<Table> {
    let rows = bench.scale.documents / SHARE;
    let columns =
        "guard | seconds, the statement | ms, a row alone | ms, a row beside it | ms, at most";
    let mut table = Table::new("guard.beside", "", columns);
    for (name, action) in [("rejects", "reject"), ("notes", "note")] {
        let database = Database::with_extension(cluster, "guard_beside")?;
        let session = Session::open(&database)?;
        session.execute(&format!(
            "CREATE TABLE docs (id bigserial PRIMARY KEY, body text); CREATE INDEX ON docs USING neardup (body);
             SELECT near_dup_protect('docs', 'body', 0.8, action => '{action}')"
        ))?;
        let insert = |from: i64, to: i64| {
            format!("INSERT INTO docs (body) SELECT {UNLIKE} FROM generate_series({from}, {to}) n")
        };
        let single = |number: u64| session.seconds(&insert(-(number as i64), -(number as i64)));
        let alone = (1..=ALONE).map(single).collect::<Result<Vec<_>>>()?;
        let statement = insert(1, rows as i64);
        let (all, beside) = thread::scope(|scope| -> Result<_> {
            let all = scope.spawn(|| Session::open(&database)?.seconds(&statement));
            let mut beside = vec![single(ALONE + 1)?];
            while !all.is_finished() {
                beside.push(single(ALONE + 1 + beside.len() as u64)?);
            }
            let all = all
                .join()
                .map_err(|_| anyhow!("the statement panicked"))??;
            Ok((all, beside))
        })?;
        let longest = beside
            .iter()
            .fold(0.0, |longest: f64, &next| longest.max(next));
        let [alone, beside] = [&alone, &beside].map(|times| 1e3 * quantile(times, 0.5));
        table.push(row![name, all, alone, beside, 1e3 * longest]);
    }
    table.about = format!(
        "One session inserts {rows} documents of 20 words by one statement, another one single documents meanwhile. No \
         document is near another: medians, and the longest that a single insert has taken."
    );
    Ok(table)
}

/// Returns the number of inserts in a turn, and the times of the originals of a plan for each table.
fn inserts(
    bench: &Bench<'_>,
    cluster: &Cluster,
    plan: Plan,
    tables: &[(&str, &str)],
) -> Result<(u64, Vec<Times>)> {
    let database = Database::with_extension(cluster, "guard")?;
    let session = Session::open(&database)?;
    let generator = Generator::new(bench.words, plan);
    load_generated(&mut session.client(), "docs", &generator)?;
    // No near-duplicates: none of the tables rejects a row.
    session.execute(
        "CREATE TABLE originals AS SELECT *, date '2024-01-01' + (number % 60)::int AS day
         FROM (SELECT row_number() OVER () - 1 AS number, body, minhash(body) AS sig
               FROM (SELECT DISTINCT ON (grp) body FROM docs ORDER BY grp, id) d) numbered;
         CREATE INDEX ON originals (number)",
    )?;
    let documents = session.number("SELECT count(*) FROM originals")? as u64;
    let turn = (documents / TURNS).max(1);
    let progress = bar(TURNS, "inserts with and without the guard")?;
    let mut all = Vec::new();
    for (number, (name, objects)) in tables.iter().enumerate() {
        let table = format!("target_{number}");
        session.execute(&format!(
            "CREATE TABLE {table} (number bigint, body text, sig minhash_signature, day date, PRIMARY KEY (number, day)) {}",
            objects.replace("{}", &table)
        ))?;
        all.push(Times {
            name: (*name).to_string(),
            documents: turn as usize,
            seconds: Vec::new(),
        });
    }
    for round in 0..TURNS {
        for (number, times) in all.iter_mut().enumerate() {
            let from = round * turn;
            times.seconds.push(session.seconds(&format!(
                "DO $$ DECLARE d originals; BEGIN
                     FOR d IN SELECT * FROM originals WHERE number >= {from} AND number < {} LOOP
                         INSERT INTO target_{number} VALUES (d.number, d.body, d.sig, d.day);
                     END LOOP;
                 END $$",
                from + turn
            ))?);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok((turn, all))
}
