//! Loading the documents: the table and its index.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use postgres::Client;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use testbed::documents::source::{LeftOut, Source};
use testbed::progress;

/// Creates everything that a table of documents needs.
const TABLE: &str = "
    CREATE EXTENSION pg_neardup;
    CREATE TABLE documents (
        id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        body text NOT NULL
    )";

/// Builds the index after the documents have been loaded.
const INDEX: &str = "CREATE INDEX documents_body ON documents USING neardup (body);
    ANALYZE documents";

/// The loaded documents, and the time that loading took.
pub struct Loaded {
    pub documents: u64,
    pub bytes: u64,
    pub left_out: LeftOut,
    /// The time for reading and copying.
    pub time: Duration,
    /// The time for building the index.
    pub index_time: Duration,
}

/// Creates the table and fills it.
pub fn load(client: &mut Client, source: &Source) -> Result<Loaded> {
    client.batch_execute(TABLE)?;
    let start = Instant::now();
    let progress = progress::bytes(source.size())?;
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
    if documents == 0 {
        bail!("{source} has no documents{left_out}");
    }
    let time = start.elapsed();
    let start = Instant::now();
    client.batch_execute(INDEX)?;
    let index_time = start.elapsed();
    Ok(Loaded {
        documents,
        bytes,
        left_out,
        time,
        index_time,
    })
}
