//! Jobs over whole collections on two cores, compared with one core and with merely reading every byte.

use anyhow::{Context, Result};
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::{load, load_generated};
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// The job that every other one is compared with: one backend that reads every document completely.
const BARE: &str = "SELECT count(md5(body)) FROM docs";

/// The jobs and their statements.
const JOBS: &[(&str, &str)] = &[
    (
        "text to verified pairs",
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.8)",
    ),
    (
        "signatures and text to verified pairs",
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig, body FROM docs JOIN sigs USING (id)', 0.8)",
    ),
    (
        "signatures to pairs",
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'TABLE sigs', 0.8)",
    ),
    (
        "text to verified pairs of halves",
        "SELECT count(*) FROM near_dup_join(NULL::bigint, 'SELECT id, body FROM docs WHERE id % 2 = 0', 'SELECT id, body FROM docs WHERE id % 2 = 1', 0.8)",
    ),
    (
        "text to star clusters",
        "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs', 0.8)",
    ),
    (
        "signatures to star clusters",
        "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8)",
    ),
    (
        "signatures to connected clusters",
        "SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8, 'connected')",
    ),
    (
        "bit strings to pairs",
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'TABLE bits', 3)",
    ),
    (
        "text to copied passages",
        "SELECT count(*) FROM copied_passages(NULL::bigint, 'SELECT id, body FROM docs', 50)",
    ),
];

/// The number of generated documents, measured in addition to the user's own.
const GENERATED: u64 = 200_000;

/// Number of rounds. Each job takes a second or two.
const ROUNDS: usize = 5;

/// Minimum number of documents for jobs to take long enough to be measured.
const LEAST: usize = 10_000;

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = format!(
        "Seconds of jobs with max_parallel_maintenance_workers 0 and 1, in turn, and what is gained by the second core; \
         beside `{BARE}` in one backend."
    );
    let columns =
        "documents | job | one core, s | two cores, s | times faster | times the bare look";
    let mut table = Table::new("pairs.cores", about, columns);
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "cores")?;
    let session = Session::open(&database)?;
    let documents = GENERATED.min(bench.scale.documents);
    let generator = Generator::new(bench.words, Plan::mixed(documents));
    load_generated(&mut session.client(), "docs", &generator)?;
    let rounds = ROUNDS.min(bench.scale.rounds);
    compare(
        &session,
        "generated",
        documents as usize,
        rounds,
        &mut table,
    )?;
    if bench.texts.bodies.len() >= LEAST {
        session.execute("DROP TABLE docs, sigs, bits")?;
        let bodies = bench.texts.bodies.iter().map(String::as_str);
        load(&mut session.client(), "docs", bodies)?;
        compare(
            &session,
            &bench.texts.origin,
            bench.texts.bodies.len(),
            rounds,
            &mut table,
        )?;
    }
    Ok(vec![table])
}

fn compare(
    session: &Session,
    name: &str,
    documents: usize,
    rounds: usize,
    table: &mut Table,
) -> Result<()> {
    session.execute(
        "CREATE UNLOGGED TABLE sigs AS SELECT id, minhash(body) AS sig FROM docs;
         CREATE UNLOGGED TABLE bits AS SELECT id, simhash(body) AS bits FROM docs",
    )?;
    session.vacuum("docs, sigs, bits")?;
    for (job, statement) in JOBS {
        let run = |name: &str, helpers: u32, statement: &'static str| {
            Contender::new(name, documents, move || {
                session.execute(&format!("SET max_parallel_maintenance_workers = {helpers}"))?;
                session.seconds(statement)
            })
        };
        let contenders = vec![
            run("one", 0, statement),
            run("two", 1, statement),
            run("bare", 0, BARE),
        ];
        let results = race(job, rounds, contenders)?;
        let times = |name| results.get(name).context("a job failed");
        let (one, two, bare) = (times("one")?, times("two")?, times("bare")?);
        table.push(row![
            format!("{name}, {documents}"),
            *job,
            one.median(),
            two.median(),
            one.over(two),
            two.over(bare)
        ]);
    }
    Ok(())
}
