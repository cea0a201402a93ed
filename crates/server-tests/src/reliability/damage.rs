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

/// Statements on a table and its index whose pages are damaged.
const ON_DAMAGED: &[&str] = &[
    "SELECT * FROM near_dup_index_stats('INDEX')",
    "SELECT count(*) FROM TABLE d, docs q WHERE q.id = 7 AND CONDITION",
    "INSERT INTO TABLE SELECT id, sig FROM docs",
    "DELETE FROM TABLE WHERE id % 3 = 0",
    "VACUUM TABLE",
    "INSERT INTO TABLE SELECT id, sig FROM docs WHERE id < 900",
    "VACUUM TABLE",
];

/// Bits flipped in pages of every kind: an error that says so, or right answers; never a crash, nor a
/// loop without end. What the check lets pass answers as the scan does.
pub fn of_signatures(server: &Server, scale: Scale) -> Result<Outcome> {
    is_noticed(server, scale, &SIGNATURES)
}

/// The same of sets.
pub fn of_sets(server: &Server, scale: Scale) -> Result<Outcome> {
    is_noticed(server, scale, &SETS)
}

fn is_noticed(server: &Server, scale: Scale, subject: &Subject) -> Result<Outcome> {
    let cluster = server.scratch_cluster("damage")?;
    cluster.create(&[("autovacuum", "off")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    (subject.fill)(&mut client)?;
    let copies = scale.of(40, 120);
    let mut files = Vec::new();
    for copy in 0..copies {
        let fill = format!(
            "CREATE TABLE docs_{copy} AS SELECT id, sig FROM docs WHERE id <= 500;
             CREATE INDEX index_{copy} ON docs_{copy} USING neardup (sig);
             INSERT INTO docs_{copy} SELECT id, sig FROM docs WHERE id > 500;
             DELETE FROM docs_{copy} WHERE id % 9 = 0; VACUUM docs_{copy};
             INSERT INTO docs_{copy} SELECT id + 9000, sig FROM docs WHERE id < 300"
        );
        run_each(&mut client, &fill)?;
        let path = format!("SELECT pg_relation_filepath('index_{copy}')");
        let path: String = client.query_one(&path, &[])?.get(0);
        files.push(cluster.data_dir().join(path));
    }
    drop(client);
    cluster.stop()?;
    let mut rng = Rng::with_seed(1);
    let mut damaged = Vec::new();
    for (copy, file) in files.iter().enumerate() {
        damaged.push(damage(file, copy, &mut rng)?);
    }
    cluster.start()?;
    let mut noticed = 0;
    for (copy, what) in damaged.iter().enumerate() {
        noticed += usize::from(work_on(&cluster, copy, subject).with_context(|| what.clone())?);
    }
    let log = fs::read_to_string(cluster.log_file())?;
    ensure!(!log.contains("terminated by signal"), "a backend died");
    ensure!(noticed > 0, "no damage was noticed");
    figure!("{copies} damaged indexes: {noticed} noticed, the others answered as the scan does");
    Ok(Outcome::Passed)
}

/// The offset of a page's kind.
const KIND_AT: usize = 8192 - 8;

/// Flips bits of one page, or empties it, in turn of every kind that is there; says where.
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
    // Rows are added to the last page, which must not be waited for if it is not what it should be.
    if turn / kinds.len() % 4 == 3
        && let Some(&block) = of_kind.last()
    {
        writable.write_all_at(&[0; 8192], block as u64 * 8192)?;
        return Ok(format!("copy {turn}: all of block {block}, kind {wanted}"));
    }
    let block = of_kind[rng.usize(..of_kind.len())];
    // Near the beginning is what leads to other pages.
    let most = [64, 512, 8192][rng.usize(..3)];
    let mut changed = pages[block].to_vec();
    let mut places = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..most);
        changed[at] ^= rng.u8(1..);
        places.push(at);
    }
    writable.write_all_at(&changed, block as u64 * 8192)?;
    Ok(format!(
        "copy {turn}: bytes {places:?} of block {block}, kind {wanted}"
    ))
}

/// Returns whether the damage was noticed; fails where it is neither noticed nor harmless.
fn work_on(cluster: &Cluster, copy: usize, subject: &Subject) -> Result<bool> {
    let mut client = cluster.connect("postgres")?;
    // As on a server without page checksums.
    client.batch_execute("SET ignore_checksum_failure = on; SET client_min_messages = error; SET statement_timeout = '10min'")?;
    let (table, index) = (format!("docs_{copy}"), format!("index_{copy}"));
    let mut noticed = false;
    let check = format!("SELECT near_dup_index_check('{index}')");
    let is_sound = !is_refused(client.batch_execute(&check)).context("check")?;
    noticed |= !is_sound;
    for condition in subject.conditions {
        match wrong_answers(&mut client, &table, condition) {
            Ok(wrong) => ensure!(wrong == 0 || !is_sound, "{wrong} wrong answers"),
            Err(error) => noticed |= is_refused(Err(error)).context("lookups")?,
        }
    }
    for statement in ON_DAMAGED {
        let statement = statement.replace("TABLE", &table).replace("INDEX", &index);
        let condition = subject.conditions[copy % subject.conditions.len()];
        let statement = statement.replace("CONDITION", condition);
        let outcome = client.batch_execute(&statement);
        noticed |= is_refused(outcome).with_context(|| statement.clone())?;
    }
    client.batch_execute(&format!("REINDEX INDEX {index}"))?;
    client.batch_execute(&check)?;
    for condition in subject.conditions {
        let wrong = wrong_answers(&mut client, &table, condition)?;
        ensure!(wrong == 0, "{wrong} wrong answers after REINDEX");
    }
    Ok(noticed)
}

/// Returns whether a statement ended because data are damaged, or of another version; fails at any other error.
fn is_refused(outcome: Result<(), postgres::Error>) -> Result<bool> {
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
