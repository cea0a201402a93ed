//! The trigger function `near_dup_guard`: no near-duplicate gets in, whatever others insert at the
//! same time.
//!
//! A row's band keys are locked, then the index is searched for rows of any transaction. A match
//! that is not decided yet is waited for, without the locks, and the search begins anew. A row
//! without a match keeps its locks until it can be found through the index.

use crate::guard::columns::{Columns, EqualColumn, RootKey};
use crate::guard::lock::{self, Owner};
use crate::guard::lookup::{Found, Pending, for_each_candidate};
use crate::guard::options::{Action, Options};
use crate::guard::refusal::{self, Refusal};
use crate::guard::row::{Generated, Row, get};
use crate::guard::table::{self, Table, Tables};
use crate::guard::verify::Document;
use crate::index::kind::{Bound, Kind, Objects};
use crate::pg::call::finfo;
use crate::pg::error::{check_interrupts, raise};
use crate::pg::relation::{Relation, column_type};
use crate::pg::varlena::Varlena;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, c_void};

/// A trigger with its table, columns and indexes, looked up once for each statement.
struct Guard {
    options: Options,
    bound: Bound,
    objects: Objects,
    owner: Owner,
    /// Of the table that the trigger fired for.
    columns: Columns,
    generated: Option<Generated>,
    tables: Vec<Table>,
}

/// The outcome of a search.
enum Search<'a> {
    Clear,
    Undecided(Pending),
    Duplicate(Match<'a>),
}

/// A near-duplicate that is there.
struct Match<'a> {
    table: &'a Table,
    /// Values of its table's primary key.
    key: Vec<Option<pg_sys::Datum>>,
    distance: f64,
}

/// Decides about a row, and raises the ERROR that refuses it.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    let mut refusal = Refusal::NONE;
    // SAFETY: passed on to the caller; this frame holds nothing that needs to be dropped when
    // the ERROR jumps over it.
    unsafe {
        let row = guarded(fcinfo, &mut refusal);
        refusal::raise(&refusal);
        row
    }
}

finfo!(pg_finfo_near_dup_guard);

/// Returns the row to store, or none; a refusal is left to the caller, who has nothing to drop.
///
/// # Safety
/// `fcinfo` is that of the running call.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn guarded(
    fcinfo: pg_sys::FunctionCallInfo,
    refusal: *mut Refusal,
) -> pg_sys::Datum {
    // SAFETY: vouched for by the caller; the guard in fn_extra is dropped with the statement.
    unsafe {
        let row = Row::of_call(fcinfo);
        let function = (*fcinfo).flinfo;
        if (*function).fn_extra.is_null() {
            let guard = Box::new(Guard::new(fcinfo, row.table));
            (*function).fn_extra = Box::into_raw(guard).cast();
            drop_with((*function).fn_mcxt, (*function).fn_extra);
        }
        let guard = &*(*function).fn_extra.cast::<Guard>();
        guard.decide(&row, &mut *refusal)
    }
}

