//! `near_dup_index_check` finds all damage, and names the page or the row.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use neardup::postings::{Leaf, LeafBuilder, Posting};
use postgres::Client;
use testbed::server::Server;

use crate::harness::Outcome;

/// Tables of sets and of documents whose indexes have pages of every kind: segments of the rows that existed before,
/// and a log of later rows. The last has more rows than a megabyte can hold sums for, and several pages of the same
/// kind.
const TABLES: [&str; 3] = [
    "CREATE TABLE COPY AS SELECT array(SELECT hashint8extended(e, i) FROM generate_series(1, 8 + i % 7) e) AS v
         FROM generate_series(1, 1200) i;
     CREATE INDEX COPY_v ON COPY USING neardup (v);
     INSERT INTO COPY SELECT v FROM COPY LIMIT 600",
    "CREATE TABLE COPY AS SELECT (SELECT string_agg(md5(i || ' ' || e), ' ') FROM generate_series(1, 66) e) AS v
         FROM generate_series(1, 300) i;
     CREATE INDEX COPY_v ON COPY USING neardup (v);
     INSERT INTO COPY SELECT v FROM COPY LIMIT 100",
    "CREATE TABLE COPY AS SELECT array[hashint8extended(i, 0), hashint8extended(i, 1)] AS v
         FROM generate_series(1, 40000) i;
     CREATE INDEX COPY_v ON COPY USING neardup (v);
     INSERT INTO COPY SELECT v FROM COPY LIMIT 3000",
];

/// How a check runs: with sums of single rows or of several rows, which a second pass distinguishes; alone, or with
/// helpers.
const WAYS: [&str; 3] = [
    "SET maintenance_work_mem = '64MB'; SET max_parallel_maintenance_workers = 0",
    "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0",
    "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 4",
];

const PAGE: usize = 8192;
const PAYLOAD_AT: usize = 24;
const SPECIAL_AT: usize = PAGE - 16;
const LOWER_AT: usize = 12;

/// The numbers of the kinds of pages.
const LOG: u16 = 2;
const TAIL: u16 = 3;
const ROWS: u16 = 4;
const LEAF: u16 = 7;
const ALL_IN_USE: [u16; 8] = [1, LOG, TAIL, ROWS, 5, 6, LEAF, 8];

/// The positions of the number of free blocks and of these blocks in the metapage.
const FREE_COUNT_AT: usize = PAYLOAD_AT + 48;
const FREE_AT: usize = PAYLOAD_AT + 6016;

/// The number of free blocks for which there is room. The last ones are 0.
const MAX_FREE: u8 = 128;

#[derive(Debug, Clone, Copy)]
enum Damage {
    /// The first page of a kind, or the last one, is all zeros.
    Zeroed(u16),
    ZeroedLast(u16),
    /// A segment lacks a posting, has another key for it, or has another row for it.
    Removed,
    Changed,
    Moved,
    /// A row in the log has another key.
    ChangedInLog,
    /// The row table lacks a row, has it in another place, or has another size for it.
    Blank,
    Swapped,
    Miscounted,
    /// The metapage lists its own block as free, or the page to which rows are appended.
    FreeMetapage,
    FreeTail,
}

/// The file of an index.
struct Pages(Vec<Vec<u8>>);

impl Pages {
    fn read(file: &Path) -> Result<Pages> {
        let bytes = fs::read(file)?;
        Ok(Pages(
            bytes.chunks_exact(PAGE).map(<[u8]>::to_vec).collect(),
        ))
    }

    /// Returns the blocks of a kind.
    fn of_kind(&self, kind: u16) -> Vec<usize> {
        let is_of_kind = |page: &[u8]| page[PAGE - 8..PAGE - 6] == kind.to_le_bytes();
        (0..self.0.len())
            .filter(|&block| is_of_kind(&self.0[block]))
            .collect()
    }

    fn first(&self, kind: u16) -> Result<usize> {
        let found = self.of_kind(kind).first().copied();
        found.with_context(|| format!("no page of kind {kind}"))
    }

    /// Returns the position of a row in the row table.
    fn entry(&mut self, row: usize) -> Result<&mut [u8]> {
        const ENTRY: usize = 10;
        const ON_PAGE: usize = (SPECIAL_AT - PAYLOAD_AT) / ENTRY;
        let place = (row / ON_PAGE).to_le_bytes();
        let mut pages = self.of_kind(ROWS).into_iter();
        let page = pages.find(|&block| self.0[block][SPECIAL_AT..SPECIAL_AT + 8] == place);
        let at = PAYLOAD_AT + ENTRY * (row % ON_PAGE);
        Ok(&mut self.0[page.context("no page of the row")?][at..at + ENTRY])
    }

