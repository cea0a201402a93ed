//! `near_dup_advise`: the cost and the answers of an index of a table's signatures, estimated.

use crate::minhash::datum::{StoredSignature, shingling};
use crate::options;
use crate::pg::call::Call;
use crate::pg::catalog::type_named;
use crate::pg::error::{OrRaise, check_interrupts, invalid, wrong_type};
use crate::pg::names;
use crate::pg::progress::Progress;
use crate::pg::query::Query;
use crate::pg::text::Text;
use neardup::bands::advise::{Sample, bytes_per_row};
use neardup::bands::recall::{DrawnPairs, DrawnShares, recall};
use neardup::bands::{Bands, band_hashes, relax};
use neardup::candidates::for_each_pair;
use neardup::memory::{Grow, collected, copied, filled};
use neardup::minhash::{Header, Signature};
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::prelude::*;

const SAMPLE_ROWS: std::ops::RangeInclusive<i32> = 2..=50_000;

/// Pairs of documents whose shingle sets are compared, at most.
const EXACT_PAIRS: usize = 50_000;

/// Share of the true pairs that the relaxed threshold keeps, and that the search for pairs keeps.
const RELAXED_RECALL: f64 = 0.999;
const SEARCH_RECALL: f64 = 0.999_999;

/// A sampled row.
struct SampledRow {
    signature: Vec<u8>,
    document: Option<Vec<u8>>,
}

impl SampledRow {
    fn read(&self) -> Signature<'_> {
        Signature::from_bytes(&self.signature).or_raise()
    }
}

/// Implements `near_dup_advise(relation, signature_column, threshold, sample_rows,
/// document_column)`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold or sample out of range, for a table without
/// signatures, and for documents whose shingles the signatures do not describe.
#[pg_extern(sql = false)]
fn near_dup_advise(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 2);
    let sample_rows = options::within(
        "sample_rows",
        call.argument(3, "sample_rows").value() as i32,
        *SAMPLE_ROWS.start(),
        *SAMPLE_ROWS.end(),
    );
    let source = SampledTable::new(&call);
    let rows = source.count();
    let sample = source.sample(sample_rows);
    let Some(header) = most_common_header(&sample) else {
        invalid(
            "the table has no signatures of documents that are not empty",
            "Fill the column with minhash(...) first.",
        );
    };
    let is_comparable = |row: &&SampledRow| row.read().header == header;
    let comparable = collected(sample.iter().filter(is_comparable)).or_raise();
    let relaxed = relaxed_threshold(&header, threshold, RELAXED_RECALL);
    let share = (f64::from(sample_rows) / rows as f64).min(1.0);
    let [bands, intact, bytes, candidates, crowded] =
        index_advice(&comparable, &header, threshold, rows as f64);
    let recall = source
        .has_documents
        .then(|| sample_recall(&comparable, &header, threshold, relaxed, share));
    let [pairs, estimate, low, high, at_relaxed] = recall.unwrap_or_default();
    call.rows().put([
        rows.into_datum(),
        (sample.len() as i32).into_datum(),
        bands,
        intact,
        bytes,
        candidates,
        crowded,
        relaxed.into_datum(),
        pairs,
        estimate,
        low,
        high,
        at_relaxed,
    ]);
}

/// Returns the bands, the intact bands, the bytes a row, the candidates and the share of crowded keys of an index, from
/// `rows` sampled from `table_rows`, with signatures of these parameters.
fn index_advice(
    rows: &[&SampledRow],
    header: &Header,
    threshold: f64,
    table_rows: f64,
) -> [Option<pg_sys::Datum>; 5] {
    let (slots, bits) = (usize::from(header.slots), u32::from(header.slot_bits));
    let bands = Bands::for_threshold(slots, bits, threshold);
    let intact = bands
        .occurrence(bits, threshold)
        .map_or(1, |found| found.needed());
    let hashes = rows.iter().map(|row| band_hashes(&row.read(), &bands));
    let sample = Sample::new(hashes, table_rows).or_raise();
    let candidates = sample.candidates(&bands, intact, &mut check_interrupts);
    [
        (bands.bands as i32).into_datum(),
        (intact as i32).into_datum(),
        bytes_per_row(bands.bands).into_datum(),
        candidates.or_raise().into_datum(),
        sample.crowded(intact).or_raise().into_datum(),
    ]
}

/// The table and columns that the rows come from, quoted.
struct SampledTable {
    columns: String,
    table: String,
    signature_type: pg_sys::Oid,
    has_documents: bool,
}

impl SampledTable {
    fn new(call: &Call) -> Self {
        let relation = pg_sys::Oid::from(call.argument(0, "relation").value() as u32);
        // SAFETY: both arguments are names.
        let quoted = |name| names::identifier(&unsafe { names::name(name) });
        let signature = quoted(call.argument(1, "signature_column"));
        let document = call.optional_argument(4).map(quoted);
        let has_documents = document.is_some();
        Self {
            columns: match document {
                Some(document) => format!("{signature}, {document}::pg_catalog.text"),
                None => signature,
            },
            table: names::relation(relation),
            signature_type: type_named(call.schema(), c"minhash_signature"),
            has_documents,
        }
    }

    fn count(&self) -> i64 {
        let query = Query::of_sql(&format!("SELECT pg_catalog.count(*) FROM {}", self.table));
        let column = query.columns()[0].of_type(pg_sys::INT8OID, "only", "number of rows");
        let mut count = None;
        query.for_each("counting rows", &mut |row| {
            count = row.get(column).map(|datum| datum.value() as i64);
        });
        count.unwrap_or(0)
    }

