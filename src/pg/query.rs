//! Reads a query given as text, row by row, in an order that depends only on the query.

use crate::pg::call::Call;
use crate::pg::catalog::is_text;
use crate::pg::error::{OrRaise, wrong_type};
use crate::pg::names;
use crate::pg::progress::Progress;
use crate::pg::settings::Settings;
use crate::pg::statement::{BATCH, Connection, Tuple, estimate, visit_fetched};
use neardup::memory::Grow;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::{direct_function_call_as_datum, pg_sys};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// A column of a query's result whose type has not been checked.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    number: i32,
    column_type: pg_sys::Oid,
}

/// A column whose type has been checked. No value of a query is read without one.
#[derive(Debug, Clone, Copy)]
pub struct CheckedColumn {
    number: usize,
    /// True if values are documents of type `char(n)`, whose trailing spaces are ignored.
    is_padded: bool,
}

/// Rejects a query for the number of its columns, with the hint `valid`.
pub fn wrong_columns(columns: &[Column], valid: &str) -> ! {
    let count = columns.len();
    let s = if count == 1 { "" } else { "s" };
    wrong_type(&format!("the query yields {count} column{s}"), valid)
}

impl Column {
    pub fn type_name(&self) -> String {
        names::type_(self.column_type)
    }

    /// Returns the column and the result of `of_type` for its type or, if this is a domain, for the type under it.
    /// Returns None if `of_type` does.
    pub fn kind<K>(
        &self,
        of_type: impl FnOnce(pg_sys::Oid) -> Option<K>,
    ) -> Option<(K, CheckedColumn)> {
        Some((of_type(self.base_type())?, self.checked(true)))
    }

    fn checked(&self, may_be_documents: bool) -> CheckedColumn {
        CheckedColumn {
            number: self.number as usize,
            is_padded: may_be_documents && self.base_type() == pg_sys::BPCHAROID,
        }
    }

    fn base_type(&self) -> pg_sys::Oid {
        // SAFETY: plain catalog lookup.
        unsafe { pg_sys::getBaseType(self.column_type) }
    }

    /// Returns the column after checking that it is of type `expected` or a domain over it.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` otherwise.
    pub fn of_type(&self, expected: pg_sys::Oid, position: &str, what: &str) -> CheckedColumn {
        let is_expected = self.column_type == expected || self.base_type() == expected;
        self.check(is_expected, expected, position, what);
        self.checked(false)
    }

    /// Returns the column after checking that it holds documents, which are values of a text type.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` otherwise.
    pub fn of_documents(&self, position: &str) -> CheckedColumn {
        let is_expected = is_text(self.base_type());
        self.check(is_expected, pg_sys::TEXTOID, position, "document");
        self.checked(true)
    }

    fn check(&self, is_expected: bool, expected: pg_sys::Oid, position: &str, what: &str) {
        if !is_expected {
            let expected = names::type_(expected);
            let given = self.type_name();
            wrong_type(
                &format!(
                    "the {position} column of the query is of type {given} instead of {expected}"
                ),
                &format!("The {position} column is the {what}; cast it to {expected}."),
            );
        }
    }

    /// Raises the error for a column whose type is not among those in the hint `valid`.
    pub fn reject(&self, position: &str, valid: &str) -> ! {
        let type_name = self.type_name();
        let message = format!("the {position} column of the query is of type {type_name}");
        wrong_type(&message, valid)
    }
}

/// A planned query that has not been read. Several may be open at once.
pub struct Query {
    portal: pg_sys::Portal,
    text: *const c_char,
}

impl Query {
    /// Starts the query in argument `number` of `call`. Errors call it `name`. The fields of the call's last argument
    /// are the query's `$1`, `$2`... The query uses no parallel plan, and no scan that joins another in progress, so
    /// that rows come in the same order every time.
    ///
    /// # Errors
    /// ERROR `null_value_not_allowed` if it is NULL.
    pub fn open(call: &Call, number: usize, name: &str) -> Self {
        Self::start(call, number, name, 0)
    }

