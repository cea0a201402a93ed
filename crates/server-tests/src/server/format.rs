//! The pages of an index keep their layout: an index built by an earlier build stays valid.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use neardup::shingle::Key;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;

use crate::harness::Outcome;

/// An index with pages of every kind in use, some of them freed by VACUUM, and an index on sampled texts.
const INDEXES: &str = "
    CREATE EXTENSION pg_neardup;
    CREATE TABLE used AS SELECT array(SELECT hashint8extended(e, i) FROM generate_series(1, 8 + i % 7) e) AS v
        FROM generate_series(1, 1200) i;
    CREATE INDEX used_v ON used USING neardup (v);
    INSERT INTO used SELECT v FROM used LIMIT 600;
    CREATE TABLE freed AS TABLE used;
    CREATE INDEX freed_v ON freed USING neardup (v);
    CREATE TABLE texts AS SELECT string_agg('word' || w, ' ' ORDER BY w) AS body
        FROM unnest('{1, 60, 100, 700}'::int[]) words, generate_series(1, words) w GROUP BY words ORDER BY words;
    CREATE INDEX texts_body ON texts USING neardup (body text_ops (keys = 64));
    INSERT INTO texts TABLE texts;
    INSERT INTO freed TABLE used;
    DELETE FROM freed WHERE ctid < '(10,1)'";

/// The first page of each kind, and the pages of the texts' rows and keys: the index, the block, the kind, the number,
/// the bytes of the payload, and a digest of the payload and the special space.
const PAGES: &str = "
used_v 0 1 0 7552 d0374a2b220d75fa
used_v 1 6 0 4 72fb7e77233b635c
used_v 2 5 0 12 f8e105f30acd4782
used_v 3 4 0 8150 c3ab7b43a5a08d45
used_v 5 7 1 8149 df39c211b09f7405
used_v 7 8 1 88 1c65caabf333299c
used_v 13 2 1200 8134 952c7a4809eaa44c
used_v 17 3 1730 3224 2843a21859034c48
freed_v 8 9 0 0 dcab86f9212a644d
texts_body 3 4 0 80 48d88b82147dc132
texts_body 5 3 4 624 871f57a8aef45182
";

const TAIL: u8 = 3;
const ROWS: u8 = 4;

const PAGE: usize = 8192;
const LOWER_AT: usize = 12;
const PAYLOAD_AT: usize = 24;
const SPECIAL_AT: usize = PAGE - 16;

/// Builds indexes that do not depend on chance, and compares the first page of each kind with its recorded digest.
pub fn pages_are_as_they_were(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("format", &[])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(INDEXES)?;
    client.batch_execute("VACUUM freed")?;
    let mut files = Vec::new();
    for index in ["used_v", "freed_v", "texts_body"] {
        let path = format!("SELECT pg_relation_filepath('{index}')");
        let path: String = client.query_one(&path, &[])?.get(0);
        files.push((index, cluster.data_dir().join(path)));
    }
    drop(client);
    cluster.stop()?;
    let mut found = String::from("\n");
    let mut kinds = Vec::new();
    for (index, file) in files {
        for (block, page) in fs::read(file)?.chunks_exact(PAGE).enumerate() {
            let kind = page[PAGE - 8];
            let is_of_texts = index == "texts_body" && [TAIL, ROWS].contains(&kind);
            if kinds.contains(&kind) && !is_of_texts {
                continue;
            }
            kinds.push(kind);
            let number = u64::from_le_bytes(page[SPECIAL_AT..SPECIAL_AT + 8].try_into()?);
            let end = usize::from(u16::from_le_bytes([page[LOWER_AT], page[LOWER_AT + 1]]));
            let content = [&page[PAYLOAD_AT..end], &page[SPECIAL_AT..]].concat();
            let digest = Key::from_seed(0).token_hash(&content);
            let length = end - PAYLOAD_AT;
            found += &format!("{index} {block} {kind} {number} {length} {digest:016x}\n");
        }
    }
    ensure!(found == PAGES, "the pages are now {found}");
    Ok(Outcome::Passed)
}

/// The number of rows that the row table's directory can hold: 256 pages refer to 2038 pages each, which refer to 2038
/// pages of 815 rows each.
const NUMBERS: u64 = 256 * 2038 * 2038 * 815;

/// The position of the number of the next row in the metapage of an empty index.
const NEXT_ROW_AT: usize = PAYLOAD_AT + 32;

/// Checks that an index that runs out of row numbers reports it and keeps its rows, and that a new index has numbers
/// again.
pub fn row_numbers_end(server: &Server) -> Result<Outcome> {
    const LEFT: u64 = 5;
    let cluster = server.quiet_cluster("numbers", &[])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION pg_neardup;
         CREATE TABLE docs (body text);
         CREATE INDEX docs_body ON docs USING neardup (body)",
    )?;
    let path = client.query_one("SELECT pg_relation_filepath('docs_body')", &[])?;
    let path = cluster.data_dir().join(path.get::<_, String>(0));
    drop(client);
    cluster.stop()?;
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&(NUMBERS - LEFT).to_ne_bytes(), NEXT_ROW_AT as u64)?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET ignore_checksum_failure = on; SET enable_seqscan = off")?;
    let insert = "INSERT INTO docs VALUES ('the same words in every document')";
    for _ in 0..LEFT {
        client.batch_execute(insert)?;
    }
    for _ in 0..2 {
        let error = client.batch_execute(insert).err();
        let error = error.context("there are more numbers")?;
        let error = error.as_db_error().context("no error of the server")?;
        let is_told = error.code() == &SqlState::PROGRAM_LIMIT_EXCEEDED
            && error.hint().is_some_and(|hint| hint.contains("REINDEX"));
        ensure!(is_told, "{error:?}");
    }
    ensure_found(&mut client, LEFT as i64)?;
    client.batch_execute("REINDEX INDEX CONCURRENTLY docs_body")?;
    client.batch_execute(insert)?;
    ensure_found(&mut client, LEFT as i64 + 1)?;
    Ok(Outcome::Passed)
}

/// Fails unless the index is sound and a lookup finds this number of rows.
fn ensure_found(client: &mut Client, wanted: i64) -> Result<()> {
    client.batch_execute("SELECT near_dup_index_check('docs_body')")?;
    let query =
        "SELECT count(*) FROM docs WHERE near_dup(body, 'The same words, in every document!')";
    let found: i64 = client.query_one(query, &[])?.get(0);
    ensure!(found == wanted, "{found} of {wanted} rows are found");
    Ok(())
}
