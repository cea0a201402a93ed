//! `near_dup_calibrate`: which parameters tell labeled pairs apart.

use crate::collection::documents::share_of_work_mem_bytes;
use crate::pg::arrays::{NewTexts, integer_elements, text_elements};
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, hold_interrupts, invalid, wrong_type};
use crate::pg::names;
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Column, Query};
use crate::pg::spool::Records;
use crate::pg::statement::server_text;
use crate::pg::text::{NewText, Text};
use neardup::bands::LOWEST_THRESHOLD;
use neardup::calibrate::{
    BITS, Calibration, Grid, GridMeasure, GridMethod, Scored, best_cut, intervals, whole_weights,
};
use neardup::error::out_of_range;
use neardup::memory::{Grow, collected, filled, with_room};
use neardup::shingle::Shingling;
use neardup::simhash::Weighting;
use pgrx::prelude::*;
use std::str::FromStr;

/// Pairs of either label below which a WARNING says that the intervals are wide.
const FEW: usize = 30;

/// Implements `near_dup_calibrate(query, k, unit, fold, weighting, relation, document_column,
/// seed, params)`.
///
/// # Errors
/// `invalid_parameter_value` for parameters out of range and for pairs of one label only,
/// `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_calibrate(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let methods = grid(&call).methods().or_raise();
    let target = Target::new(&call);
    let seed = call.argument(7, "seed").value() as i64;
    let mut pairs = LabeledPairs::read(Query::open(&call, 0, "query"));
    pairs.check();
    let mut calibrations = calibrate(&mut pairs, &methods, seed);
    #[allow(clippy::disallowed_methods, reason = "at most MAX_METHODS")]
    calibrations.sort_by(Calibration::better_first);
    let mut rows = call.rows();
    for calibration in &calibrations {
        rows.put(target.row(calibration));
    }
}

fn grid(call: &Call) -> Grid {
    Grid {
        lengths: collected(
            integer_elements(call.argument(1, "k"))
                .into_iter()
                .map(i64::from),
        )
        .or_raise(),
        units: names(call, 2, "unit"),
        folds: names(call, 3, "fold"),
        weightings: names(call, 4, "weighting"),
    }
}

/// Returns the names in argument `number`, each parsed.
fn names<T: FromStr<Err = neardup::Error>>(call: &Call, number: usize, name: &str) -> Vec<T> {
    text_elements(call.argument(number, name), &|name| {
        let name = std::str::from_utf8(name).unwrap_or_default();
        name.parse().or_raise()
    })
}

fn calibrate(pairs: &mut LabeledPairs, methods: &[GridMethod], seed: i64) -> Vec<Calibration> {
    let mut progress = Progress::begin("calibrating", Some(methods.len() * pairs.len()));
    let mut calibrations = with_room(methods.len()).or_raise();
    let weights = pairs.whole_weights();
    let mut scores = with_room(pairs.len()).or_raise();
    let mut buffers = [Vec::new(), Vec::new()];
    for &method in methods {
        scores.clear();
        for (number, &weight) in weights.iter().enumerate() {
            progress.step();
            let (a, b) = pairs.read_pair(number, &mut buffers);
            let score = method.score(a, b, &mut || progress.look()).or_raise();
            let scored = Scored::new(score, pairs.same[number], weight);
            scores.try_push(scored).or_raise();
        }
        let cut = best_cut(&mut scores, method.scale(), &mut || progress.look());
        let intervals = intervals(&scores, cut.lowest, seed, &mut || progress.look());
        let calibration = Calibration {
            method,
            cut,
            intervals: intervals.or_raise(),
        };
        calibrations.try_push(calibration).or_raise();
    }
    calibrations
}

/// Pairs of documents, each labeled as the same or not.
struct LabeledPairs {
    documents: [Records; 2],
    same: Vec<bool>,
    /// None where the query has none.
    weights: Option<Vec<f64>>,
    /// Rows of the query with a NULL.
    left_out: usize,
}