    /// Returns the position of a row in the table.
    fn ctid(&mut self, row: usize) -> Result<String> {
        let entry = self.entry(row)?;
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let block = u32::from(half(0)) << 16 | u32::from(half(2));
        Ok(format!("({block},{})", half(4)))
    }

    /// Rewrites the postings of a leaf with the modification by `change`. Returns the row of the changed posting.
    fn change_leaf(&mut self, change: impl FnOnce(&mut Vec<Posting>) -> Posting) -> Result<usize> {
        let page = self.first(LEAF)?;
        let page = &mut self.0[page];
        let mut postings: Vec<Posting> = Vec::new();
        let leaf = Leaf::parse(&page[PAYLOAD_AT..SPECIAL_AT])?;
        leaf.visit(Posting::MIN, Posting::MAX, &mut |run| {
            postings.extend(run.iter().map(|number| Posting::from(*number)));
            Ok(true)
        })?;
        let changed = change(&mut postings);
        let mut builder = LeafBuilder::new(SPECIAL_AT - PAYLOAD_AT)?;
        ensure!(
            postings.into_iter().all(|posting| builder.push(posting)),
            "no room"
        );
        let used = builder.finish(&mut page[PAYLOAD_AT..SPECIAL_AT]);
        page[LOWER_AT..LOWER_AT + 2].copy_from_slice(&((PAYLOAD_AT + used) as u16).to_le_bytes());
        Ok(changed.offset as usize)
    }

    /// Causes some damage. Returns the texts that the error must contain.
    fn damage(&mut self, damage: Damage) -> Result<String> {
        const PLACE: usize = 40;
        let different = |ctid: String| format!("different keys in the index, at {ctid}");
        Ok(match damage {
            Damage::Zeroed(kind) | Damage::ZeroedLast(kind) => {
                let blocks = self.of_kind(kind);
                let block = match damage {
                    Damage::Zeroed(_) => blocks.first(),
                    _ => blocks.last(),
                };
                let block = *block.with_context(|| format!("no page of kind {kind}"))?;
                self.0[block].fill(0);
                format!("at block {block}:")
            }
            Damage::Removed => {
                let row = self.change_leaf(|postings| postings.remove(PLACE))?;
                different(self.ctid(row)?)
            }
            Damage::Changed => {
                let row = self.change_leaf(|postings| {
                    postings[PLACE].key = postings[PLACE - 1].key + 1;
                    postings[PLACE]
                })?;
                different(self.ctid(row)?)
            }
            Damage::Moved => {
                // Both rows are named, the lower one first.
                let row = self.change_leaf(|postings| {
                    let before = postings[PLACE];
                    postings[PLACE].offset = if before.offset > 0 {
                        before.offset - 1
                    } else {
                        1
                    };
                    postings[PLACE].min(before)
                })?;
                different(self.ctid(row)?)
            }
            Damage::ChangedInLog => {
                let page = self.first(LOG)?;
                self.0[page][PAYLOAD_AT + 4 + 2] ^= 1;
                "different keys in the index, at (".to_owned()
            }
            Damage::Blank => {
                let ctid = self.ctid(PLACE)?;
                self.entry(PLACE)?[4..6].fill(0);
                format!("the row at {ctid} of the table is not in the index")
            }
            Damage::Swapped => {
                // Both have the same number of keys.
                let other = PLACE + 7;
                let (first, second) = (self.entry(PLACE)?.to_vec(), self.entry(other)?.to_vec());
                self.entry(PLACE)?[..6].copy_from_slice(&second[..6]);
                self.entry(other)?[..6].copy_from_slice(&first[..6]);
                // Sums of several rows name the first of them; sums of single rows name both.
                different(self.ctid(PLACE)?)
            }
            Damage::Miscounted => {
                let ctid = self.ctid(PLACE)?;
                self.entry(PLACE)?[6] ^= 1;
                format!("the row at {ctid} of the table has a different size")
            }
            Damage::FreeMetapage => {
                self.0[0][FREE_COUNT_AT] = MAX_FREE;
                "at block 0:".to_owned()
            }
            Damage::FreeTail => {
                let tail = self.first(TAIL)? as u32;
                self.0[0][FREE_COUNT_AT] = 1;
                self.0[0][FREE_AT..FREE_AT + 4].copy_from_slice(&tail.to_ne_bytes());
                "at block 0:".to_owned()
            }
        })
    }
}

