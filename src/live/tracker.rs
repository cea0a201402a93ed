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
use crate::pg::call::trigger_data;
use crate::pg::catalog::function_beside;
use crate::pg::encoding::utf8;
use crate::pg::error::raise;
use crate::pg::relation::{self, ColumnType, Relation};
use crate::pg::statement::{Connection, server_text};
use crate::pg::{condition, names};
use neardup::shingle::Shingling;
use pgrx::{IntoDatum, PgList, PgSqlErrorCode, pg_sys};
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
    pub fn all(&self) -> [pg_sys::Oid; 5] {
        [
            self.clusters,
            self.log,
            self.canonical,
            self.queue,
            self.state,
        ]
    }

    /// Returns the condition that names the tables.
    pub fn condition(&self) -> String {
        condition::naming(&self.all())
    }

    /// Returns the tables that a condition names.
    ///
    /// # Safety
    /// The condition is a trigger's.
    unsafe fn of_condition(condition: *const std::ffi::c_char) -> Option<Self> {
        // SAFETY: vouched for by the caller.
        let [clusters, log, canonical, queue, state] = unsafe { condition::named(condition)? };
        Some(Self {
            clusters,
            log,
            canonical,
            queue,
            state,
        })
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
    /// The schema of the extension.
    pub schema: pg_sys::Oid,
    /// One of the extension's functions.
    pub function: pg_sys::Oid,
}

/// The extension's functions for triggers.
#[derive(Debug, Clone, Copy)]
pub struct TriggerFunctions {
    note: Option<pg_sys::Oid>,
    refresh: Option<pg_sys::Oid>,
    schema: pg_sys::Oid,
}

impl TriggerFunctions {
    /// Returns the functions of the extension that another function belongs to.
    pub fn beside(function: pg_sys::Oid) -> Self {
        Self {
            note: function_beside(function, c"near_dup_track", &[]),
            refresh: function_beside(function, c"near_dup_refresh", &[]),
            // SAFETY: plain catalog lookup.
            schema: unsafe { pg_sys::get_func_namespace(function) },
        }
    }

    /// Returns the function that notes changes.
    pub fn note(&self) -> Option<pg_sys::Oid> {
        self.note
    }

    fn notes(&self, trigger: &pg_sys::Trigger, event: u32) -> bool {
        Some(trigger.tgfoid) == self.note && trigger.tgtype as u32 & event != 0
    }

    /// Returns the trigger of the open table that notes updates for the tracker with these tables.
    ///
    /// # Safety
    /// The table is open, as long as the trigger is read.
    unsafe fn note_of_updates<'t>(
        &self,
        tables: Tables,
        table: pg_sys::Relation,
    ) -> Option<&'t pg_sys::Trigger> {
        // SAFETY: vouched for by the caller; the triggers are the table's own.
        unsafe {
            let mut triggers = relation::triggers(table).iter();
            triggers.find(|trigger| {
                self.notes(trigger, pg_sys::TRIGGER_TYPE_UPDATE)
                    && Tables::of_condition(trigger.tgqual) == Some(tables)
            })
        }
    }
}

impl Tracker {
    /// Returns the tracker of a trigger; None if it is not one of ours.
    ///
    /// # Safety
    /// The table is open, and the trigger one of its own.
    pub unsafe fn of_trigger(
        functions: &TriggerFunctions,
        table: pg_sys::Relation,
        trigger: &pg_sys::Trigger,
    ) -> Option<Self> {
        let function = Some(trigger.tgfoid);
        if function != functions.note && function != functions.refresh {
            return None;
        }
        // SAFETY: vouched for by the caller; the arguments are NUL-terminated.
        unsafe {
            let tables = Tables::of_condition(trigger.tgqual)?;
            let arguments = relation::trigger_arguments(trigger).into_iter();
            let arguments: Vec<String> = arguments.map(utf8).collect();
            let [threshold, mode, scopes, rest @ ..] = &arguments[..] else {
                return None;
            };
            let updates = functions.note_of_updates(tables, table)?;
            let mut kept = condition::kept(updates.tgqual)?.into_iter();
            let own = (*table).rd_id;
            let mut column = || condition::column(kept.next()?);
            let number = column()?;
            let scope = (0..scopes.parse().ok()?).map(|_| names::column(own, column()?));
            let scope = scope.collect::<Option<_>>()?;
            let kind = Kind::of_type(ColumnType::of(own, number).type_, functions.schema)?;
            let (cut, directions) = rest.split_at_checked(kind.cut_types().len())?;
            let mut cut = CUT.into_iter().zip(cut);
            let shingling = cut.try_fold(Shingling::default(), with_text).ok();
            let measure = Measure::new(kind, threshold.parse().ok()?, shingling, functions.schema)?;
            let terms = kept
                .zip(directions)
                .map(|(term, direction)| names::expression(term, own, c"b", false) + direction);
            Some(Self {
                relation: made_for(table, trigger),
                tables,
                column: names::column(own, number)?,
                measure,
                keep: terms.collect::<Vec<_>>().join(", "),
                scope,
                is_immediate: mode == IMMEDIATE,
                schema: functions.schema,
                function: trigger.tgfoid,
            })
        }
    }

