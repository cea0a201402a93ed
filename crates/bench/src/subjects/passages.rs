//! Copied passages as the collection grows, and compared with suffix arrays.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use neardup::text::{Fold, words};
use postgres::Client;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::{load, load_generated};
use testbed::progress::bar;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;
use testbed::server::memory;

use crate::context::Bench;
use crate::measure::session::Session;
use crate::peers::dir;
use crate::peers::suffix_array::SuffixArrays;
use crate::report::table::{Cell, Table, row};

/// The least number of words of passages for measuring growth.
const MIN_WORDS: usize = 50;

/// The bytes of the ranges that suffix arrays look for, and the minimum number of words of our passages in this
/// comparison. Without the words that are cut at its ends, such a range nearly always has as many.
const BYTES: usize = 300;
const WORDS: usize = 20;

/// The numbers of generated documents in the comparison with suffix arrays: at most this many, and all if there are ten
/// times as many. The tool takes a quarter of a minute and a gigabyte for these.
const BESIDE: u64 = 100_000;

/// One call.
struct Call {
    seconds: f64,
    /// kB
    memory: u64,
    /// Bytes of temporary files.
    files: f64,
    rows: f64,
}

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let mut tables = vec![growth(bench)?];
    if let Some(suffix_arrays) = &bench.peers.suffix_arrays {
        tables.push(beside(bench, suffix_arrays)?);
    }
    Ok(tables)
}

