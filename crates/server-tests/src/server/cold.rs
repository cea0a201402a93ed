//! The pages that an index reads when it does not fit into memory, and how often it waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::cluster::Cluster;
use testbed::server::slow_storage::{Read, SlowStorage};
use testbed::server::{ScratchCluster, Server};

use crate::harness::{Outcome, figure};

/// The number of rows of a bulk load and the number of rows inserted after it: each document occurs twice, far apart.
const LOADED: u32 = 40_000;
const INSERTED: u32 = 12_000;

const TABLE: &str = "
    CREATE EXTENSION pg_neardup;
    CREATE FUNCTION body(i int) RETURNS text LANGUAGE sql AS $$
        SELECT string_agg(hashint4extended(w, i % 26000)::text, ' ') || ' ' || i FROM generate_series(1, 30) w $$;
    CREATE TABLE sigs (id int, sig minhash_signature)";

/// The number of keys of a row, b, and the number of keys that a match shares, T.
const KEYS: usize = 30;
const NEEDED: usize = 5;

/// A server whose memory has none of the table's pages after a restart.
struct Cold {
    cluster: ScratchCluster,
    storage: SlowStorage,
}

impl Cold {
    fn create(server: &Server, name: &str) -> Result<Cold> {
        let mut cluster = server.scratch_cluster(name)?;
        cluster.create(&[("autovacuum", "off")])?;
        let storage = SlowStorage::under(&mut cluster)?;
        cluster.start()?;
        let mut client = cluster.connect("postgres")?;
        client.batch_execute(TABLE)?;
        client.batch_execute(&format!(
            "INSERT INTO sigs SELECT i, minhash(body(i)) FROM generate_series(1, {LOADED}) i;
             CREATE INDEX sigs_sig ON sigs USING neardup (sig)"
        ))?;
        Ok(Cold { cluster, storage })
    }

    fn restart(&self) -> Result<Client> {
        self.cluster.stop()?;
        self.cluster.start()?;
        self.cluster.connect("postgres")
    }

    /// Returns the pages that a statement reads, and how many times it waits.
    fn reads_of(&self, client: &mut Client, statement: &str) -> Result<(Vec<Read>, u64)> {
        let process = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let before = self.storage.reads(process)?;
        client.batch_execute(statement)?;
        let mut reads = self.storage.reads(process)?;
        let reads = reads.split_off(before.len());
        let waits = |reads: &[Read]| reads.last().map_or(0, |read| read.waits);
        let waits = waits(&reads).saturating_sub(waits(&before));
        Ok((reads, waits))
    }
}

/// The pages of the index on disk, by their kinds and segments.
struct Pages {
    file: String,
    bytes: Vec<u8>,
}

const LEAF: u16 = 7;

impl Pages {
    fn read(cluster: &Cluster, client: &mut Client) -> Result<Pages> {
        client.batch_execute("CHECKPOINT")?;
        let query = "SELECT pg_relation_filepath('sigs_sig')";
        let file: String = client.query_one(query, &[])?.get(0);
        let bytes = fs::read(cluster.data_dir().join(&file))?;
        Ok(Pages { file, bytes })
    }

    /// Returns the kind of a page that was read, and its segment's number. Returns None for other relations.
    fn of(&self, read: &Read) -> Option<(u16, u64)> {
        let end = (read.block as usize + 1) * 8192;
        let special = self
            .bytes
            .get(end - 16..end)
            .filter(|_| read.file == self.file)?;
        let (number, rest) = special.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        Some((u16::from_le_bytes(*kind), u64::from_le_bytes(*number)))
    }

    /// Returns the number of leaves of every segment.
    fn segments(&self) -> BTreeMap<u64, usize> {
        let mut leaves = BTreeMap::new();
        for block in 0..self.bytes.len() as u64 / 8192 {
            let file = self.file.clone();
            if let Some((LEAF, segment)) = self.of(&Read {
                file,
                block,
                waits: 0,
            }) {
                *leaves.entry(segment).or_default() += 1;
            }
        }
        leaves
    }
}

