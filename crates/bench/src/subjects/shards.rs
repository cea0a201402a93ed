//! All pairs over the nodes of Citus, compared with one server.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::server::citus::{self, Citus, Hosts};
use testbed::server::database::Database;

use crate::context::{Bench, SERVER_SETTINGS};
use crate::measure::session::SETTINGS;
use crate::report::table::{Table, row};

/// The numbers of workers, measured in turn.
const WORKERS: [usize; 3] = [1, 2, 4];
const SHARDS: usize = 8;

const TABLES: &str = "CREATE TABLE docs (id bigint PRIMARY KEY, body text NOT NULL,
        sig minhash_signature GENERATED ALWAYS AS (minhash_pack(minhash(body), 8)) STORED);
    CREATE TABLE bands (band bigint NOT NULL, id bigint NOT NULL, sig minhash_signature NOT NULL)";

/// The steps: names and statements.
const STEPS: [(&str, &str); 4] = [
    (
        "documents",
        "INSERT INTO docs (id, body) SELECT id, body FROM texts",
    ),
    (
        "band keys",
        "INSERT INTO bands SELECT unnest(minhash_bands(sig, 0.8)), id, sig FROM docs",
    ),
    (
        "index of bands",
        "CREATE INDEX ON bands (band); ANALYZE bands",
    ),
    (
        "pairs",
        "CREATE TABLE pairs AS SELECT a.id AS a, b.id AS b FROM bands a JOIN bands b USING (band)
         WHERE a.id < b.id AND near_dup(a.sig, b.sig, 0.8)
           AND band = minhash_shared_band(a.sig, b.sig, 0.8)",
    ),
];

/// The job for one server.
const PAIRS: &str = "CREATE TABLE pairs_of_job AS
    SELECT a, b FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', 0.8)";

/// The number of comparisons that the busiest shard makes, divided by the mean of all shards; the candidates of a
/// band are compared in pairs.
const SKEW: &str = "SELECT coalesce(max(c) / avg(c), 1)::float8 FROM (
        SELECT sum(n * (n - 1) / 2) AS c FROM (
            SELECT band, count(*) AS n FROM bands GROUP BY band HAVING count(*) > 1) b
        GROUP BY get_shard_id_for_distribution_column('bands', band)) s";

/// Returns the table of this subject; nothing if there is no Citus.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    if !bench.server.main.offers(citus::EXTENSION)? {
        println!("Skipping shards: the server does not have Citus");
        return Ok(Vec::new());
    }
    let documents = bench.scale.documents;
    let about = format!(
        "{documents} generated documents, their signatures packed to 8 bits a slot, in {SHARDS} shards on workers that share \
         this machine's cores: compare the processor time of all nodes, not the seconds. Network: bytes between the nodes. \
         Comparisons of the busiest shard over their mean: the skew by bands that many rows share."
    );
    let columns = [
        "nodes",
        "step",
        "s",
        "processor s",
        "network, MB",
        "pairs",
        "busiest shard",
    ];
    let mut table = Table::new("shards", &about, &columns);
    let wanted = one_server(bench, &mut table)?;
    for workers in WORKERS {
        let found = shards(bench, workers, &mut table)?;
        ensure!(
            found == wanted,
            "{found} pairs with {workers} workers, not {wanted}"
        );
    }
    Ok(vec![table])
}

/// Measures the same statements and the job on one server. Returns the number of pairs.
fn one_server(bench: &Bench<'_>, table: &mut Table) -> Result<i64> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "shards")?;
    let mut client = prepared(bench, database.connect()?)?;
    client.batch_execute(TABLES)?;
    let processor = || cluster.processor_seconds();
    for (step, statements) in STEPS.into_iter().chain([("near_dup_pairs", PAIRS)]) {
        let cost = cost(&mut client, statements, &processor)?;
        table.push(row![
            "one server",
            step,
            cost.seconds,
            cost.processor,
            0.0,
            "",
            ""
        ]);
    }
    let mut count = |table| {
        client
            .query_one(&format!("SELECT count(*) FROM {table}"), &[])
            .map(|row| row.get(0))
    };
    let [joined, found]: [i64; 2] = [count("pairs")?, count("pairs_of_job")?];
    ensure!(
        joined == found,
        "{joined} pairs by bands, {found} by the job"
    );
    Ok(found)
}

/// Measures the statements over this number of workers. Returns the number of pairs.
fn shards(bench: &Bench<'_>, workers: usize, table: &mut Table) -> Result<i64> {
    let nodes = Citus::start(bench.server, workers, Hosts::Loopback, &SERVER_SETTINGS)?;
    let mut client = prepared(bench, nodes.coordinator.connect("postgres")?)?;
    client.batch_execute(TABLES)?;
    client.batch_execute(&format!("SET citus.shard_count = {SHARDS}"))?;
    client.batch_execute("SELECT create_distributed_table('docs', 'id')")?;
    client.batch_execute("SELECT create_distributed_table('bands', 'band')")?;
    let processor = || nodes.processor_seconds();
    for (step, statements) in STEPS {
        let sent = bytes_sent()?;
        let cost = cost(&mut client, statements, &processor)?;
        let megabytes = (bytes_sent()? - sent) / 1e6;
        let name = format!("{workers} workers");
        table.push(row![
            name,
            step,
            cost.seconds,
            cost.processor,
            megabytes,
            "",
            ""
        ]);
    }
    let pairs: i64 = client.query_one("SELECT count(*) FROM pairs", &[])?.get(0);
    let skew: f64 = client.query_one(SKEW, &[])?.get(0);
    let name = format!("{workers} workers");
    table.push(row![name, "all", "", "", "", pairs as f64, skew]);
    Ok(pairs)
}

/// Returns a session with its settings, and with the documents as the table `texts`.
fn prepared(bench: &Bench<'_>, mut client: Client) -> Result<Client> {
    client.batch_execute(SETTINGS)?;
    let plan = Plan::mixed(bench.scale.documents);
    load_generated(&mut client, "texts", &Generator::new(bench.words, plan))?;
    Ok(client)
}

struct Cost {
    seconds: f64,
    processor: f64,
}

fn cost(
    client: &mut Client,
    statements: &str,
    processor: &dyn Fn() -> Result<f64>,
) -> Result<Cost> {
    let before = processor()?;
    let start = Instant::now();
    // Citus runs each statement in a transaction of its own.
    for statement in statements.split(';') {
        client
            .batch_execute(statement)
            .context(statement.to_string())?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Cost {
        seconds,
        processor: processor()? - before,
    })
}

/// Returns the bytes that the loopback interface has sent.
fn bytes_sent() -> Result<f64> {
    let table = fs::read_to_string("/proc/net/dev")?;
    let line = table
        .lines()
        .find_map(|line| line.trim().strip_prefix("lo:"));
    let sent = line
        .context("no loopback interface")?
        .split_whitespace()
        .nth(8);
    Ok(sent.context("no count of bytes")?.parse()?)
}
