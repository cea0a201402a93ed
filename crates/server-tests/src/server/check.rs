//! `near_dup_index_check` finds every damage, and names the page or the row.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use neardup::postings::{Leaf, LeafBuilder, Posting};
use postgres::Client;
use testbed::server::Server;

use crate::harness::Outcome;

/// Tables of sets and of documents, whose indexes have pages of every kind: segments of rows that were there
/// before, a log of later ones.
const TABLES: [&str; 2] = [
    "CREATE TABLE COPY AS SELECT array(SELECT hashint8extended(e, i) FROM generate_series(1, 8 + i % 7) e) AS v
         FROM generate_series(1, 1200) i;
     CREATE INDEX COPY_v ON COPY USING neardup (v);
     INSERT INTO COPY SELECT v FROM COPY LIMIT 600",
    "CREATE TABLE COPY AS SELECT (SELECT string_agg(md5(i || ' ' || e), ' ') FROM generate_series(1, 12) e) AS v
         FROM generate_series(1, 300) i;
     CREATE INDEX COPY_v ON COPY USING neardup (v text_ops (threshold = 0.8));
     INSERT INTO COPY SELECT v FROM COPY LIMIT 100",
];

const PAGE: usize = 8192;
const PAYLOAD_AT: usize = 24;
const SPECIAL_AT: usize = PAGE - 16;
const LOWER_AT: usize = 12;

/// Numbers of the kinds of pages.
const LOG: u16 = 2;
const ROWS: u16 = 4;
const LEAF: u16 = 7;
const ALL_IN_USE: [u16; 8] = [1, LOG, 3, ROWS, 5, 6, LEAF, 8];

#[derive(Debug, Clone, Copy)]
enum Damage {
    /// A page of a kind is all zeros.
    Zeroed(u16),
    /// A segment lacks a posting, has another key for it, or another row.
    Removed,
    Changed,
    Moved,
    /// A row of the log has another key.
    ChangedInLog,
    /// The row table lacks a row, has it elsewhere, or says another number of keys.
    Blank,
    Swapped,
    Miscounted,
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

    /// Returns the block of the first page of a kind.
    fn first(&self, kind: u16) -> Result<usize> {
        let is_of_kind = |page: &Vec<u8>| page[PAGE - 8..PAGE - 6] == kind.to_le_bytes();
        let found = self.0.iter().position(is_of_kind);
        found.with_context(|| format!("no page of kind {kind}"))
    }

    /// Returns where the row table has one of its first rows.
    fn entry(&mut self, row: usize) -> Result<&mut [u8]> {
        let page = self.first(ROWS)?;
        let at = PAYLOAD_AT + 8 * row;
        Ok(&mut self.0[page][at..at + 8])
    }

    /// Returns the place of a row in the table.
    fn ctid(&mut self, row: usize) -> Result<String> {
        let entry = self.entry(row)?;
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let block = u32::from(half(0)) << 16 | u32::from(half(2));
        Ok(format!("({block},{})", half(4)))
    }

    /// Writes the postings of a leaf anew, all but what `change` does; returns the row of the changed one.
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

    /// Does some damage; returns what the error has to name.
    fn damage(&mut self, damage: Damage) -> Result<String> {
        const PLACE: usize = 40;
        let different = |ctid: String| format!("other keys in the index, at {ctid}");
        Ok(match damage {
            Damage::Zeroed(kind) => {
                let block = self.first(kind)?;
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
                // Named are both rows, the lesser first.
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
                "other keys in the index, at (".to_owned()
            }
            Damage::Blank => {
                let ctid = self.ctid(PLACE)?;
                self.entry(PLACE)?[4..6].fill(0);
                format!("the row at {ctid} of the table is not in the index")
            }
            Damage::Swapped => {
                // Both have as many keys.
                let other = PLACE + 7;
                let (first, second) = (self.entry(PLACE)?.to_vec(), self.entry(other)?.to_vec());
                self.entry(PLACE)?[..6].copy_from_slice(&second[..6]);
                self.entry(other)?[..6].copy_from_slice(&first[..6]);
                let places = format!("{}, {}", self.ctid(PLACE)?, self.ctid(other)?);
                different(places)
            }
            Damage::Miscounted => {
                let ctid = self.ctid(PLACE)?;
                self.entry(PLACE)?[6] ^= 1;
                format!("the row at {ctid} of the table has not ")
            }
        })
    }
}

/// Damages copies of an index, each in one way, of sets and of documents.
pub fn names_damage(server: &Server) -> Result<Outcome> {
    let single = [
        Damage::Removed,
        Damage::Changed,
        Damage::Moved,
        Damage::ChangedInLog,
        Damage::Blank,
        Damage::Swapped,
        Damage::Miscounted,
    ];
    let kinds = ALL_IN_USE.map(Damage::Zeroed).into_iter().chain(single);
    let damages: Vec<(usize, Damage)> = kinds
        .flat_map(|damage| [(0, damage), (1, damage)])
        .collect();
    let cluster = server.scratch_cluster("check")?;
    cluster.create(&[("autovacuum", "off")])?;
    cluster.start()?;
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
    for (copy, (expected, damage)) in named.iter().zip(&damages).enumerate() {
        let check = format!("SELECT near_dup_index_check('c{copy}_v')");
        let error = client.batch_execute(&check).err();
        let error = error.with_context(|| format!("{damage:?} is not found"))?;
        let error = error.as_db_error().context("no error of the server")?;
        ensure!(
            error.message().contains(expected),
            "{damage:?}: {:?} is not named in {:?}",
            expected,
            error.message()
        );
    }
    Ok(Outcome::Passed)
}

/// The share of the index's WAL of inserts that a VACUUM behind them writes, while a table grows fivefold.
pub fn vacuum_writes_little(server: &Server) -> Result<Outcome> {
    const MOST_TIMES: f64 = 5.0;
    let cluster = server.scratch_cluster("wal")?;
    cluster.create(&[("autovacuum", "off"), ("full_page_writes", "off")])?;
    cluster.start()?;
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
