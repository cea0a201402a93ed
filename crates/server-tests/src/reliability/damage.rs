//! Damaged pages of indexes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;

use super::collection;
use super::index::{NEAR, run_each, wrong_answers};
use crate::harness::{Outcome, Scale, figure};

/// Rows of an operator class.
struct Subject {
    /// Fills a table docs (id int, sig) with more than 2000 rows.
    fill: fn(&mut Client) -> Result<()>,
    /// Conditions between two rows q and d.
    conditions: &'static [&'static str],
}

const SIGNATURES: Subject = Subject {
    fill: |client| {
        collection::create(client)?;
        collection::insert(client, 1, 2500)?;
        Ok(())
    },
    conditions: &[NEAR],
};

/// Sets that share elements, some of them too large for a page of the index.
const SETS: Subject = Subject {
    fill: |client| {
        Ok(client.batch_execute(
            "CREATE TABLE docs AS SELECT i AS id, array(
                 SELECT hashint8extended(e, i / 10) % 100000
                 FROM generate_series(1, CASE WHEN i % 200 = 3 THEN 3000 ELSE 10 + i % 7 END) e) AS sig
             FROM generate_series(1, 2500) i",
        )?)
    },
    conditions: &[
        "near_contained(d.sig, q.sig, 0.7)",
        "near_contained(q.sig, d.sig, 0.7)",
        "near_dup(q.sig, d.sig, 0.7)",
    ],
};

/// Creates a table and an index that has pages of every kind.
const COPIED: &str = "
    CREATE TABLE copied AS SELECT id, sig FROM docs WHERE id <= 500;
    CREATE INDEX copied_sig ON copied USING neardup (sig);
    INSERT INTO copied SELECT id, sig FROM docs WHERE id > 500;
    DELETE FROM copied WHERE id % 9 = 0; VACUUM copied;
    INSERT INTO copied SELECT id + 9000, sig FROM docs WHERE id < 300";

const CHECK: &str = "SELECT near_dup_index_check('copied_sig')";

/// Statements on the table while a page of its index is damaged.
const ON_DAMAGED: &[&str] = &[
    "SELECT * FROM near_dup_index_stats('copied_sig')",
    "SELECT count(*) FROM copied d, docs q WHERE q.id = 7 AND CONDITION",
    "INSERT INTO copied SELECT id, sig FROM docs",
    "DELETE FROM copied WHERE id % 3 = 0",
    "VACUUM copied",
    "INSERT INTO copied SELECT id, sig FROM docs WHERE id < 900",
    "VACUUM copied",
];

/// Flips bits in pages of every kind. Checks that there is an error that reports it, or a correct answer; never a crash
/// or an endless loop. If the index passes the check, it gives the same answers as a scan.
pub fn of_signatures(server: &Server, scale: Scale) -> Result<Outcome> {
    is_noticed(server, scale, &SIGNATURES)
}

/// Does the same for sets.
pub fn of_sets(server: &Server, scale: Scale) -> Result<Outcome> {
    is_noticed(server, scale, &SETS)
}

fn is_noticed(server: &Server, scale: Scale, subject: &Subject) -> Result<Outcome> {
    let cluster = server.quiet_cluster("damage", &[])?;
    let (template, file) = template(&cluster, subject)?;
    let mut client = cluster.connect("postgres")?;
    let copies = scale.of(40, 120);
    let options = format!("TEMPLATE \"{}\" STRATEGY file_copy", template.name);
    let mut rng = Rng::with_seed(1);
    let mut noticed = 0;
    for copy in 0..copies {
        // None of the copied pages is in memory before a session connects.
        let database = Database::create(&cluster, "damaged", &options)?;
        let number = "SELECT oid::text FROM pg_database WHERE datname = $1";
        let number: String = client.query_one(number, &[&database.name])?.get(0);
        let file = cluster.data_dir().join("base").join(number).join(&file);
        let what = damage(&file, copy, &mut rng)?;
        noticed += usize::from(work_on(&database, copy, subject).context(what)?);
    }
    let log = fs::read_to_string(cluster.log_file())?;
    ensure!(!log.contains("terminated by signal"), "a backend died");
    ensure!(noticed > 0, "no damage was noticed");
    figure!("{copies} damaged indexes: {noticed} noticed, the others answered as the scan does");
    Ok(Outcome::Passed)
}

/// Creates the database whose copies are damaged. Returns it and the name of the index's file.
fn template<'a>(cluster: &'a Cluster, subject: &Subject) -> Result<(Database<'a>, String)> {
    let template = Database::with_extension(cluster, "damage")?;
    let mut client = template.connect()?;
    (subject.fill)(&mut client)?;
    run_each(&mut client, COPIED)?;
    let file = "SELECT pg_relation_filenode('copied_sig')::text";
    let file = client.query_one(file, &[])?.get(0);
    Ok((template, file))
}

