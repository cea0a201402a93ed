//! The access method `neardup` compared with GIN over the same keys: builds, inserts, lookups, sizes, the effects of
//! long use, and the longest wait for a single row.

mod build;
mod lookup;
mod write;

use anyhow::Result;
use testbed::documents::generator::Generator;
use testbed::documents::{load, load_generated};
use testbed::progress::waiting;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::session::Session;
use crate::report::table::Table;
use crate::subjects::lookup::plan;

/// A table with an index to be measured.
struct Indexed {
    name: &'static str,
    table: &'static str,
    /// The text after USING, with THRESHOLD in place of the number.
    method: &'static str,
    /// The condition for rows at or above 0.8 of `query.q`.
    condition: &'static str,
}

const GIN: Indexed = Indexed {
    name: "GIN",
    table: "with_gin",
    method: "gin (minhash_bands(sig, THRESHOLD)) WITH (fastupdate = off)",
    condition: "minhash_bands(sig, 0.8) && minhash_probe(query.q, 0.8, 0.8) AND near_dup(sig, query.q, 0.8)",
};

const NEARDUP: Indexed = Indexed {
    name: "neardup",
    table: "with_neardup",
    method: "neardup (sig minhash_ops (threshold = THRESHOLD))",
    condition: "near_dup(sig, query.q, 0.8)",
};

/// The table without an index.
const BARE: &str = "bare";

/// One in `PARTS` documents is inserted later in bulk, and another one in `PARTS` row by row.
const PARTS: u64 = 12;

/// With fewer documents, the figures say nothing about an index.
const LEAST: usize = 1000;

/// Documents of one origin, in separate tables.
struct Collection<'a> {
    origin: &'a str,
    session: Session,
    /// The number of rows of each table before anything is inserted.
    rows: usize,
}

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let mut tables = vec![
        build::table(),
        write::insert_table(),
        lookup::table(),
        write::stall_table(),
        write::churn_table(),
        write::wal_table(),
    ];
    for generated in [true, false] {
        if !generated && bench.texts.bodies.len() < LEAST {
            continue;
        }
        let database = Database::with_extension(&cluster, "index")?;
        let collection = Collection::new(bench, &database, generated)?;
        collection.measure(bench, &mut tables)?;
    }
    Ok(tables)
}

impl<'a> Collection<'a> {
    /// Returns the signatures of generated documents, or of real ones.
    fn new(
        bench: &'a Bench<'_>,
        database: &Database<'_>,
        generated: bool,
    ) -> Result<Collection<'a>> {
        let session = Session::open(database)?;
        if generated {
            let documents = bench.scale.documents * PARTS / (PARTS - 2);
            let generator = Generator::new(bench.words, plan(documents));
            load_generated(&mut session.client(), "texts", &generator)?;
        } else {
            let bodies = bench.texts.bodies.iter().map(String::as_str);
            load(&mut session.client(), "texts", bodies)?;
            session.execute(&format!(
                "ALTER TABLE texts ADD others bigint DEFAULT {}",
                lookup::ANY
            ))?;
        }
        let progress = waiting("signing the documents")?;
        session.execute(&format!(
            "CREATE UNLOGGED TABLE docs AS SELECT id, others, minhash(body) AS sig FROM texts;
             DROP TABLE texts;
             CREATE TABLE {BARE} (LIKE docs);
             CREATE TABLE {gin} AS SELECT * FROM docs WHERE id % {PARTS} > 1;
             CREATE TABLE {neardup} AS SELECT * FROM docs WHERE id % {PARTS} > 1;
             CREATE UNLOGGED TABLE bulk AS SELECT row_number() OVER () - 1 AS n, * FROM docs WHERE id % {PARTS} = 0;
             CREATE UNLOGGED TABLE single AS SELECT row_number() OVER () - 1 AS n, * FROM docs WHERE id % {PARTS} = 1;
             ALTER TABLE bulk ADD PRIMARY KEY (n);
             ALTER TABLE single ADD PRIMARY KEY (n)",
            gin = GIN.table,
            neardup = NEARDUP.table,
        ))?;
        lookup::choose_queries(&session)?;
        session.vacuum("with_gin, with_neardup, bulk, single")?;
        progress.finish_and_clear();
        let origin = match generated {
            true => "generated",
            false => bench.texts.origin.as_str(),
        };
        let rows = session.number("SELECT count(*) FROM with_neardup")? as usize;
        Ok(Collection {
            origin,
            session,
            rows,
        })
    }

    /// Appends the rows of this collection to each of the tables.
    fn measure(&self, bench: &Bench<'_>, tables: &mut [Table]) -> Result<()> {
        let [built, inserted, found, stalls, churned, logged] = tables else {
            unreachable!("a table for each part");
        };
        let rounds = bench.scale.rounds;
        self.build(built)?;
        self.look_up("built", rounds, found)?;
        self.insert(inserted)?;
        self.session.vacuum("with_gin, with_neardup")?;
        self.look_up("inserted into", rounds, found)?;
        self.insert_singly(stalls)?;
        self.insert_boilerplate()?;
        self.session.vacuum("with_gin, with_neardup")?;
        self.look_up("with hot bands", rounds, found)?;
        self.churn(rounds, churned)?;
        self.log(logged)
    }

    /// Returns the bytes of a table's index for each row.
    fn bytes(&self, indexed: &Indexed) -> Result<f64> {
        let table = indexed.table;
        self.session.number(&format!(
            "SELECT pg_indexes_size('{table}')::float8 / greatest(count(*), 1) FROM {table}"
        ))
    }
}