/// Drops the guard, and releases its locks, when the statement's memory is freed.
///
/// # Safety
/// `guard` is a boxed guard in the statement of that context.
unsafe fn drop_with(context: pg_sys::MemoryContext, guard: *mut c_void) {
    // SAFETY: the callback lives in the context that calls it.
    unsafe {
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback = pg_sys::MemoryContextAlloc(context, size);
        let callback = callback.cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(at_statement_end);
        (*callback).arg = guard;
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_statement_end(guard: *mut c_void) {
    // SAFETY: registered with a boxed guard, once.
    let guard = unsafe { Box::from_raw(guard.cast::<Guard>()) };
    lock::release_statement(guard.owner.statement);
}

impl Guard {
    /// # Errors
    /// ERROR for arguments that do not fit the table.
    ///
    /// # Safety
    /// `fcinfo` is that of the running call, and `table` its table.
    unsafe fn new(fcinfo: pg_sys::FunctionCallInfo, table: pg_sys::Relation) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let trigger = (*(*fcinfo).context.cast::<pg_sys::TriggerData>()).tg_trigger;
            let function = (*(*fcinfo).flinfo).fn_oid;
            let statement = (*(*fcinfo).flinfo).fn_mcxt;
            let options = Options::parse(trigger);
            let root = table::root_of(table);
            let root_key = RootKey::of(Relation::open_table(root).as_ptr());
            let columns = Columns::of(table, &options, &root_key);
            let (signature_type, _) = column_type(table, columns.signature);
            let base_type = pg_sys::getBaseType(signature_type);
            let schema = pg_sys::get_func_namespace(function);
            let kind = Kind::of_type(base_type, schema).unwrap_or_else(|| {
                raise(
                    PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                    "near_dup_guard: the column is neither minhash_signature nor bit",
                    "Name the column of the signatures in the trigger's first argument.",
                )
            });
            let bound = options.bound(kind);
            let objects = kind.objects(function);
            let mut tables = Vec::new();
            let search = Tables {
                options: &options,
                kind,
                bound: &bound,
                objects: &objects,
                root_key: &root_key,
            };
            search.under(root, &[], &mut tables);
            Self {
                owner: Owner {
                    statement,
                    table: root,
                    trigger: CStr::from_ptr((*trigger).tgname)
                        .to_string_lossy()
                        .into_owned(),
                },
                generated: Generated::of(table, columns.signature, statement),
                options,
                bound,
                objects,
                columns,
                tables,
            }
        }
    }

    fn decide(&self, row: &Row, refusal: &mut Refusal) -> pg_sys::Datum {
        let signature = match &self.generated {
            // SAFETY: the slot holds the row.
            Some(generated) => unsafe { generated.evaluate(row.slot) },
            None => row.get(self.columns.signature),
        };
        if row.old.is_some() && self.unchanged(row, signature) {
            return row.tuple.into();
        }
        // SAFETY: the column is of the kind's type.
        let keys = signature.and_then(|value| unsafe { self.bound.keys(value) });
        let (Some(signature), Some(keys)) = (signature, keys) else {
            lock::release(&self.owner);
            return self.let_in(row, None);
        };
        match self.find(row, signature, &keys) {
            None => self.let_in(row, None),
            Some(found) => match self.options.action {
                Action::Mark => {
                    let key = found.key.first().copied().flatten();
                    self.let_in(row, key.filter(|_| !found.table.hides_rows()))
                }
                Action::Skip => pg_sys::Datum::null(),
                Action::Reject => {
                    *refusal = Refusal::new(row.table, &self.owner, self.describe(&found));
                    pg_sys::Datum::null()
                }
            },
        }
    }

    /// Searches until the answer is certain. Without a match, the row's keys are locked.
    fn find(&self, row: &Row, signature: pg_sys::Datum, keys: &[u64]) -> Option<Match<'_>> {
        loop {
            lock::release(&self.owner);
            lock::acquire(&self.owner, keys);
            let pending = match self.search(row, signature) {
                Search::Clear => return None,
                Search::Duplicate(found) => {
                    lock::release(&self.owner);
                    return Some(found);
                }
                Search::Undecided(pending) => pending,
            };
            lock::release(&self.owner);
            pending.wait(row.table);
        }
    }

    /// Returns whether an UPDATE leaves all alone that the guard looks at.
    fn unchanged(&self, row: &Row, signature: Option<pg_sys::Datum>) -> bool {
        let same_bytes = match (signature, row.old(self.columns.signature)) {
            // SAFETY: both are of a variable-length type and outlive the call.
            (Some(new), Some(old)) => unsafe { *Varlena::detoast(new) == *Varlena::detoast(old) },
            (new, old) => new.is_none() && old.is_none(),
        };
        let same_scope = self.columns.scope.iter().all(|column| {
            // SAFETY: both are of the column's type.
            unsafe { column.same(row.get(column.number), row.old(column.number)) }
        });
        same_bytes && same_scope
    }

    /// Returns the row to store; `mark` fills its column with the key of the canonical row.
    fn let_in(&self, row: &Row, canonical: Option<pg_sys::Datum>) -> pg_sys::Datum {
        let Some(into) = self.columns.into else {
            return row.tuple.into();
        };
        let mut column = i32::from(into);
        let mut value = canonical.unwrap_or(pg_sys::Datum::null());
        let mut is_null = canonical.is_none();
        // SAFETY: the tuple is of the table; the value is of the column's type.
        unsafe {
            let descriptor = (*row.table).rd_att;
            pg_sys::heap_modify_tuple_by_cols(
                row.tuple,
                descriptor,
                1,
                &mut column,
                &mut value,
                &mut is_null,
            )
            .into()
        }
    }

    fn search(&self, row: &Row, signature: pg_sys::Datum) -> Search<'_> {
        // SAFETY: the column is of the kind's type.
        let ball = unsafe { self.bound.ball(&self.objects, signature) };
        let mut document = self
            .columns
            .document
            .map(|column| Document::new(row.get(column), &self.bound, signature));
        let (mut pending, mut best): (_, Option<Match<'_>>) = (None, None);
        for table in &self.tables {
            let Some((index, column)) = table.index else {
                table::no_index(table.oid, &self.options, &self.bound, &self.objects);
            };
            let (relation, index) = (Relation::open_table(table.oid), Relation::open_index(index));
            let mut visit = |found: &Found| {
                check_interrupts();
                if !self.is_duplicate(row, table, found, ball, document.as_mut()) {
                    return true;
                }
                if found.pending.is_some() {
                    pending = pending.or(found.pending);
                    return self.options.action != Action::Mark;
                }
                let duplicate = self.describe_match(table, found, signature);
                if best
                    .as_ref()
                    .is_none_or(|best| duplicate.distance < best.distance)
                {
                    best = Some(duplicate);
                }
                self.options.action == Action::Mark
            };
            // SAFETY: the index was found to be of our operator class on that table.
            unsafe {
                for_each_candidate(
                    &relation,
                    &index,
                    column,
                    self.objects.operator,
                    ball,
                    &mut visit,
                );
            }
        }
        match (best, pending) {
            // For a mark, a better one may still be decided.
            (_, Some(pending)) if self.options.action == Action::Mark => Search::Undecided(pending),
            (Some(best), _) => Search::Duplicate(best),
            (None, Some(pending)) => Search::Undecided(pending),
            (None, None) => Search::Clear,
        }
    }

    /// Returns whether a row found counts as a near-duplicate of the new one. For `mark` only
    /// canonical rows count.
    fn is_duplicate(
        &self,
        row: &Row,
        table: &Table,
        found: &Found,
        ball: pg_sys::Datum,
        document: Option<&mut Document>,
    ) -> bool {
        // SAFETY: the slot holds a row of the table; values are of its columns' types.
        unsafe {
            let theirs = |column: i16| get(found.slot, column);
            let marked = table
                .columns
                .into
                .is_some_and(|column| theirs(column).is_some());
            // Partitions have the same columns as their root, of the same types.
            let same = |ours: &[EqualColumn], columns: &[EqualColumn]| {
                let mut pairs = ours.iter().zip(columns);
                pairs.all(|(a, b)| a.same(row.get(a.number), theirs(b.number)))
            };
            // Another table's own key says nothing about this one's.
            let same_key = match (&self.columns.key, &table.columns.key) {
                (Some(ours), Some(key)) => {
                    let comparable =
                        (*row.table).rd_id == table.oid || (ours.is_of_root && key.is_of_root);
                    comparable && same(&ours.columns, &key.columns)
                }
                _ => false,
            };
            if marked
                || row.replaces(found, table.oid)
                || same_key
                || !same(&self.columns.scope, &table.columns.scope)
            {
                return false;
            }
            let near = theirs(table.columns.signature).is_some_and(|value| {
                let function = pg_sys::get_opcode(self.objects.operator);
                pg_sys::OidFunctionCall2Coll(function, pg_sys::InvalidOid, value, ball).value() != 0
            });
            near && document.is_none_or(|document| {
                let column = table.columns.document.expect("every table has the column");
                document.resembles(theirs(column))
            })
        }
    }

    fn describe_match<'a>(
        &self,
        table: &'a Table,
        found: &Found,
        signature: pg_sys::Datum,
    ) -> Match<'a> {
        // SAFETY: the slot holds a row of the table; its signature is near the new one.
        unsafe {
            let theirs = get(found.slot, table.columns.signature).expect("it has a signature");
            let columns = table.columns.key.iter().flat_map(|key| &key.columns);
            let key = columns
                .map(|column| get(found.slot, column.number).map(|value| column.copy(value)));
            Match {
                table,
                key: key.collect(),
                distance: self.bound.distance(&self.objects, signature, theirs),
            }
        }
    }

    /// Returns the key of a match, as `(id)=(1)`; NULL if the role may not see it.
    fn describe(&self, found: &Match<'_>) -> *mut std::ffi::c_char {
        let Some(key) = &found.table.columns.key else {
            return std::ptr::null_mut();
        };
        if found.table.hides_rows() {
            return std::ptr::null_mut();
        }
        let mut values: Vec<pg_sys::Datum> = found
            .key
            .iter()
            .map(|value| value.unwrap_or(pg_sys::Datum::null()))
            .collect();
        let mut nulls: Vec<bool> = found.key.iter().map(Option::is_none).collect();
        let index = Relation::open_index(key.index);
        // SAFETY: the values are those of the index; it checks the privileges on the table.
        unsafe {
            pg_sys::BuildIndexValueDescription(
                index.as_ptr(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            )
        }
    }
}

pgrx::extension_sql_file!(
    "../../sql/guard/trigger.sql",
    name = "guard",
    requires = ["gin_minhash"]
);