impl LabeledPairs {
    fn read(query: Query) -> Self {
        let (documents, same, weight) = check_columns(&query.columns());
        let budget = share_of_work_mem_bytes();
        let mut pairs = Self {
            documents: [Records::new(budget), Records::new(budget)],
            same: Vec::new(),
            weights: weight.map(|_| Vec::new()),
            left_out: 0,
        };
        query.for_each("reading", &mut |row| {
            let [a, b] = documents.map(|column| row.get(column));
            let (Some(a), Some(b), Some(same)) = (a, b, row.get(same)) else {
                pairs.left_out += 1;
                return;
            };
            if let (Some(weights), Some(weight)) = (&mut pairs.weights, weight) {
                let Some(weight) = row.get(weight) else {
                    pairs.left_out += 1;
                    return;
                };
                weights.try_push(check_weight(weight)).or_raise();
            }
            for (records, document) in pairs.documents.iter_mut().zip([a, b]) {
                // SAFETY: the column is of type text or one of those that are stored as it is.
                records.push(&unsafe { Text::from_raw(document) });
            }
            pairs.same.try_push(same.value() as u8 != 0).or_raise();
        });
        pairs
    }

    fn len(&self) -> usize {
        self.same.len()
    }

    fn whole_weights(&self) -> Vec<u64> {
        match &self.weights {
            Some(weights) => whole_weights(weights),
            None => filled(1, self.len()),
        }
        .or_raise()
    }

    fn read_pair<'a>(
        &'a mut self,
        number: usize,
        buffers: &'a mut [Vec<u8>; 2],
    ) -> (&'a [u8], &'a [u8]) {
        let [a, b] = &mut self.documents;
        let [for_a, for_b] = buffers;
        (a.read(number, for_a), b.read(number, for_b))
    }

    /// Warns of NULLs and of few pairs.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` unless there are pairs of both labels.
    fn check(&self) {
        let all = self.len();
        let same = self.same.iter().filter(|same| **same).count();
        let problem = match same {
            _ if all == 0 => "the query yields no labeled pairs".to_string(),
            0 => format!("none of the {all} labeled pairs is the same"),
            _ if same == all => format!("all {all} labeled pairs are the same"),
            _ => String::new(),
        };
        if !problem.is_empty() {
            invalid(
                &problem,
                "Label pairs that are the same (true) and pairs that are not (false); near_dup_sample_pairs draws some of all similarities.",
            );
        }
        if self.left_out > 0 {
            let (out, of) = (self.left_out, self.left_out + all);
            hold_interrupts(|| warning!("pairs left out for a NULL: {out} of {of}"));
        }
        if same.min(all - same) < FEW {
            hold_interrupts(|| {
                warning!(
                    "{all} labeled pairs, {same} of them the same, are few: the intervals are wide"
                )
            });
        }
    }
}

/// Returns the weight in a datum of type double precision.
///
/// # Errors
/// ERROR `invalid_parameter_value` unless it is a number above 0.
fn check_weight(datum: pg_sys::Datum) -> f64 {
    let weight = f64::from_bits(datum.value() as u64);
    if !(weight > 0.0 && weight.is_finite()) {
        return Err(out_of_range("weight", &weight, "numbers above 0")).or_raise();
    }
    weight
}

/// Returns the columns of the documents, of the label and of the weight.
fn check_columns(columns: &[Column]) -> ([CheckedColumn; 2], CheckedColumn, Option<CheckedColumn>) {
    let ([a, b, same] | [a, b, same, _]) = columns else {
        wrong_type(
            &format!("the query yields {} columns", columns.len()),
            "Valid are a document, another one, whether they are the same, and perhaps the weight of the pair (text, text, boolean, double precision).",
        );
    };
    (
        [a.of_documents("first"), b.of_documents("second")],
        same.of_type(pg_sys::BOOLOID, "third", "label"),
        columns
            .get(3)
            .map(|weight| weight.of_type(pg_sys::FLOAT8OID, "fourth", "weight")),
    )
}

/// The table and column that the statements are for, and the name of the column that they add.
struct Target {
    table: String,
    column: String,
    added: String,
}