/// Counts the rows, in a backend of its own.
fn call(database: &Database<'_>, min_words: usize) -> Result<Call> {
    let session = Session::open(database)?;
    let query = format!(
        "SELECT count(*) FROM copied_passages(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', {min_words})"
    );
    let (mut rows, start) = (0.0, Instant::now());
    let memory = memory::peak(session.pid()?, || {
        rows = session.number(&query)?;
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    drop(session);
    Ok(Call {
        seconds,
        memory,
        // No other session has written temporary files.
        files: Session::open(database)?.temporary_bytes()?,
        rows,
    })
}

/// Returns the seconds that PostgreSQL takes to sort the hashes of all windows.
fn sort(database: &Database<'_>) -> Result<f64> {
    let session = Session::open(database)?;
    let start = Instant::now();
    session.number(&format!(
        "SELECT count(*) FROM (SELECT hash FROM docs, unnest(winnow(body, {MIN_WORDS}, 1)) hash ORDER BY hash OFFSET 0) w"
    ))?;
    Ok(start.elapsed().as_secs_f64())
}

fn growth(bench: &Bench<'_>) -> Result<Table> {
    let sizes = bench.scale.growing();
    let about = format!(
        "Passages of {MIN_WORDS} words and more in generated documents, three in ten of which are edited copies. \
         In one backend without helpers, with work_mem 64MB. Beside it, PostgreSQL sorts the hashes of all windows. The slope is the exponent of a document's cost from the last size but one to the last."
    );
    let columns = "documents | text, MB | seconds | µs a document | memory, MB | temporary files, MB | rows | sort \
         of the windows, seconds";
    let mut table = Table::new("passages.growth", about, columns);
    let cluster = bench.started_cluster()?;
    let progress = bar(sizes.len() as u64, "passages")?;
    let mut costs = Vec::new();
    for &documents in &sizes {
        let (row, cost) = passages_of(
            bench,
            &cluster,
            documents.to_string(),
            Plan::mixed(documents),
        )?;
        costs.push((documents as f64, cost));
        table.push(row);
        progress.inc(1);
    }
    let documents = sizes[sizes.len() / 2];
    let what = format!("{documents}, half of them one template");
    let (templated, _) = passages_of(bench, &cluster, what, Plan::mixed(documents).templated())?;
    progress.finish_and_clear();
    if let [.., before, last] = costs[..] {
        let slope = (last.1 / before.1).ln() / (last.0 / before.0).ln();
        table.push(row!["slope", "", "", format!("{slope:.2}"), "", "", "", ""]);
    }
    table.push(templated);
    Ok(table)
}

/// Returns the row of the documents of a plan, and the time for a document in microseconds.
fn passages_of(
    bench: &Bench<'_>,
    cluster: &Cluster,
    what: String,
    plan: Plan,
) -> Result<(Vec<Cell>, f64)> {
    let documents = plan.documents() as f64;
    let database = Database::with_extension(cluster, "passages")?;
    let mut client = database.connect()?;
    load_generated(&mut client, "docs", &Generator::new(bench.words, plan))?;
    let bytes: i64 = client
        .query_one("SELECT sum(octet_length(body)) FROM docs", &[])?
        .get(0);
    // Else the sort of the query's rows would take memory, too.
    client.batch_execute("ALTER TABLE docs ADD PRIMARY KEY (id)")?;
    let call = call(&database, MIN_WORDS)?;
    let cost = 1e6 * call.seconds / documents;
    let (text, memory) = (bytes as f64 / 1e6, call.memory as f64 / 1e3);
    let files = call.files / 1e6;
    let sort = sort(&database)?;
    let row = row![
        what,
        text,
        call.seconds,
        cost,
        memory,
        files,
        call.rows,
        sort
    ];
    Ok((row, cost))
}

/// Compares both tools on the same bytes: the ranges of the suffix array that lie in our places.
fn beside(bench: &Bench<'_>, suffix_arrays: &SuffixArrays) -> Result<Table> {
    let about = format!(
        "Ranges of {BYTES} bytes that stand in several places, by deduplicate-text-datasets (four processes, then two \
         threads), and copied passages of {WORDS} words and more, in one backend. Covered are the ranges all of whose \
         words are copied, and the first of several equal ones; those of fewer words, or over the end of a document, \
         are not counted."
    );
    let columns = "collection | text, MB | seconds | memory, MB | its seconds | its memory, MB | its files, MB | \
         times faster | times less memory | ranges | covered";
    let mut table = Table::new("passages.suffix_arrays", about, columns);
    let documents = bench.scale.documents;
    let sizes = [
        Some(documents.min(BESIDE)),
        (documents >= 10 * BESIDE).then_some(documents),
    ];
    let generated = sizes.into_iter().flatten().map(|size| {
        let generator = Generator::new(bench.words, Plan::mixed(size));
        let bodies = generator.documents().map(|document| document.body);
        (format!("{size} generated documents"), bodies.collect())
    });
    let real = (bench.texts.origin.clone(), bench.texts.bodies.clone());
    for (name, bodies) in generated.chain([real]) {
        let bodies: Vec<String> = bodies;
        let file = dir().join("passages.bin");
        let collection = Collection::write(&bodies, &file)?;
        let theirs = suffix_arrays.find(&file, BYTES)?;
        let cluster = bench.started_cluster()?;
        let database = Database::with_extension(&cluster, "passages")?;
        let mut client = database.connect()?;
        load(&mut client, "docs", bodies.iter().map(String::as_str))?;
        let ours = call(&database, WORDS)?;
        let is_copied = collection.copied(&mut client)?;
        let (ranges, covered) = collection.covered(theirs.ranges, &is_copied);
        let megabytes = |kilobytes: u64| kilobytes as f64 / 1e3;
        table.push(row![
            name,
            collection.bytes.len() as f64 / 1e6,
            ours.seconds,
            megabytes(ours.memory),
            theirs.seconds,
            megabytes(theirs.memory),
            theirs.files as f64 / 1e6,
            theirs.seconds / ours.seconds,
            theirs.memory as f64 / ours.memory as f64,
            ranges as f64,
            covered as f64
        ]);
    }
    Ok(table)
}

/// The documents in one file, with NUL between them.
struct Collection {
    bytes: Vec<u8>,
    /// The bytes of the words of every document, and the document's beginning and end in the file.
    documents: Vec<(Vec<[usize; 2]>, [usize; 2])>,
}

impl Collection {
    fn write(bodies: &[String], file: &Path) -> Result<Collection> {
        let (mut bytes, mut documents) = (Vec::new(), Vec::new());
        for body in bodies {
            let mut places = Vec::new();
            words(body.as_bytes(), Fold::Case, &mut || (), &mut |_, word| {
                places.push([bytes.len() + word.start, bytes.len() + word.end]);
                Ok(())
            })?;
            documents.push((places, [bytes.len(), bytes.len() + body.len()]));
            bytes.extend_from_slice(body.as_bytes());
            bytes.push(0);
        }
        fs::write(file, &bytes)?;
        Ok(Collection { bytes, documents })
    }

    /// Returns, for every word of every document, whether it is copied.
    fn copied(&self, client: &mut Client) -> Result<Vec<Vec<bool>>> {
        let empty = |(words, _): &(Vec<[usize; 2]>, _)| vec![false; words.len()];
        let mut is_copied: Vec<Vec<bool>> = self.documents.iter().map(empty).collect();
        let query = format!(
            "SELECT key, octet_length(left(body, start - 1)), octet_length(substr(body, start, length))
             FROM copied_passages(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', {WORDS})
             JOIN docs ON id = key"
        );
        for row in client.query(&query, &[])? {
            let (key, start, length): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
            let (words, [begin, _]) = &self.documents[key as usize];
            let start = begin + start as usize;
            let end = start + length as usize;
            let first = words.partition_point(|word| word[0] < start);
            let last = words.partition_point(|word| word[1] <= end);
            is_copied[key as usize][first..last].fill(true);
        }
        Ok(is_copied)
    }

    /// Returns the number of ranges with at least [`WORDS`] whole words, and how many of them are covered.
    fn covered(&self, mut ranges: Vec<usize>, is_copied: &[Vec<bool>]) -> (u64, u64) {
        let hasher = RandomState::new();
        ranges.sort_unstable();
        let mut place = Cursor::default();
        let ranges = ranges.into_iter().map(|start| {
            let has_words = place.advance(start, self, is_copied);
            let hash = hasher.hash_one(&self.bytes[start..start + BYTES]);
            (hash, start, has_words, place.gap <= place.first)
        });
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        let (mut all, mut covered) = (0, 0);
        for equal in ranges.chunk_by(|a, b| a.0 == b.0) {
            // The first of the equal ranges, or one that overlaps it.
            let is_first = |start: usize| start < equal[0].1 + BYTES;
            for &(_, start, _, copied) in equal.iter().filter(|range| range.2) {
                all += 1;
                covered += u64::from(copied || is_first(start));
            }
        }
        (all, covered)
    }
}

/// The words of a range; ranges come in the order of their first bytes.
#[derive(Default)]
struct Cursor {
    document: usize,
    first: usize,
    last: usize,
    /// The word after the last one that is not copied.
    gap: usize,
}

impl Cursor {
    /// Moves to the range from `start`. Returns whether it lies in a document and has at least [`WORDS`] whole words.
    fn advance(&mut self, start: usize, all: &Collection, is_copied: &[Vec<bool>]) -> bool {
        let end = start + BYTES;
        while let Some((_, next)) = all.documents.get(self.document + 1)
            && next[0] <= start
        {
            let document = self.document + 1;
            *self = Cursor {
                document,
                ..Cursor::default()
            };
        }
        let (words, range) = &all.documents[self.document];
        // A word that begins where the range begins may begin before the range in another place.
        while words.get(self.first).is_some_and(|word| word[0] <= start) {
            self.first += 1;
        }
        while words.get(self.last).is_some_and(|word| word[1] < end) {
            if !is_copied[self.document][self.last] {
                self.gap = self.last + 1;
            }
            self.last += 1;
        }
        end <= range[1] && self.last >= self.first + WORDS
    }
}
