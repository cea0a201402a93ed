//! All similar pairs of a collection, or between two.

use crate::collection::items::Items;
use crate::collection::reading::Collection;
use crate::collection::search::Search;
use crate::collection::verify::{Estimate, Resemblance, Sets, Similarity};
use crate::options;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, hold_interrupts};
use crate::pg::spool::Records;
use crate::pg::srf::Rows;
use neardup::bands::plan::{Plan, VerifiedPlan, lowest_wide_threshold};
use neardup::bands::{Bands, band_hashes};
use neardup::candidates::token;
use neardup::minhash::{Header, Signature};
use pgrx::prelude::*;

/// Rows from which on narrow bands are slow enough for a warning.
const LARGE: u32 = 100_000;

/// Bits of each slot that the prefilter of verified pairs keeps in memory. In 4 bits one of 16
/// differing slots seems equal; pairs took as long as with 8 bits, which take twice the memory.
const PREFILTER_BITS: u8 = 4;

/// `near_dup_pairs(key, query, threshold)`.
///
/// # Errors
/// `invalid_parameter_value` for a threshold out of range or signatures made with different
/// parameters, `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_pairs(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 2);
    let mut collection = Collection::new(&call);
    collection.read(call.argument(1, "query"));
    put_pairs(collection, threshold, call.rows());
}

/// `near_dup_join(key, query_a, query_b, threshold)`.
///
/// # Errors
/// As `near_dup_pairs`.
#[pg_extern(sql = false)]
fn near_dup_join(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let threshold = options::threshold_argument(&call, 3);
    let mut collection = Collection::new(&call);
    collection.read(call.argument(1, "query_a"));
    collection.first_side = Some(collection.rows());
    collection.read(call.argument(2, "query_b"));
    put_pairs(collection, threshold, call.rows());
}

fn put_pairs(mut collection: Collection, threshold: f64, mut rows: Rows) {
    let Some(header) = collection.header else {
        return;
    };
    let Prepared {
        items,
        search,
        mut similarity,
    } = Prepared::new(&mut collection, &header, threshold);
    for item in 0..items.len() {
        put_identical(&collection, &items, item, &mut rows);
    }
    let sides: Vec<_> = (0..search.tokens.rows())
        .map(|kept| items.sides(search.item(kept), &collection))
        .collect();
    search.for_each_pair(&|kept| sides[kept as usize], &mut |a, b| {
        let (a, b) = (search.item(a), search.item(b));
        let (first_a, first_b) = (items.first_row(a), items.first_row(b));
        let found = similarity.at_least(&mut collection, first_a, first_b, threshold);
        if let Some(similarity) = found {
            put_across(&collection, &items, (a, b), similarity, &mut rows);
            if collection.first_side.is_some() {
                put_across(&collection, &items, (b, a), similarity, &mut rows);
            }
        }
    });
}

/// The pairs among the rows of one item.
fn put_identical(collection: &Collection, items: &Items, item: u32, rows: &mut Rows) {
    if collection.first_side.is_some() {
        return put_across(collection, items, (item, item), 1.0, rows);
    }
    let mut earlier = items.rows(item);
    while let Some(x) = earlier.next() {
        for y in earlier.clone() {
            put_pair(collection, x, y, 1.0, rows);
        }
    }
}

/// The pairs of side a's rows of one item and side b's rows of another. Side a's come first.
fn put_across(
    collection: &Collection,
    items: &Items,
    (a, b): (u32, u32),
    similarity: f64,
    rows: &mut Rows,
) {
    let theirs = items.rows(b).find(|&row| collection.sides(row).b);
    let ours = items.rows(a).take_while(|&row| collection.sides(row).a);
    for x in ours {
        for y in theirs.into_iter().flat_map(|first| items.rows_from(first)) {
            put_pair(collection, x.min(y), x.max(y), similarity, rows);
        }
    }
}

fn put_pair(collection: &Collection, x: u32, y: u32, similarity: f64, rows: &mut Rows) {
    let key = |row| collection.keys.get(row);
    rows.put([key(x), key(y), similarity.into_datum()]);
    crate::pg::error::check_interrupts();
}

/// A collection ready to be searched.
pub struct Prepared {
    pub items: Items,
    pub search: Search,
    pub similarity: Box<dyn Similarity>,
}

impl Prepared {
    /// For pairs whose estimate reaches the threshold or, where the collection has documents, whose
    /// true similarity does.
    pub fn new(collection: &mut Collection, header: &Header, threshold: f64) -> Self {
        let sets = Sets::of(collection);
        let items = Items::of(collection, sets.as_ref());
        let slots = usize::from(header.slots);
        match sets {
            None => {
                let plan = Plan::estimate(slots, u32::from(header.slot_bits), threshold);
                Self {
                    search: search(collection, &items, plan),
                    items,
                    similarity: Box::new(Estimate::new()),
                }
            }
            Some(sets) => {
                let verified = VerifiedPlan::new(slots, threshold);
                warn_of_narrow_bands(&verified, collection.rows(), threshold);
                let mut search = search(collection, &items, verified.plan);
                let packed = Header {
                    slot_bits: header.slot_bits.min(PREFILTER_BITS),
                    ..*header
                };
                let (mut buffer, mut slots) = (Vec::new(), Vec::with_capacity(slots));
                search.prefilter(packed, verified.equal_slots, &mut |item, bytes| {
                    let row = items.first_row(item) as usize;
                    slots.clear();
                    slots.extend(read_signature(collection, row, &mut buffer).slots());
                    packed.push_slots(&slots, bytes);
                });
                // From here on only the documents are asked.
                collection.signatures = Records::new(0);
                Self {
                    search,
                    items,
                    similarity: Box::new(Resemblance::new(sets)),
                }
            }
        }
    }
}

fn search(collection: &mut Collection, items: &Items, plan: Plan) -> Search {
    let Plan { bands, needed } = plan;
    let mut buffer = Vec::new();
    let all: Vec<u32> = (0..items.len()).collect();
    Search::new(&all, bands.bands, needed, &mut |item, tokens| {
        let row = items.first_row(item) as usize;
        let signature = read_signature(collection, row, &mut buffer);
        push_tokens(&signature, &bands, tokens);
    })
}

fn push_tokens(signature: &Signature<'_>, bands: &Bands, tokens: &mut Vec<u32>) {
    tokens.extend(band_hashes(signature, bands).map(token));
}

fn read_signature<'a>(
    collection: &'a mut Collection,
    row: usize,
    buffer: &'a mut Vec<u8>,
) -> Signature<'a> {
    Signature::from_bytes(collection.signatures.read(row, buffer)).or_raise()
}

fn warn_of_narrow_bands(plan: &VerifiedPlan, rows: u32, threshold: f64) {
    let slots = plan.plan.bands.slots;
    let problem = if plan.lossy {
        "may miss pairs"
    } else if plan.narrow() && rows >= LARGE {
        "may take very long"
    } else {
        return;
    };
    let lowest = lowest_wide_threshold(slots);
    let message = format!(
        "threshold {threshold} is low for signatures of {slots} slots, the search {problem}: use a threshold of {lowest} or more, or more slots"
    );
    hold_interrupts(|| warning!("{message}"));
}

pgrx::extension_sql_file!(
    "../../sql/collection/pairs.sql",
    name = "pairs",
    requires = ["signature"]
);