impl Target {
    /// # Errors
    /// ERROR `undefined_table` if there is no such relation.
    fn new(call: &Call) -> Self {
        let relation = call.optional_argument(5);
        let relation = relation.map(|datum| pg_sys::Oid::from(datum.value() as u32));
        let column = call.argument(6, "document_column");
        let is_free = |name: &String| {
            relation.is_none_or(|oid| names::column_number(oid, &server_text(name)).is_none())
        };
        let numbered = (2..).map(|number| format!("sig_{number}"));
        let mut free = std::iter::once("sig".to_string()).chain(numbered);
        Self {
            table: relation.map_or_else(|| "docs".to_string(), names::relation),
            // SAFETY: the argument is a name.
            column: names::identifier(&unsafe { names::name(column) }),
            added: free.find(is_free).expect("a table has no end of columns"),
        }
    }

    fn row(&self, calibration: &Calibration) -> [Option<pg_sys::Datum>; 17] {
        let Calibration {
            method,
            cut,
            intervals,
        } = calibration;
        let shingling = &method.shingling;
        let text = |value: &str| NewText(value.to_string().into_bytes()).into_datum();
        let (name, weighting, threshold, distance, statements) = match method.measure {
            GridMeasure::Resemblance => {
                let threshold = cut.roundest();
                let index = self.index_on_documents(method, threshold);
                (
                    "resemblance",
                    None,
                    Some(threshold),
                    None,
                    Vec::from([index]),
                )
            }
            GridMeasure::SimHash(weighting) => {
                let distance = method.middle_distance(cut);
                let statements = self.simhash_statements(method, weighting, distance);
                (
                    "simhash",
                    Some(weighting.to_string()),
                    None,
                    Some(distance as i32),
                    statements,
                )
            }
        };
        [
            text(name),
            text(&shingling.unit.to_string()),
            (shingling.k as i32).into_datum(),
            text(&shingling.fold.to_string()),
            weighting.as_deref().and_then(text),
            threshold.into_datum(),
            distance.into_datum(),
            cut.outcomes.precision().into_datum(),
            cut.outcomes.recall().into_datum(),
            cut.outcomes.f1().into_datum(),
            intervals.precision.low.into_datum(),
            intervals.precision.high.into_datum(),
            intervals.recall.low.into_datum(),
            intervals.recall.high.into_datum(),
            intervals.f1.low.into_datum(),
            intervals.f1.high.into_datum(),
            NewTexts(statements).into_datum(),
        ]
    }

    /// Returns the statement that makes an index on the documents; below the thresholds that it serves, on
    /// their sets of shingles.
    fn index_on_documents(&self, method: &GridMethod, threshold: f64) -> String {
        let (table, column) = (&self.table, &self.column);
        let Shingling { k, unit, fold } = method.shingling;
        let indexed = match threshold >= LOWEST_THRESHOLD {
            true => format!(
                "{column} text_ops (threshold = {threshold}, k = {k}, unit = {unit}, fold = {fold})"
            ),
            false => format!("shingle_hashes({})", self.arguments(method)),
        };
        format!("CREATE INDEX ON {table} USING neardup ({indexed})")
    }

    fn simhash_statements(
        &self,
        method: &GridMethod,
        weighting: Weighting,
        distance: u32,
    ) -> Vec<String> {
        let (table, added, arguments) = (&self.table, &self.added, self.arguments(method));
        Vec::from([
            format!(
                "ALTER TABLE {table} ADD COLUMN {added} bit({BITS}) GENERATED ALWAYS AS (simhash({arguments}, weighting => '{weighting}')) STORED"
            ),
            format!(
                "CREATE INDEX ON {table} USING neardup ({added} hamming_ops (distance = {distance}))"
            ),
        ])
    }

    fn arguments(&self, method: &GridMethod) -> String {
        let (column, shingling) = (&self.column, &method.shingling);
        let (k, unit, fold) = (shingling.k, shingling.unit, shingling.fold);
        format!("{column}, k => {k}, unit => '{unit}', fold => '{fold}'")
    }
}

pgrx::extension_sql_file!("../../sql/collection/calibrate.sql", name = "calibrate");
