//! Values near the maximum size in PostgreSQL.

use anyhow::{Result, bail, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

/// Functions of one document; DOC is nearly the largest possible document.
const OF_TEXT: &[&str] = &[
    "minhash(DOC)",
    "minhash(DOC, 5, 'char', 'marks')",
    "minhash(DOC, 2, 'stop', 'none', 1024, 7)",
    "cardinality(shingles(DOC))",
    "cardinality(shingles(DOC, 256, 'char'))",
    "cardinality(shingle_hashes(DOC))",
    "cardinality(shingle_hashes(ARRAY[DOC]))",
    "cardinality(winnow(DOC, 3, 100))",
    "simhash(DOC)",
    "simhash(DOC, 3, 'char', 'case', 4096, 'tf')",
    "resemblance(DOC, 'a short text')",
    "containment('a short text', DOC)",
    "jaccard(ARRAY[DOC], ARRAY[DOC])",
    "minhash(ARRAY[DOC, 'a'])",
    "simhash(ARRAY[DOC], ARRAY[1.0::float8])",
    "minhash(to_tsvector('simple', left(DOC, 1000000)))",
    "(SELECT minhash_agg(d) FROM (VALUES (DOC)) v (d))",
    "(SELECT simhash_agg(d, 1) FROM (VALUES (DOC)) v (d))",
    "(SELECT count(*) FROM common_chunks(DOC, 'a short text'))",
    "chunk_similarity('a short text', DOC)",
    "longest_common_substring(DOC, 'a short text')",
    "longest_common_substring(left(DOC, length(DOC) / 2), DOC)",
    "edit_distance(DOC, 'a short text')",
    "edit_distance(DOC, 'x' || substr(DOC, 100), max => 1000)",
    "near_dup_explain(DOC, 'a short text')",
    "(SELECT count(*) FROM copied_passages(NULL::int, 'SELECT 1, doc FROM giant', 50))",
    "(SELECT count(*) FROM frequent_passages('SELECT doc FROM giant', 50))",
    "(SELECT count(*) FROM split_text(DOC, 'sentence'))",
    "(SELECT count(*) FROM split_text(DOC, 'paragraph'))",
    "cut_passages(DOC, '{[2,10), [900,1000000)}', 'replacement')",
    "DOC::bytea::minhash_signature",
    "DOC::minhash_signature",
    "near_dup(DOC, 'a short text')",
    "near_contained(shingle_hashes(DOC), shingle_hashes('a short text'), 0.5)",
    "length(_ball(shingle_hashes(DOC), 1)::text)",
    "(SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT 1, doc FROM giant', 1, measure => 'containment'))",
    "(SELECT count(*) FROM common_shingles('SELECT doc FROM giant', 2))",
    "minhash('text', 3, DOC)",
    "(SELECT count(*) FROM near_dup_pairs(NULL::int, DOC, 0.5))",
    "minhash(DOC, ARRAY[1::bigint])",
];

/// Documents of SIZE bytes.
const DOCUMENTS: &[(&str, &str)] = &[
    ("one word", "repeat('a', SIZE)"),
    ("one-letter words", "repeat('a ', SIZE / 2)"),
    ("words", "repeat('the cat sat on a mat. ', SIZE / 22)"),
    ("marks", "repeat(U&'\\0301', SIZE / 2)"),
    ("ideographs", "repeat('我爱', SIZE / 6)"),
    ("ligatures", "repeat(U&'\\FDFA', SIZE / 3)"),
];

/// Functions of arrays and bit strings of SIZE bytes.
const OTHERS: &[&str] = &[
    "jaccard(array_fill(1::bigint, ARRAY[SIZE / 8]), ARRAY[1::bigint])",
    "minhash(array_fill(1::bigint, ARRAY[SIZE / 8]))",
    "shingle_sample(array_fill(1::bigint, ARRAY[SIZE / 8]), 3)",
    "bucket_sketch(array_fill(1::bigint, ARRAY[SIZE / 8]), 2147483647)",
    "cardinality(supershingles(array_fill(1::bigint, ARRAY[SIZE / 8]), 2147483647))",
    "minhash_import(array_fill(1::bigint, ARRAY[SIZE / 8]))",
    "minhash(array_fill(NULL::bigint, ARRAY[SIZE / 8]))",
    "jaccard(array_fill('a'::text, ARRAY[SIZE / 8]), ARRAY['a'])",
    "minhash(array_fill('a'::text, ARRAY[SIZE / 8]))",
    "bit_hamming(repeat('1', SIZE / 16)::varbit::bit(80000000), repeat('0', SIZE / 16)::varbit::bit(80000000))",
    "cardinality(hamming_bands(repeat('1', SIZE / 16)::varbit::bit(80000000), 3))",
];

/// Checks that each call succeeds, is rejected with a clear error, or is ended by the timeout.
pub fn answered_or_rejected(server: &Server, scale: Scale) -> Result<Outcome> {
    // The larger size is about the maximum that lz4 compresses within one allocation.
    let size = scale.of("3000000", "1069000000");
    let timeout = scale.of("100ms", "1s");
    let database = Database::with_extension(&server.main, "giants")?;
    let mut client = database.connect()?;
    // Uses the faster compression, if the server has it: most of the time is spent on the documents.
    client.batch_execute(&format!(
        "SELECT set_config(name, 'lz4', false) FROM pg_settings
         WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);
         SET statement_timeout = '{timeout}'"
    ))?;
    let mut counts = Counts::default();
    for (_, document) in DOCUMENTS {
        let document = document.replace("SIZE", size);
        // The document is made only once; the timeout is for the function.
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS giant; SET statement_timeout = 0;
             CREATE TABLE giant AS SELECT {document} AS doc;
             SET statement_timeout = '{timeout}'"
        ))?;
        for function in OF_TEXT {
            let call = format!("SELECT {} FROM giant", function.replace("DOC", "doc"));
            counts.count(&mut client, &call)?;
        }
    }
    for function in OTHERS {
        counts.count(
            &mut client,
            &format!("SELECT {}", function.replace("SIZE", size)),
        )?;
    }
    figure!(
        "values of {size} bytes: {} answered, {} rejected, {} canceled, 0 crashes",
        counts.answered,
        counts.rejected,
        counts.canceled
    );
    Ok(Outcome::Passed)
}

/// Maximum length of a message, because messages do not quote giant values.
const LONGEST_MESSAGE: usize = 1000;

#[derive(Default)]
struct Counts {
    answered: u32,
    rejected: u32,
    canceled: u32,
}

impl Counts {
    fn count(&mut self, client: &mut Client, call: &str) -> Result<()> {
        match client.simple_query(call) {
            Ok(_) => self.answered += 1,
            Err(error) => match error.code().map(|code| code.code()) {
                Some("57014") => self.canceled += 1,
                None | Some("XX000") => bail!("{call}\n{error:?}"),
                Some("42883" | "42725") => bail!("no such call: {call}\n{error:?}"),
                // The server's own message, which quotes the input that it could not parse.
                Some("42601") => self.rejected += 1,
                Some(_) => {
                    let length = error.as_db_error().map_or(0, |error| error.message().len());
                    ensure!(
                        length < LONGEST_MESSAGE,
                        "{call}: a message of {length} bytes"
                    );
                    self.rejected += 1;
                }
            },
        }
        Ok(())
    }
}
