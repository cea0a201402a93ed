//! A tracker, as its triggers describe it.
//!
//! The condition of every trigger names the tracker's tables as constants of type regclass, so that
//! PostgreSQL knows of the dependency, follows when they are renamed, and dumps them. The condition of
//! a trigger for updates keeps the tracker's columns and the expressions of its order as well.

use crate::guard::options::GuardOptions;
use crate::guard::table::Rule;
use crate::index::kind::Kind;
use crate::live::measure::Measure;
use crate::live::order::{Order, Term};
use crate::options::{CUT, cut_texts, with_text};
use crate::pg::call::{Call, trigger_data};
use crate::pg::catalog::function_beside;
use crate::pg::encoding::utf8;
use crate::pg::error::{not_ready, raise};
use crate::pg::relation::{self, ColumnType, Relation};
use crate::pg::rights::check_owner;
use crate::pg::statement::{Connection, server_text};
use crate::pg::{condition, names};
use neardup::shingle::Shingling;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// The tables of a tracker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tables {
    /// The clusters: key, cluster, canonical, similarity.
    pub clusters: pg_sys::Oid,
    /// The log of their events.
    pub log: pg_sys::Oid,
    /// The canonical rows with the values by which they are found, and their places in the order.
    pub canonical: pg_sys::Oid,
    /// Keys of changed rows.
    pub queue: pg_sys::Oid,
    /// One row about the last refresh.
    pub state: pg_sys::Oid,
}

impl Tables {
    /// Returns the tables in the order of [`Self::all`].
    pub fn new([clusters, log, canonical, queue, state]: [pg_sys::Oid; 5]) -> Self {
        Self {
            clusters,
            log,
            canonical,
            queue,
            state,
        }
    }

    /// Returns the tables in the order in which a condition names them.
    pub fn all(&self) -> [pg_sys::Oid; 5] {
        [
            self.clusters,
            self.log,
            self.canonical,
            self.queue,
            self.state,
        ]
    }

    /// Returns the tables that have another owner than the tracked one.
    pub fn of_others(&self, tracked: pg_sys::Oid) -> impl Iterator<Item = pg_sys::Oid> {
        let owner = Relation::open_table(tracked).owner();
        let tables = self.all().into_iter();
        tables.filter(move |&table| names::owner(table) != Some(owner))
    }

    /// Returns the tables that the condition of a trigger names.
    pub fn of(trigger: &pg_sys::Trigger) -> Option<Self> {
        // SAFETY: the condition is the trigger's.
        unsafe { condition::named(trigger.tgqual) }.map(Self::new)
    }
}

/// A tracker: its tables, and the table that it follows.
#[derive(Debug, Clone)]
pub struct Tracker {
    pub relation: pg_sys::Oid,
    pub tables: Tables,
    /// The column of the values that are compared.
    pub column: String,
    pub measure: Measure,
    /// The list of ORDER BY, the key of the table included.
    pub keep: String,
    pub scope: Vec<String>,
    /// Transactions refresh the clusters when they commit.
    pub is_immediate: bool,
    /// The extension's function for the triggers that note changes.
    pub note: pg_sys::Oid,
}

/// Returns the extension's function for the triggers that note changes, beside another one of its functions.
pub fn note_function(beside: pg_sys::Oid) -> pg_sys::Oid {
    function_beside(beside, c"near_dup_track", &[]).expect("the extension has its functions")
}

/// Returns the trigger of an open table that notes an event for the tracker with these tables.
pub fn note_trigger(
    note: pg_sys::Oid,
    table: &Relation,
    tables: Tables,
    event: u32,
) -> Option<&pg_sys::Trigger> {
    table.triggers().iter().find(|trigger| {
        notes(note, trigger, event) && Tables::of(trigger).is_some_and(|own| own == tables)
    })
}

fn notes(note: pg_sys::Oid, trigger: &pg_sys::Trigger, event: u32) -> bool {
    trigger.tgfoid == note && trigger.tgtype as u32 & event != 0
}

impl Tracker {
    /// Returns the tracker that a trigger of an open table notes changes for; None if it is not one of ours.
    fn of_trigger(note: pg_sys::Oid, table: &Relation, trigger: &pg_sys::Trigger) -> Option<Self> {
        // SAFETY: the table is open, and the trigger one of its own; the arguments are NUL-terminated.
        unsafe {
            let tables = Tables::of(trigger)?;
            let arguments = relation::trigger_arguments(trigger).into_iter();
            let arguments: Vec<String> = arguments.map(utf8).collect();
            let [threshold, mode, scopes, rest @ ..] = &arguments[..] else {
                return None;
            };
            let updates = note_trigger(note, table, tables, pg_sys::TRIGGER_TYPE_UPDATE)?;
            let mut kept = condition::kept(updates.tgqual)?.into_iter();
            let own = table.oid();
            let mut column = || condition::column(kept.next()?);
            let number = column()?;
            let column_name = names::column(own, number)?;
            let scope = (0..scopes.parse().ok()?).map(|_| names::column(own, column()?));
            let scope = scope.collect::<Option<_>>()?;
            let schema = pg_sys::get_func_namespace(note);
            let kind = Kind::of_type(ColumnType::of(own, number).type_, schema)?;
            let (cut, directions) = rest.split_at_checked(kind.cut_types().len())?;
            let mut cut = CUT.into_iter().zip(cut);
            let shingling = cut.try_fold(Shingling::default(), with_text).ok();
            let terms = kept
                .zip(directions)
                .map(|(term, direction)| names::expression(term, own, c"b", false) + direction);
            Some(Self {
                relation: own,
                tables,
                column: column_name,
                measure: Measure::new(kind, threshold.parse().ok()?, shingling, schema)?,
                keep: terms.collect::<Vec<_>>().join(", "),
                scope,
                is_immediate: mode == IMMEDIATE,
                note,
            })
        }
    }