    /// Returns rows chosen at random, each with the same probability.
    fn sample(&self, rows: i32) -> Vec<SampledRow> {
        let sql = format!(
            "SELECT {} FROM {} ORDER BY pg_catalog.random() LIMIT {rows}",
            self.columns, self.table
        );
        let query = Query::of_sql(&sql);
        let columns = query.columns();
        let signature = columns[0].if_type(self.signature_type).unwrap_or_else(|| {
            wrong_type(
                &format!("the signature column is of type {}", columns[0].type_name()),
                &format!(
                    "Name a column of type {}.",
                    names::type_(self.signature_type)
                ),
            )
        });
        let document = self
            .has_documents
            .then(|| columns[1].of_type(pg_sys::TEXTOID, "second", "document"));
        let mut sample = Vec::new();
        query.for_each("reading", &mut |row| {
            if let Some(signature) = row.get(signature) {
                let document = document.and_then(|column| row.get(column));
                // SAFETY: the columns are of these types.
                let row = unsafe {
                    SampledRow {
                        signature: copied(StoredSignature::from_raw(signature).bytes()).or_raise(),
                        document: document.map(|text| copied(&Text::from_raw(text)).or_raise()),
                    }
                };
                sample.try_push(row).or_raise();
            }
        });
        sample
    }
}

/// Returns the parameters of most of the signatures; signatures of empty documents do not count.
fn most_common_header(sample: &[SampledRow]) -> Option<Header> {
    let mut counts = std::collections::HashMap::<Header, usize>::new();
    for row in sample {
        let header = row.read().header;
        if !header.empty {
            *counts.entry(header).or_default() += 1;
        }
    }
    let most = counts
        .into_iter()
        .max_by_key(|(header, count)| (*count, header.seed_id));
    most.map(|(header, _)| header)
}

/// Returns None for packed signatures, and where no threshold has that recall.
fn relaxed_threshold(header: &Header, threshold: f64, recall: f64) -> Option<f64> {
    if header.slot_bits != 32 {
        return None;
    }
    relax(threshold, i64::from(header.slots), recall).ok()
}

/// Returns the number of true pairs, whose documents reach a threshold, and the shares of them that thresholds on the
/// estimate keep, from rows that are a share of the table's: of the same threshold the share with its interval, and
/// of the relaxed one.
fn sample_recall(
    rows: &[&SampledRow],
    header: &Header,
    threshold: f64,
    relaxed: Option<f64>,
    share: f64,
) -> [Option<pg_sys::Datum>; 5] {
    let shingling = shingling(header).unwrap_or_else(|| {
        invalid(
            "the signatures were not made from the text of documents",
            "Leave document_column out.",
        )
    });
    // Half of the least threshold would be 0, which bands cannot serve.
    let low = relaxed_threshold(header, threshold, SEARCH_RECALL)
        .unwrap_or((threshold / 2.0).max(f64::MIN_POSITIVE));
    let (drawn, searched) = draw_pairs(rows, low);
    let mut pairs = Vec::new();
    let mut reached_relaxed = 0i64;
    let mut sets = filled(None, rows.len()).or_raise();
    let mut progress = Progress::begin("comparing documents", Some(drawn.pairs.len()));
    for &(a, b, found) in &drawn.pairs {
        progress.step();
        for row in [a, b] {
            sets[row].get_or_insert_with(|| shingles(rows[row], &shingling));
        }
        if let (Some(x), Some(y)) = (&sets[a], &sets[b])
            && set::jaccard(x, y, &mut || progress.look()) >= threshold
        {
            pairs.try_push((a, b, found >= threshold)).or_raise();
            reached_relaxed += i64::from(relaxed.is_some_and(|relaxed| found >= relaxed));
        }
    }
    let all = pairs.len() as f64;
    let part = searched as f64 / rows.len() as f64;
    let shares = DrawnShares {
        rows: share * part,
        pairs: drawn.share(),
    };
    let in_table = all / drawn.share().max(f64::MIN_POSITIVE) / (part * part);
    let at_threshold = recall(&pairs, rows.len(), shares).or_raise();
    let at_relaxed = relaxed.filter(|_| all > 0.0);
    [
        (in_table.round() as i64).into_datum(),
        at_threshold.map(|recall| recall.estimate).into_datum(),
        at_threshold.map(|recall| recall.low).into_datum(),
        at_threshold.map(|recall| recall.high).into_datum(),
        at_relaxed
            .map(|_| reached_relaxed as f64 / all)
            .into_datum(),
    ]
}

/// Draws pairs whose estimate reaches `low`, and returns among how many rows.
fn draw_pairs(rows: &[&SampledRow], low: f64) -> (DrawnPairs, usize) {
    let signatures = collected(rows.iter().map(|row| row.read())).or_raise();
    let mut drawn = DrawnPairs::new(EXACT_PAIRS);
    let mut progress = Progress::begin("searching pairs", None);
    let searched = for_each_pair(
        &signatures,
        low,
        &mut || progress.look(),
        &mut |a, b, estimate| drawn.offer((a, b, estimate)).or_raise(),
    );
    (drawn, searched.or_raise())
}

fn shingles(row: &SampledRow, shingling: &Shingling) -> Vec<i64> {
    let document = row.document.as_deref().unwrap_or_default();
    shingle_hashes(
        document,
        shingling,
        &Key::from_seed(0),
        &mut check_interrupts,
    )
    .or_raise()
}

pgrx::extension_sql_file!("../../sql/index/advise.sql", name = "advise");
