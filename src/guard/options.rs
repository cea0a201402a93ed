//! The arguments of a `near_dup_guard` trigger.

use crate::guard::row_condition::RowCondition;
use crate::guard::window::microseconds_in;
use crate::index::bound::Bound;
use crate::index::kind::Kind;
use crate::options::{self, with_text};
use crate::pg::condition;
use crate::pg::prelude::*;
use crate::pg::relation::trigger_arguments;
use crate::pg::statement::server_text;
use neardup::bands::MAX_BLOCKS;
use neardup::quoted;
use neardup::shingle::Shingling;
use std::ffi::{CStr, CString};

/// Raises the ERROR of a trigger function that was not called as intended.
pub fn protocol_violation(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        message,
        "Use it as CREATE TRIGGER ... AFTER INSERT OR UPDATE ON ... FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8').",
    )
}

/// `near_dup_guard(column, bound [, 'k=...'] [, 'unit=...'] [, 'fold=...'] [, 'scope=column,...'] [, 'within=column', 'by=interval'] [, 'key=column', 'most=10', 'exceptions'])`.
#[derive(Default, PartialEq)]
pub struct GuardOptions {
    pub column: CString,
    /// A distance for bit strings, otherwise a similarity threshold.
    pub bound: String,
    /// How documents are cut into shingles, None for the defaults.
    pub shingling: Option<Shingling>,
    pub scope: Vec<CString>,
    pub within: Option<CString>,
    /// Maximum difference between near rows in column `within`, in microseconds.
    pub by: Option<i64>,
    /// The column whose values identify rows in notes and exceptions.
    pub key: Option<CString>,
    /// The condition that rows must satisfy, from the trigger's condition.
    pub condition: Option<RowCondition>,
    /// The table of exceptions, from the trigger's condition.
    pub exceptions: Option<pg_sys::Oid>,
    /// None for a guard that rejects rows.
    pub notes: Option<Notes>,
}

/// The notes of a guard that accepts near-duplicates.
#[derive(Clone, Copy, PartialEq)]
pub struct Notes {
    /// The notes table, from the trigger's condition.
    pub table: pg_sys::Oid,
    /// Maximum number of earlier rows that a row is noted with.
    pub most: usize,
}

const SHAPE: &str = "Valid arguments are the column, the threshold, and then 'scope=column,...', both 'within=column' and 'by=interval', 'key=column', 'most=...' and 'exceptions' of near_dup_protect, and for documents 'k=...', 'unit=...' and 'fold=...', as in near_dup_guard('body', '0.8', 'scope=tenant_id,\"Group\"').";

/// Upper limit of [`Notes::most`].
const MOST_NOTES: i32 = 1000;

impl GuardOptions {
    /// Returns the options in the arguments of a trigger.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` with a hint that lists the valid arguments.
    pub fn parse<T: AsRef<CStr>>(arguments: &[T]) -> Self {
        let [column, bound, rest @ ..] = arguments else {
            let count = arguments.len();
            invalid(&format!("near_dup_guard got {count} arguments"), SHAPE);
        };
        let mut options = Self {
            column: column.as_ref().to_owned(),
            bound: bound.as_ref().to_string_lossy().into_owned(),
            ..Self::default()
        };
        for option in rest {
            options.add(option.as_ref());
        }
        if options.within.is_some() != options.by.is_some() {
            invalid("near_dup_guard got only one of within and by", SHAPE);
        }
        options
    }

    /// Returns the options of a trigger of `table`. Takes the current names of the columns from the trigger's
    /// condition, and the condition for rows, which follows them there.
    ///
    /// # Errors
    /// The errors of [`Self::parse`].
    ///
    /// # Safety
    /// The trigger is the table's.
    pub unsafe fn from_trigger(trigger: &pg_sys::Trigger, table: &Relation) -> Self {
        // Reading the catalog may invalidate the trigger, so that comes last.
        let arguments = trigger_arguments(trigger);
        let mut options = Self::parse(&arguments);
        let mut named = condition::named(trigger.tgqual).into_iter();
        let kept = condition::kept(trigger.tgqual).unwrap_or_default();
        let columns = options.columns_mut().count();
        options.condition = kept
            .get(columns)
            .and_then(|&node| RowCondition::new(node, table));
        let names = kept
            .into_iter()
            .map_while(|node| names::column(table.oid(), condition::column(node)?));
        for (column, name) in options.columns_mut().zip(names) {
            *column = server_text(&name);
        }
        let tables = options.notes.as_mut().map(|notes| &mut notes.table);
        for table in tables.into_iter().chain(&mut options.exceptions) {
            let Some(oid) = named.next().filter(|_| options.key.is_some()) else {
                invalid(
                    "near_dup_guard got most or exceptions without tables and their key",
                    SHAPE,
                );
            };
            *table = oid;
        }
        options
    }

