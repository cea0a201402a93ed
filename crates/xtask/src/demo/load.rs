//! Loading the documents: the table, its generated signatures, its B-tree of band keys.

use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use postgres::Client;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use testbed::documents::source::{LeftOut, Source};

/// The whole set-up that a table of documents needs.
const TABLES: &str = "
    CREATE EXTENSION pg_neardup;
    CREATE TABLE documents (
        id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        body text NOT NULL,
        sig  minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED
    );
    CREATE TABLE document_bands (id bigint NOT NULL, band bigint NOT NULL);";

/// Fills the band table once the documents are there.
const BANDS: &str = "
    INSERT INTO document_bands SELECT id, unnest(minhash_bands(sig, 0.8)) FROM documents;
    CREATE INDEX ON document_bands (band, id);
    ANALYZE;";

/// What was loaded, and how long it took.
pub struct Loaded {
    pub documents: u64,
    pub bytes: u64,
    pub left_out: LeftOut,
    /// Reading, copying and signing.
    pub time: Duration,
    /// The band table and its index.
    pub index_time: Duration,
}

/// Creates the tables and fills them.
pub fn load(client: &mut Client, source: &Source) -> Result<Loaded> {
    client.batch_execute(TABLES)?;
    let start = Instant::now();
    let progress = ProgressBar::new(source.size()).with_style(ProgressStyle::with_template(
        "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    )?);
    let copy = client.copy_in("COPY documents (name, body) FROM STDIN BINARY")?;
    let mut writer = BinaryCopyInWriter::new(copy, &[Type::TEXT, Type::TEXT]);
    let mut bytes = 0;
    let left_out = source.read(&mut |name, body| {
        writer.write(&[&name, &body])?;
        bytes += body.len() as u64;
        progress.inc(body.len() as u64);
        Ok(())
    })?;
    let documents = writer.finish()?;
    progress.finish_and_clear();
    let time = start.elapsed();
    let start = Instant::now();
    client.batch_execute(BANDS)?;
    let index_time = start.elapsed();
    Ok(Loaded {
        documents,
        bytes,
        left_out,
        time,
        index_time,
    })
}