/// Checks a lookup in an index after a bulk load and inserts when only the directories are in memory: it waits for
/// leaves, for rows and for the table, and reads at most the number of pages that follows from the keys, including
/// pages of the row table.
pub fn lookups(server: &Server) -> Result<Outcome> {
    let cold = Cold::create(server, "cold_lookups")?;
    let mut client = cold.cluster.connect("postgres")?;
    for part in 0..12 {
        let (from, to) = (
            LOADED + part * INSERTED / 12 + 1,
            LOADED + (part + 1) * INSERTED / 12,
        );
        client.batch_execute(&format!(
            "INSERT INTO sigs SELECT i, minhash(body(i)) FROM generate_series({from}, {to}) i"
        ))?;
    }
    client.batch_execute("VACUUM ANALYZE sigs")?;
    let pages = Pages::read(&cold.cluster, &mut client)?;
    let segments = pages.segments();
    let (largest, _) = segments
        .iter()
        .max_by_key(|(_, leaves)| **leaves)
        .context("no leaves")?;
    let query = "SELECT format('EXECUTE lookup (%L)', sig) FROM sigs WHERE id % 2500 = 17";
    let lookups = client.query(query, &[])?;
    let lookups: Vec<String> = lookups.iter().map(|row| row.get(0)).collect();
    let mut client = cold.restart()?;
    client.batch_execute(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan;
         PREPARE lookup (minhash_signature) AS SELECT id FROM sigs WHERE near_dup(sig, $1, 0.8)",
    )?;
    let (warm, measured) = lookups.split_at(5);
    let (unasked, measured) = measured.split_last().context("no lookups")?;
    client.batch_execute(&warm.join(";"))?;
    let most = KEYS - NEEDED + 5;
    let mut all = 0;
    for lookup in measured {
        let (reads, waits) = cold.reads_of(&mut client, lookup)?;
        let leaves = |is_largest: bool| {
            let of = |read: &&Read| matches!(pages.of(read), Some((LEAF, segment)) if (segment == *largest) == is_largest);
            reads.iter().filter(of).count()
        };
        figure!(
            "{waits} waits, {} reads, {} and {} leaves",
            reads.len(),
            leaves(true),
            leaves(false)
        );
        ensure!(waits <= 4, "{waits} waits for {} pages", reads.len());
        ensure!(
            leaves(true) <= most,
            "{} leaves of the largest segment",
            leaves(true)
        );
        ensure!(
            leaves(false) <= most,
            "{} leaves of {segments:?}",
            leaves(false)
        );
        let of_index = reads.iter().filter(|read| pages.of(read).is_some()).count();
        ensure!(
            of_index <= 2 * most,
            "{of_index} pages of the index, with those of rows"
        );
        all += waits;
    }
    let mean = all as f64 / measured.len() as f64;
    ensure!(mean <= 3.0, "{mean} waits a lookup");
    client.batch_execute("SET effective_io_concurrency = 0")?;
    let (reads, waits) = cold.reads_of(&mut client, unasked)?;
    ensure!(
        waits as usize == reads.len(),
        "{waits} waits for {} pages that nothing asks for",
        reads.len()
    );
    Ok(Outcome::Passed)
}

/// Checks that inserts into an index that is not in memory read its last pages, and the leaves that they merge, each
/// only once.
pub fn inserts(server: &Server) -> Result<Outcome> {
    let cold = Cold::create(server, "cold_inserts")?;
    let mut client = cold.restart()?;
    let pages = Pages::read(&cold.cluster, &mut client)?;
    let (mut others, mut leaves, mut seen) = (0, 0, BTreeSet::new());
    for i in LOADED + 1..=LOADED + INSERTED {
        let insert = format!("INSERT INTO sigs VALUES ({i}, minhash(body({i})))");
        let (reads, _) = cold.reads_of(&mut client, &insert)?;
        for read in reads.iter().filter(|read| read.file == pages.file) {
            match pages.of(read) {
                Some((LEAF, _)) => leaves += 1,
                _ => others += 1,
            }
            ensure!(
                seen.insert(read.block),
                "block {} is read twice",
                read.block
            );
        }
    }
    figure!("{others} pages and {leaves} leaves read by {INSERTED} inserts");
    ensure!(others <= 20, "{others} pages read that are no leaves");
    Ok(Outcome::Passed)
}