    /// Returns the arguments of its triggers. Its columns and the expressions of its order are in
    /// [`Self::kept`].
    pub fn arguments(&self, order: &Order) -> String {
        let mode = if self.is_immediate {
            IMMEDIATE
        } else {
            DEFERRED
        };
        let (threshold, scopes) = (self.measure.threshold(), self.scope.len());
        let fixed = [threshold.to_string(), mode.to_owned(), scopes.to_string()];
        let cut = self.measure.shingling().into_iter().flat_map(cut_texts);
        let directions = order.terms.iter().map(Term::direction);
        let arguments = fixed.into_iter().chain(cut).chain(directions);
        let arguments: Vec<String> = arguments.map(|text| names::literal(&text)).collect();
        arguments.join(", ")
    }

    /// Returns the condition, beginning with AND, by which triggers for updates keep the columns and the
    /// expressions of the order, so that the tracker follows when columns are renamed.
    pub fn kept(&self, order: &Order) -> String {
        let columns = [&self.column].into_iter().chain(&self.scope);
        let columns = columns.map(|name| format!("NEW.{}", names::identifier(name)));
        let terms = order.terms.iter().map(|term| term.of_new.clone());
        let kept: Vec<String> = columns.chain(terms).collect();
        format!(" AND {}", condition::keeping(&kept))
    }

    /// Returns the tracker that keeps a table of clusters; None if there is none.
    pub fn of_clusters(
        note: pg_sys::Oid,
        connection: &Connection,
        clusters: pg_sys::Oid,
    ) -> Option<Self> {
        let tables = connection.prepare_kept(TRIGGERS, &[pg_sys::OIDOID]);
        let tables = tables.oids(&[clusters.into_datum()]).into_iter();
        let mut trackers = tables.flat_map(|table| Self::all_of_table(note, table));
        trackers.find(|tracker| tracker.tables.clusters == clusters)
    }

    /// Returns the tracker that keeps the table of clusters named by an argument of a call.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if there is none, `insufficient_privilege` unless the caller owns
    /// the tracked table.
    pub fn of_argument(call: &Call) -> Self {
        let clusters = pg_sys::Oid::from(call.argument(0, "clusters").value() as u32);
        let connection = Connection::open();
        let tracker = Self::of_clusters(note_function(call.function()), &connection, clusters);
        connection.close();
        let tracker = tracker.unwrap_or_else(|| not_kept(clusters));
        check_owner(tracker.relation);
        tracker
    }

    /// Returns the trackers of a table; none of one that is gone.
    pub fn all_of_table(note: pg_sys::Oid, table: pg_sys::Oid) -> Vec<Self> {
        let Some(table) = Relation::try_open_table(table) else {
            return Vec::new();
        };
        let own = table.triggers().iter().filter(|trigger| {
            !trigger.tgisclone && notes(note, trigger, pg_sys::TRIGGER_TYPE_INSERT)
        });
        own.filter_map(|trigger| Self::of_trigger(note, &table, trigger))
            .collect()
    }

    /// Returns the extension's function of that name.
    pub fn function(&self, name: &str) -> String {
        names::qualified(self.measure.schema, name)
    }
}

/// Checks that a trigger of a tracker is called, as cheap as that can be. Returns what it fires for.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` for a function that is not called as a tracker's trigger.
///
/// # Safety
/// `fcinfo` is that of the running call.
pub unsafe fn check_call<'c>(fcinfo: pg_sys::FunctionCallInfo) -> &'c pg_sys::TriggerData {
    // SAFETY: vouched for by the caller.
    unsafe {
        let is_ours = |data: &&pg_sys::TriggerData| {
            !(*data.tg_trigger).tgqual.is_null() && (*data.tg_trigger).tgnargs > 0
        };
        let data = trigger_data(fcinfo).filter(is_ours);
        data.unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "a function of near_dup_track was not called by its trigger",
                "near_dup_track makes its triggers itself.",
            )
        })
    }
}

pub fn name_of(trigger: &pg_sys::Trigger) -> String {
    // SAFETY: the names of triggers are NUL-terminated.
    utf8(unsafe { CStr::from_ptr(trigger.tgname) })
}

/// The second argument of triggers of a tracker that is refreshed when transactions commit.
pub const IMMEDIATE: &str = "immediate";
const DEFERRED: &str = "deferred";

/// The tables whose triggers name a table.
const TRIGGERS: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0";

fn not_kept(clusters: pg_sys::Oid) -> ! {
    not_ready(
        &format!(
            "{} is not kept by near_dup_track",
            names::relation(clusters)
        ),
        "The view near_dup_tracked lists the tables that are.",
    )
}

/// Returns the rule by which a column is searched for the values near another, by a measure, within equal
/// values of scope columns. The table is the tracked one or one of the tracker's own.
pub fn rule<'a>(
    tracker: &Tracker,
    measure: &Measure,
    column: &str,
    scope: impl Iterator<Item = &'a str>,
) -> Rule {
    let options = GuardOptions {
        column: server_text(column),
        bound: measure.threshold().to_string(),
        scope: scope.map(server_text).collect(),
        ..GuardOptions::default()
    };
    Rule {
        options,
        kind: measure.kind,
        bound: measure.bound,
        objects: measure.kind.objects(tracker.note),
    }
}