/// The offset of a page's kind.
const KIND_AT: usize = 8192 - 8;

/// Kinds of pages. The offsets on the metapage of the number of free pages, and of their blocks.
const META: u16 = 1;
const ROWS_DIRECTORY: u16 = 5;
const FREE_COUNT_AT: usize = 72;
const FREE_AT: usize = 24 + 6016;

/// Flips bits of one page, or empties it, in turn for every kind in use. Returns a description of the damage.
fn damage(file: &PathBuf, turn: usize, rng: &mut Rng) -> Result<String> {
    let bytes = fs::read(file)?;
    let kind = |page: &[u8]| u16::from_le_bytes([page[KIND_AT], page[KIND_AT + 1]]);
    let pages: Vec<&[u8]> = bytes.chunks_exact(8192).collect();
    let mut kinds: Vec<u16> = pages.iter().map(|page| kind(page)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let wanted = kinds[turn % kinds.len()];
    let of_kind: Vec<usize> = (0..pages.len())
        .filter(|&block| kind(pages[block]) == wanted)
        .collect();
    let writable = OpenOptions::new().write(true).open(file)?;
    // Rows are added to the last page, which must not be waited for if it is damaged.
    if turn / kinds.len() % 4 == 3
        && let Some(&block) = of_kind.last()
    {
        writable.write_all_at(&[0; 8192], block as u64 * 8192)?;
        return Ok(format!("copy {turn}: all of block {block}, kind {wanted}"));
    }
    let block = of_kind[rng.usize(..of_kind.len())];
    // The references to other pages are near the beginning.
    let most = [64, 512, 8192][rng.usize(..3)];
    let mut changed = pages[block].to_vec();
    let mut places = Vec::new();
    let directory = pages.iter().position(|page| kind(page) == ROWS_DIRECTORY);
    match (turn / kinds.len() % 4, wanted, changed[FREE_COUNT_AT]) {
        // PostgreSQL accepts any end of the free space between its beginning and the special space.
        (2, ..) => changed.copy_within(12..14, 14),
        (1, META, count @ 1..) => {
            let last = FREE_AT + 4 * (usize::from(count) - 1);
            let directory = directory.context("no directory of rows")? as u32;
            changed[last..last + 4].copy_from_slice(&directory.to_le_bytes());
        }
        _ => {}
    }
    let flips = match changed == pages[block] {
        true => rng.usize(1..4),
        false => 0,
    };
    for _ in 0..flips {
        let at = rng.usize(..most);
        changed[at] ^= rng.u8(1..);
        places.push(at);
    }
    writable.write_all_at(&changed, block as u64 * 8192)?;
    Ok(format!(
        "copy {turn}: bytes {places:?} of block {block}, kind {wanted}"
    ))
}

/// Returns whether the damage was detected. Fails if it was neither detected nor harmless.
fn work_on(database: &Database<'_>, copy: usize, subject: &Subject) -> Result<bool> {
    let mut client = database.connect()?;
    // As on a server without page checksums.
    client.batch_execute("SET ignore_checksum_failure = on; SET client_min_messages = error; SET statement_timeout = '10min'")?;
    let mut noticed = false;
    let is_sound = !is_rejected(client.batch_execute(CHECK)).context("check")?;
    noticed |= !is_sound;
    for condition in subject.conditions {
        match wrong_answers(&mut client, "copied", condition) {
            Ok(wrong) => ensure!(wrong == 0 || !is_sound, "{wrong} wrong answers"),
            Err(error) => noticed |= is_rejected(Err(error)).context("lookups")?,
        }
    }
    let condition = subject.conditions[copy % subject.conditions.len()];
    for statement in ON_DAMAGED {
        let statement = statement.replace("CONDITION", condition);
        let outcome = client.batch_execute(&statement);
        noticed |= is_rejected(outcome).with_context(|| statement.clone())?;
    }
    client.batch_execute("REINDEX INDEX copied_sig")?;
    client.batch_execute(CHECK)?;
    let wrong = wrong_answers(&mut client, "copied", condition)?;
    ensure!(wrong == 0, "{wrong} wrong answers after REINDEX");
    Ok(noticed)
}

/// Returns whether a statement failed because data are damaged, or of another version. Fails for any other error.
fn is_rejected(outcome: Result<(), postgres::Error>) -> Result<bool> {
    let Err(error) = outcome else {
        return Ok(false);
    };
    match error.code() {
        // A changed byte may be one of the version.
        Some(
            &SqlState::INDEX_CORRUPTED
            | &SqlState::DATA_CORRUPTED
            | &SqlState::FEATURE_NOT_SUPPORTED,
        ) => Ok(true),
        _ => Err(error.into()),
    }
}