    /// Starts a query as [`Self::open`] does, planned for its first rows.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn open_for_first_rows(call: &Call, number: usize, name: &str) -> Self {
        Self::start(call, number, name, pg_sys::CURSOR_OPT_FAST_PLAN)
    }

    /// Starts a query with further cursor `options`.
    fn start(call: &Call, number: usize, name: &str, options: u32) -> Self {
        let text = call.argument(number, name);
        let parameters = QueryParameters::of_call(call);
        // SAFETY: the argument is declared as text; the portal outlives the connection, and copies the parameters,
        // a value for each type.
        unsafe {
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let connection = Connection::open();
            let portal = pg_sys::SPI_cursor_open_with_args(
                std::ptr::null(),
                text,
                parameters.types.len() as i32,
                parameters.types.as_ptr().cast_mut(),
                parameters.values.as_ptr().cast_mut(),
                parameters.nulls.as_ptr(),
                false,
                (pg_sys::CURSOR_OPT_NO_SCROLL | options) as i32,
            );
            connection.close();
            // A function of another query could close it.
            pg_sys::PinPortal(portal);
            Self { portal, text }
        }
    }

    #[allow(clippy::disallowed_methods, reason = "at most 1600 columns")]
    pub fn columns(&self) -> Vec<Column> {
        // SAFETY: the portal is open, and one that returns rows.
        unsafe {
            let descriptor = (*self.portal).tupDesc;
            (1..=(*descriptor).natts)
                .map(|number| Column {
                    number,
                    column_type: pg_sys::SPI_gettypeid(descriptor, number),
                })
                .collect()
        }
    }

    /// Returns the columns of the query, which must have `N`.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` with the hint `valid` for another number of columns.
    pub fn exactly<const N: usize>(&self, valid: &str) -> [Column; N] {
        let columns = self.columns().try_into();
        columns.unwrap_or_else(|columns: Vec<_>| wrong_columns(&columns, valid))
    }

    /// Returns the planner's estimates of the number of rows and of the bytes of each.
    pub fn estimate(&self) -> (f64, usize) {
        // SAFETY: the portal is open.
        unsafe { estimate(self.portal) }
    }

    /// Calls `visit` for every row, each a step of `stage`, and ends the query.
    pub fn for_each(self, stage: &'static str, visit: &mut dyn FnMut(&QueryRow<'_>)) {
        let mut progress = Progress::about(stage, self.estimate().0);
        self.read(BATCH, &mut |row| {
            progress.step();
            visit(row);
            true
        });
    }

    /// Calls `visit` for each row until `visit` returns false, and ends the query. Fetches one row at a time, and none
    /// after `visit` has returned false. Returns whether the query had no more rows.
    pub fn for_each_while(self, visit: &mut dyn FnMut(&QueryRow<'_>) -> bool) -> bool {
        self.read(1, visit)
    }

    /// Calls `visit` for each row, fetched in batches of up to `batch`, until `visit` returns false, and ends the query.
    /// Returns whether the query had no more rows.
    fn read(self, batch: i64, visit: &mut dyn FnMut(&QueryRow<'_>) -> bool) -> bool {
        let settings = Settings::begin();
        settings.set(c"synchronize_seqscans", c"off");
        let connection = Connection::open();
        // SAFETY: the portal is open.
        let is_exhausted = unsafe {
            let visit = &mut |row: &Tuple<'_>| visit(&QueryRow(row));
            let is_exhausted = visit_fetched(batch, |rows| self.fetch(rows), visit);
            pg_sys::UnpinPortal(self.portal);
            pg_sys::SPI_cursor_close(self.portal);
            is_exhausted
        };
        connection.close();
        settings.take_back();
        is_exhausted
    }

    /// Fetches up to `rows` rows. Errors name the query in their context, as SPI does while it plans one.
    ///
    /// # Safety
    /// The portal is open.
    unsafe fn fetch(&self, rows: i64) {
        let mut callback = pg_sys::ErrorContextCallback {
            previous: pg_sys::error_context_stack,
            callback: Some(name_query),
            arg: self.text.cast_mut().cast(),
        };
        let _popped = Popped(callback.previous);
        pg_sys::error_context_stack = &raw mut callback;
        pg_sys::SPI_cursor_fetch(self.portal, true, rows as _);
    }
}

/// A guard that removes a callback from the stack of error contexts when dropped, even by an ERROR.
struct Popped(*mut pg_sys::ErrorContextCallback);

impl Drop for Popped {
    fn drop(&mut self) {
        // SAFETY: the entries below the callback outlive it.
        unsafe { pg_sys::error_context_stack = self.0 };
    }
}

unsafe extern "C-unwind" {
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
}

/// Adds the text of a query to the error that is being reported: as its context or, if the error has a position, as the
/// text that the position is in.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn name_query(text: *mut c_void) {
    let position = pg_sys::geterrposition();
    if position > 0 {
        pg_sys::errposition(0);
        pg_sys::internalerrposition(position);
        pg_sys::internalerrquery(text.cast());
    } else {
        pg_sys::set_errcontext_domain(null_mut());
        errcontext_msg(c"SQL statement \"%s\"".as_ptr(), text);
    }
}