    /// Returns the notes table, which the condition of `trigger` names first, or None for a guard without notes.
    ///
    /// # Safety
    /// The trigger is one of an open table.
    pub unsafe fn notes_of(trigger: &pg_sys::Trigger) -> Option<pg_sys::Oid> {
        let arguments = trigger_arguments(trigger);
        let mut options = arguments.iter().map(|argument| argument.to_bytes());
        let has_notes = options.any(|option| option.starts_with(b"most="));
        let named = condition::named(trigger.tgqual);
        named.first().copied().filter(|_| has_notes)
    }

    /// Returns the names of all columns in the order in which a trigger's condition contains them.
    pub fn columns_mut(&mut self) -> impl Iterator<Item = &mut CString> {
        let column = std::iter::once(&mut self.column);
        let others = self.scope.iter_mut().chain(&mut self.within);
        column.chain(others).chain(&mut self.key)
    }

    fn add(&mut self, option: &CStr) {
        let bytes = option.to_bytes();
        let place = bytes.iter().position(|&byte| byte == b'=');
        let (name, value) = bytes.split_at(place.unwrap_or(bytes.len()));
        let column = |value: &[u8]| {
            CString::new(value.trim_ascii()).expect("a part of a string without NUL has none")
        };
        let value = value.strip_prefix(b"=").unwrap_or_default();
        let word = String::from_utf8_lossy(value);
        match &*String::from_utf8_lossy(name) {
            name @ ("k" | "unit" | "fold") => {
                let cut = self.shingling.unwrap_or_default();
                self.shingling = Some(with_text(cut, (name, word)).or_raise());
            }
            "scope" => {
                let names = names::listed(&column(value)).filter(|names| !names.is_empty());
                self.scope = names.unwrap_or_else(|| {
                    let given = quoted(&word);
                    invalid(&format!("{given} is not a list of columns"), SHAPE)
                });
            }
            "within" => self.within = Some(column(value)),
            "exceptions" => self.exceptions = Some(pg_sys::InvalidOid),
            "key" => self.key = Some(column(value)),
            "most" => {
                let most = word.parse().unwrap_or_default();
                self.notes = Some(Notes {
                    table: pg_sys::InvalidOid,
                    most: options::within("most", most, 1, MOST_NOTES) as usize,
                });
            }
            "by" => self.by = Some(microseconds_in(&column(value))),
            _ => invalid(
                &format!("unknown option {}", quoted(&option.to_string_lossy())),
                SHAPE,
            ),
        }
    }

    /// Returns the bound for values of `kind`.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a bound out of range, and for k, unit or fold if `kind` is not documents.
    pub fn bound(&self, kind: Kind) -> Bound {
        if kind != Kind::Documents && self.shingling.is_some() {
            invalid(
                "k, unit and fold require a column of type text",
                "They specify how documents are cut into shingles.",
            );
        }
        let number = match kind {
            Kind::Hamming => options::distance_in(&self.bound, MAX_BLOCKS as u32 - 1).into(),
            _ => options::threshold_in(&self.bound),
        };
        let bound = kind.bound(number, Some(self.shingling.unwrap_or_default()));
        bound.expect("the bound is in range")
    }
}

/// Returns whether `trigger` is the main trigger of its guard, which checks rows. The guard's other triggers help it,
/// and do nothing once it is dropped.
pub fn is_main(trigger: &pg_sys::Trigger) -> bool {
    let is = |bits: u32| u32::from(trigger.tgtype as u16) & bits != 0;
    is(pg_sys::TRIGGER_TYPE_ROW)
        && !is(pg_sys::TRIGGER_TYPE_BEFORE)
        && is(pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_UPDATE)
        && trigger.tgnargs > 1
}

/// Returns the options of the guard of `table` that writes to `notes`, or None if there is none. `function` is the
/// guard's trigger function.
pub fn guard_with_notes(
    table: &Relation,
    notes: pg_sys::Oid,
    function: pg_sys::Oid,
) -> Option<GuardOptions> {
    let mut triggers = table.triggers().iter();
    // SAFETY: the triggers are the table's; nothing here looks into the catalog before the options are read.
    unsafe {
        let main = triggers.find(|main| {
            let is_ours = main.tgfoid == function && is_main(main);
            is_ours && GuardOptions::notes_of(main) == Some(notes)
        });
        Some(GuardOptions::from_trigger(main?, table))
    }
}

/// Returns the options of the guard whose notes `trigger` removes, or None if that guard no longer exists.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` for a trigger that names no notes.
pub fn guard_of_helper(table: &Relation, trigger: &pg_sys::Trigger) -> Option<GuardOptions> {
    // SAFETY: the trigger is the table's.
    let Some(notes) = (unsafe { GuardOptions::notes_of(trigger) }) else {
        protocol_violation("near_dup_guard was fired by an event other than INSERT or UPDATE");
    };
    guard_with_notes(table, notes, trigger.tgfoid)
}