/// Damages copies of an index of sets and of an index of documents, each in one way. Checks that every kind of check
/// names the same place.
pub fn names_damage(server: &Server) -> Result<Outcome> {
    let single = [
        Damage::Removed,
        Damage::Changed,
        Damage::Moved,
        Damage::ChangedInLog,
        Damage::Blank,
        Damage::Swapped,
        Damage::Miscounted,
        Damage::FreeMetapage,
        Damage::FreeTail,
    ];
    let first = ALL_IN_USE.map(Damage::Zeroed).into_iter().chain(single);
    let last = ALL_IN_USE.map(Damage::ZeroedLast).into_iter().chain(single);
    let few = first.flat_map(|damage| [(0, damage), (1, damage)]);
    let damages: Vec<(usize, Damage)> = few.chain(last.map(|damage| (2, damage))).collect();
    let cluster = server.quiet_cluster("check", &[])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    let mut files = Vec::new();
    for (copy, (table, _)) in damages.iter().enumerate() {
        client.batch_execute(&TABLES[*table].replace("COPY", &format!("c{copy}")))?;
        let path = format!("SELECT pg_relation_filepath('c{copy}_v')");
        let path: String = client.query_one(&path, &[])?.get(0);
        files.push(cluster.data_dir().join(path));
    }
    drop(client);
    cluster.stop()?;
    let mut named = Vec::new();
    for (file, (_, damage)) in files.iter().zip(&damages) {
        let mut pages = Pages::read(file)?;
        let expected = pages
            .damage(*damage)
            .with_context(|| format!("{damage:?}"))?;
        let writable = OpenOptions::new().write(true).open(file)?;
        writable.write_all_at(&pages.0.concat(), 0)?;
        named.push(expected);
    }
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET ignore_checksum_failure = on; SET client_min_messages = error")?;
    for way in WAYS {
        client.batch_execute(way)?;
        for (copy, (expected, damage)) in named.iter().zip(&damages).enumerate() {
            ensure_named(&mut client, copy, expected)
                .with_context(|| format!("{damage:?} of copy {copy}, {way}"))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Fails unless the check of a copy's index ends with an error that names a place.
fn ensure_named(client: &mut Client, copy: usize, place: &str) -> Result<()> {
    let check = format!("SELECT near_dup_index_check('c{copy}_v')");
    let error = client.batch_execute(&check).err();
    let error = error.context("not found")?;
    let error = error.as_db_error().context("no error of the server")?;
    let message = error.message();
    ensure!(
        message.contains(place),
        "{place:?} is not named in {message:?}"
    );
    Ok(())
}

/// Checks that, while a table grows fivefold, its VACUUMs write at most five times as much WAL as the new rows take in
/// the index.
pub fn vacuum_writes_little(server: &Server) -> Result<Outcome> {
    const MOST_TIMES: f64 = 5.0;
    let cluster = server.quiet_cluster("wal", &[("full_page_writes", "off")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION pg_neardup;
         CREATE TABLE pool AS SELECT i, array(SELECT hashint8extended(e, i) FROM generate_series(1, 30) e) AS v
             FROM generate_series(1, 60000) i;
         CREATE TABLE sets AS SELECT v FROM pool WHERE i <= 12000;
         CREATE INDEX sets_v ON sets USING neardup (v)",
    )?;
    client.batch_execute("VACUUM sets")?;
    let position = |client: &mut Client| -> Result<f64> {
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        Ok(client.query_one(position, &[])?.get(0))
    };
    let (mut rows, mut brought, mut vacuumed) = (12_000, 0.0, 0.0);
    while rows < 60_000 {
        let more = rows / 20;
        let insert = format!(
            "INSERT INTO sets SELECT v FROM pool WHERE i > {rows} AND i <= {}",
            rows + more
        );
        let bytes = "SELECT pg_relation_size('sets_v') / count(*)::float8 FROM sets";
        let row: f64 = client.query_one(bytes, &[])?.get(0);
        client.batch_execute(&insert)?;
        brought += row * f64::from(more);
        let before = position(&mut client)?;
        client.batch_execute("VACUUM sets")?;
        vacuumed += position(&mut client)? - before;
        rows += more;
    }
    let times = vacuumed / brought;
    ensure!(
        times <= MOST_TIMES,
        "VACUUM writes {times:.1} times what inserts bring"
    );
    client.batch_execute("SELECT near_dup_index_check('sets_v')")?;
    Ok(Outcome::Passed)
}