/// The values of `$1`, `$2`... in a query.
#[derive(Default)]
struct QueryParameters {
    types: Vec<pg_sys::Oid>,
    values: Vec<pg_sys::Datum>,
    /// `n` for NULL, a space for a value.
    nulls: Vec<c_char>,
}

impl QueryParameters {
    /// Returns the fields of the call's last argument, a record, or none if it is NULL. A literal of unknown type becomes
    /// text, as in EXECUTE USING.
    fn of_call(call: &Call) -> Self {
        let mut parameters = Self::default();
        let Some(row) = call.last_argument() else {
            return parameters;
        };
        // SAFETY: every function that takes a query declares `params` last, as record; its type has that many columns.
        // A value of type unknown is a C string.
        unsafe {
            let row = pg_sys::pg_detoast_datum(row.cast_mut_ptr());
            let row = row.cast::<pg_sys::HeapTupleHeaderData>();
            let of_row = (*row).t_choice.t_datum;
            let descriptor =
                pg_sys::lookup_rowtype_tupdesc_copy(of_row.datum_typeid, of_row.datum_typmod);
            for number in 1..=(*descriptor).natts {
                let mut is_null = false;
                let mut value = pg_sys::GetAttributeByNum(row, number as i16, &mut is_null);
                let mut of_value = pg_sys::SPI_gettypeid(descriptor, number);
                if of_value == pg_sys::InvalidOid {
                    continue; // a dropped column
                }
                if of_value == pg_sys::UNKNOWNOID {
                    of_value = pg_sys::TEXTOID;
                    if !is_null {
                        value = pg_sys::cstring_to_text(value.cast_mut_ptr()).into();
                    }
                }
                parameters.types.try_push(of_value).or_raise();
                parameters.values.try_push(value).or_raise();
                let null = if is_null { b'n' } else { b' ' };
                parameters.nulls.try_push(null as c_char).or_raise();
            }
        }
        parameters
    }
}

/// A row while it is visited.
pub struct QueryRow<'a>(&'a Tuple<'a>);

impl QueryRow<'_> {
    /// Returns the value of a column of this query, or None for NULL. A document of type `char(n)` is cast to text.
    pub fn get(&self, column: CheckedColumn) -> Option<pg_sys::Datum> {
        let value = self.0.datum(column.number)?;
        if !column.is_padded {
            return Some(value);
        }
        // SAFETY: `rtrim1` is the cast; its result is freed with the row.
        unsafe {
            PgMemoryContexts::For(self.0.memory)
                .switch_to(|_| direct_function_call_as_datum(pg_sys::rtrim1, &[Some(value)]))
        }
    }
}
