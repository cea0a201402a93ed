//! Benchmarks: our features and their cost, compared with other software in one run; and charts.

mod context;
mod figures;
mod measure;
mod peers;
mod report;
mod score;
pub mod smoke;
mod subjects;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Error, Result, ensure};
use testbed::documents::{Texts, write_generated};
use testbed::pg_config::PostgresChoice;
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::setup;

use context::{Bench, Scale};
use peers::Peers;
use report::Report;
use report::machine::Machine;
use report::table::Table;
use subjects::{Measure, SUBJECTS, Subject};

#[derive(clap::Args)]
pub struct Options {
    /// Subjects to measure; `generate` only writes generated documents into a directory, and `figures` only draws the
    /// documentation's curves
    #[arg(value_enum, default_value = "all")]
    subject: Subject,
    /// Measure with the text files of this directory
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
    /// Number of documents to generate [default: 1000000, with --quick 100000]
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Words of a document of `scale`, on average
    #[arg(long, value_name = "N", default_value_t = 120)]
    length: usize,
    /// A few minutes: fewer documents and rounds; the results in benches/ stay as they are
    #[arg(long)]
    quick: bool,
    /// A checkout of google-research/deduplicate-text-datasets, to measure passages in comparison
    #[arg(long, value_name = "DIR")]
    suffix_arrays: Option<PathBuf>,
    /// Directory of generated documents
    #[arg(long, value_name = "DIR", required_if_eq("subject", "generate"))]
    out: Option<PathBuf>,
}

/// Measures the subjects that the user named, prints the results, and writes them.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<()> {
    if options.subject == Subject::Figures {
        return figures::draw_all();
    }
    let words = Texts::vocabulary(options.docs.as_deref())?;
    let documents = options.documents.unwrap_or(match options.quick {
        true => 100_000,
        false => 1_000_000,
    });
    if options.subject == Subject::Generate {
        let out = options.out.as_ref().context("no directory")?;
        for file in write_generated(&words, documents, out)? {
            println!("Wrote {}", file.display());
        }
        return Ok(());
    }
    let (rounds, long_rounds) = if options.quick { (7, 1) } else { (21, 3) };
    let results = match options.quick {
        true => peers::dir().join("results"),
        false => report::results_dir(),
    };
    let server = Server::start(setup::ensure(choice)?)?;
    let wants_passages = matches!(options.subject, Subject::All | Subject::Passages);
    let mut peers = match options.subject {
        Subject::All
        | Subject::Signature
        | Subject::Python
        | Subject::Compare
        | Subject::Lookup
        | Subject::Pairs
        | Subject::Pipelines
        | Subject::Containment
        | Subject::Quality => Peers::start(),
        _ => Peers::none(),
    };
    if wants_passages {
        peers.add_suffix_arrays(options.suffix_arrays.as_deref())?;
    }
    let texts = Texts::real(options.docs.as_deref())?;
    let scale = Scale {
        documents,
        length: options.length,
        rounds,
        long_rounds,
    };
    let bench = Bench {
        server: &server,
        peers: &peers,
        texts: &texts,
        words: &words,
        scale,
        results,
    };
    measure(&bench, options)
}

fn measure(bench: &Bench<'_>, options: &Options) -> Result<()> {
    std::fs::create_dir_all(peers::dir())?;
    std::fs::create_dir_all(&bench.results)?;
    let machine = describe_machine(bench)?;
    println!("{}", machine.line());
    let wanted = |subject| options.subject == Subject::All || options.subject == subject;
    let mut failed = Vec::new();
    for (_, subject, measures) in SUBJECTS.iter().filter(|entry| wanted(entry.0)) {
        let start = Instant::now();
        let (tables, error) = tables(bench, measures);
        let report = Report {
            subject,
            machine: machine.clone(),
            settings: settings(bench),
            tables,
        };
        report.write(&bench.results)?;
        if !options.quick {
            report.embed()?;
        }
        println!("Measured {subject} in {} s", start.elapsed().as_secs());
        if let Some(error) = error {
            println!("{subject} failed: {error:#}");
            failed.push(*subject);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Returns the tables up to the first measurement that fails.
fn tables(bench: &Bench<'_>, measures: &[Measure]) -> (Vec<Table>, Option<Error>) {
    let mut tables = Vec::new();
    for measure in measures {
        match measure(bench) {
            Ok(more) => tables.extend(more),
            Err(error) => return (tables, Some(error)),
        }
    }
    (tables, None)
}

fn describe_machine(bench: &Bench<'_>) -> Result<Machine> {
    let database = Database::with_extension(&bench.server.main, "bench")?;
    let mut client = database.connect()?;
    let mut versions = bench.peers.versions.clone();
    versions.extend(peers::describe_extensions(&mut client)?);
    Machine::read(&mut client, versions)
}

fn settings(bench: &Bench<'_>) -> String {
    format!(
        "Documents: {}, {:.0} bytes on average; generated ones: {}. Servers with shared_buffers 2GB; sessions with \
         work_mem 64MB, maintenance_work_mem 1GB, no parallel workers, no JIT. Medians of {} rounds, of {} where \
         one takes seconds, with quartiles.",
        bench.texts.origin,
        bench.texts.mean_bytes(),
        bench.scale.documents,
        bench.scale.rounds,
        bench.scale.long_rounds
    )
}