    /// Returns the tracker whose trigger is called; None of one that has ended, because its trigger for
    /// updates was dropped with a column.
    ///
    /// # Errors
    /// The errors of [`check_call`].
    ///
    /// # Safety
    /// `fcinfo` is that of the running call.
    pub unsafe fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> Option<Self> {
        // SAFETY: vouched for by the caller; the trigger is the table's.
        unsafe {
            let data = check_call(fcinfo);
            let functions = TriggerFunctions::beside((*(*fcinfo).flinfo).fn_oid);
            Self::of_trigger(&functions, data.tg_relation, &*data.tg_trigger)
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

    /// Returns the tracker that keeps a table of clusters.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if there is none.
    pub fn of_clusters(
        functions: &TriggerFunctions,
        connection: &Connection,
        clusters: pg_sys::Oid,
    ) -> Self {
        let found = connection.prepare_kept(TRIGGERS, &[pg_sys::OIDOID]);
        let mut tables = Vec::new();
        found.run(&[clusters.into_datum()], &mut |row| {
            tables.extend(row.get::<pg_sys::Oid>(1));
        });
        let trackers = tables
            .into_iter()
            .flat_map(|table| Self::all_of_table(functions, table));
        let mut kept = trackers.filter(|tracker| tracker.tables.clusters == clusters);
        kept.next().unwrap_or_else(|| not_kept(clusters))
    }

    /// Returns the trackers of a table; none of one that is gone.
    pub fn all_of_table(functions: &TriggerFunctions, table: pg_sys::Oid) -> Vec<Self> {
        let Some(table) = Relation::try_open_table(table) else {
            return Vec::new();
        };
        let own = own_triggers(&table)
            .filter(|trigger| functions.notes(trigger, pg_sys::TRIGGER_TYPE_INSERT));
        // SAFETY: the table is open, and the triggers are its own.
        own.filter_map(|trigger| unsafe { Self::of_trigger(functions, table.as_ptr(), trigger) })
            .collect()
    }

    /// Returns the trigger of the open table that notes inserted rows.
    pub fn note_trigger<'t>(
        &self,
        functions: &TriggerFunctions,
        table: &'t Relation,
    ) -> Option<&'t pg_sys::Trigger> {
        own_triggers(table).find(|trigger| {
            functions.notes(trigger, pg_sys::TRIGGER_TYPE_INSERT)
                // SAFETY: the condition is the trigger's.
                && unsafe { Tables::of_condition(trigger.tgqual) } == Some(self.tables)
        })
    }

    /// Returns the name of the trigger that notes updates, with which all others go.
    pub fn note_of_updates(&self, functions: &TriggerFunctions) -> Option<String> {
        let table = Relation::open_table(self.relation);
        // SAFETY: the table is open.
        unsafe { functions.note_of_updates(self.tables, table.as_ptr()) }.map(name_of)
    }

    /// Returns the tables of the tracker that have another owner than the tracked one.
    pub fn tables_of_others(&self) -> impl Iterator<Item = pg_sys::Oid> {
        let owner = Relation::open_table(self.relation).owner();
        let tables = self.tables.all().into_iter();
        tables.filter(move |&table| Relation::open_table(table).owner() != owner)
    }

    /// Returns the extension's function of that name.
    pub fn function(&self, name: &str) -> String {
        names::qualified(self.schema, name)
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
        data.unwrap_or_else(|| no_trigger())
    }
}

/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated`.
pub fn no_trigger() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "a function of near_dup_track was not called by its trigger",
        "near_dup_track makes its triggers itself.",
    )
}

/// Returns the triggers of an open table without those that it has as a partition.
fn own_triggers(table: &Relation) -> impl Iterator<Item = &pg_sys::Trigger> {
    let triggers = table.triggers().iter();
    triggers.filter(|trigger| !trigger.tgisclone)
}

pub fn name_of(trigger: &pg_sys::Trigger) -> String {
    // SAFETY: the names of triggers are NUL-terminated.
    utf8(unsafe { CStr::from_ptr(trigger.tgname) })
}

/// Returns the table that a trigger was made for: its own, or a table that its own is a partition of.
///
/// # Safety
/// The table is open, and the trigger one of its own.
unsafe fn made_for(table: pg_sys::Relation, trigger: &pg_sys::Trigger) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; the list is a new one.
    unsafe {
        let own = (*table).rd_id;
        if !trigger.tgisclone {
            return own;
        }
        let ancestors = PgList::<pg_sys::Oid>::from_pg(get_partition_ancestors(own));
        let has_it = |ancestor: &pg_sys::Oid| {
            pg_sys::get_trigger_oid(*ancestor, trigger.tgname, true) != pg_sys::InvalidOid
        };
        ancestors
            .iter_oid()
            .take_while(has_it)
            .last()
            .unwrap_or(own)
    }
}

unsafe extern "C-unwind" {
    /// Returns the tables that a partition belongs to, from its own parent on.
    fn get_partition_ancestors(partition: pg_sys::Oid) -> *mut pg_sys::List;
}

const IMMEDIATE: &str = "immediate";
const DEFERRED: &str = "deferred";

/// The tables whose triggers name a table.
const TRIGGERS: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0";

fn not_kept(clusters: pg_sys::Oid) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
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
    let bound = measure.threshold().to_string();
    let options = GuardOptions {
        scope: scope.map(server_text).collect(),
        ..GuardOptions::new(server_text(column), bound)
    };
    Rule {
        options,
        kind: measure.kind,
        bound: measure.bound,
        objects: measure.kind.objects(tracker.function),
    }
}
