//! Lookup through the indexes of others, on as many documents as these can handle.

use anyhow::Result;
use testbed::documents::generator::Generator;
use testbed::documents::load_generated;
use testbed::progress::waiting;
use testbed::server::database::Database;

use super::lookup::plan;
use crate::context::Bench;
use crate::measure::latency::{Latency, Lookup, latencies};
use crate::measure::session::Session;
use crate::peers;
use crate::report::table::{Cell, Table, row};

/// A way to look up.
struct Contest {
    how: &'static str,
    index: &'static str,
    /// The number of lookups of each kind; few if they are slow.
    lookups: u32,
    answer: &'static str,
}

const OURS: Contest = Contest {
    how: "neardup",
    index: "neardup (sig)",
    lookups: 200,
    answer: "SELECT count(*) FROM docs WHERE near_dup(sig, (query.q).sig, 0.8)",
};

/// The nearest documents, as many as a graph is asked for.
const NEAREST: Contest = Contest {
    how: "neardup, nearest first",
    index: "neardup (sig)",
    lookups: 200,
    answer: "SELECT count(*) FROM (SELECT sig FROM docs ORDER BY sig <=> (query.q).sig LIMIT query.others + 1) n
             WHERE near_dup(sig, (query.q).sig, 0.8)",
};

/// The truth about the documents, without an index.
const TRUTH: Contest = Contest {
    how: "neardup on text",
    index: "neardup (body)",
    lookups: 200,
    answer: "SELECT count(*) FROM docs WHERE near_dup(body, (query.q).body, 0.8)",
};

/// The truth about the documents, through an index on all of their shingles.
const SETS: Contest = Contest {
    how: "neardup on shingle_hashes",
    index: "neardup (shingle_hashes(body))",
    lookups: 200,
    answer: "SELECT count(*) FROM docs WHERE near_dup(shingle_hashes(body), shingle_hashes((query.q).body), 0.8)",
};

const TRIGRAMS: Contest = Contest {
    how: "pg_trgm `%` at 0.8",
    index: "gin (body gin_trgm_ops)",
    lookups: 20,
    answer: "SELECT count(*) FROM docs WHERE body % (query.q).body",
};

const GRAPH: Contest = Contest {
    how: "pgvector HNSW on 128 bits",
    index: "hnsw (bits bit_hamming_ops)",
    lookups: 200,
    answer: "SELECT count(*) FROM (SELECT sig FROM docs ORDER BY bits <~> (query.q).bits LIMIT query.others + 1) n
             WHERE near_dup(sig, (query.q).sig, 0.8)",
};

/// Contests with the documents that they are measured on.
const CONTESTS: [(u64, &[Contest]); 2] = [
    (10_000, &[OURS, TRUTH, SETS, TRIGRAMS]),
    (100_000, &[OURS, TRUTH, SETS, NEAREST, GRAPH]),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Indexes of others, and ours on the same documents in the same run. The graph, and ours in order, are asked for as many \
                 nearest as the document has near-duplicates, and itself; rows found are those of them at or above 0.8, \
                 at `hnsw.ef_search` 100. Signatures estimate the similarity that `near_dup` on text computes; `%` is one of trigrams.";
    let columns = "how | documents | near-duplicates | lookups | rows found | median, ms | 99 %, ms | built, s | \
         bytes a row";
    let mut table = Table::new("lookup.peers", about, columns);
    let cluster = bench.started_cluster()?;
    for (documents, contests) in CONTESTS {
        let documents = documents.min(bench.scale.documents);
        let database = Database::with_extension(&cluster, "contest")?;
        let session = Session::open(&database)?;
        peers::create_extensions(&mut session.client())?;
        let generator = Generator::new(bench.words, plan(documents));
        load_generated(&mut session.client(), "docs", &generator)?;
        for contest in contests {
            let progress = waiting(contest.how)?;
            let measured = contest.measure(&session, documents);
            progress.finish_and_clear();
            match measured {
                Ok(rows) => rows.into_iter().for_each(|row| table.push(row)),
                Err(error) => println!("Skipping {}: {error:#}", contest.how),
            }
        }
    }
    Ok(vec![table])
}

impl Contest {
    fn measure(&self, session: &Session, documents: u64) -> Result<Vec<Vec<Cell>>> {
        session.execute(
            "ALTER TABLE docs ADD COLUMN IF NOT EXISTS sig minhash_signature;
             ALTER TABLE docs ADD COLUMN IF NOT EXISTS bits bit(128);
             UPDATE docs SET sig = minhash(body), bits = (minhash_describe(minhash_pack(minhash(body), 1))).bits::bit(128) WHERE sig IS NULL;
             DROP INDEX IF EXISTS measured;
             SET pg_trgm.similarity_threshold = 0.8; SET enable_seqscan = off",
        )?;
        session.vacuum("docs")?;
        let built = session.seconds(&format!(
            "CREATE INDEX measured ON docs USING {}",
            self.index
        ))?;
        let bytes = session.number("SELECT pg_relation_size('measured')")? / documents as f64;
        // A list of ef_search candidates cannot hold a thousand near-duplicates.
        session.execute("SET hnsw.ef_search = 100")?;
        let queries = format!(
            "SELECT others, q FROM (
                 SELECT others, d AS q, row_number() OVER (PARTITION BY others ORDER BY hashint8(id)) AS nth
                 FROM docs d WHERE others < 100) q WHERE nth <= {}",
            self.lookups
        );
        let lookup = Lookup {
            queries: &queries,
            answer: self.answer,
        };
        latencies(session, &lookup)?;
        let row = |group: Latency| {
            let mut row = group.row(self.how);
            row.insert(1, (documents as f64).into());
            row.extend(row![built, bytes]);
            row
        };
        Ok(latencies(session, &lookup)?.into_iter().map(row).collect())
    }
}
