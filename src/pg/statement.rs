//! The extension's own statements, prepared once and run under a snapshot.

use crate::pg::conversion::before_nul;
use crate::pg::encoding::in_utf8;
use crate::pg::error::{OrRaise, internal, not_ready};
use crate::pg::names;
use crate::pg::nodes::elements;
use crate::pg::progress::Progress;
use crate::pg::text::to_server_encoding;
use crate::pg::varlena::Varlena;
use neardup::memory::{Grow, collected, copied};
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// An SPI connection that runs [`Statement`]s.
pub struct Connection {
    snapshot: Option<Snapshot>,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// ERROR `internal_error`.
    pub fn open() -> Self {
        // SAFETY: closed by `close`, or by PostgreSQL after an ERROR.
        if unsafe { pg_sys::SPI_connect_ext(0) } != pg_sys::SPI_OK_CONNECT as i32 {
            internal("SPI_connect failed");
        }
        Self { snapshot: None }
    }

    /// Makes statements that are prepared after this call read the rows of `snapshot` and the transaction's own
    /// changes. Otherwise, each run of a statement reads under a new snapshot.
    pub fn read_under(&mut self, snapshot: Snapshot) {
        self.snapshot = Some(snapshot);
    }

    /// Releases the snapshot of [`Self::read_under`], if there is one.
    pub fn release(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            // SAFETY: it is registered.
            unsafe { pg_sys::UnregisterSnapshot(snapshot.0) };
        }
    }

    pub fn close(mut self) {
        self.release();
        // SAFETY: the connection is open.
        unsafe { pg_sys::SPI_finish() };
    }

    /// Prepares a statement for arguments of `types`.
    pub fn prepare(&self, sql: &str, types: &[pg_sys::Oid]) -> Statement<'_> {
        Statement {
            plan: Self::plan(sql, types),
            snapshot: self.snapshot.as_ref(),
            _kept: None,
        }
    }

    /// Prepares a statement as [`Self::prepare`] does. Keeps its plan for later calls in the session; PostgreSQL
    /// replans it when its tables change.
    #[allow(clippy::disallowed_methods, reason = "texts of statements")]
    pub fn prepare_kept(&self, sql: &str, types: &[pg_sys::Oid]) -> Statement<'_> {
        let key = (sql.to_owned(), types.to_vec());
        let found = KEPT.with(|kept| kept.borrow().get(&key).cloned());
        let kept = found.unwrap_or_else(|| {
            let kept = Rc::new(KeptPlan(Self::plan(sql, types)));
            // SAFETY: the plan has been prepared, and is not kept yet.
            unsafe { pg_sys::SPI_keepplan(kept.0) };
            KEPT.with(|all| {
                let mut all = all.borrow_mut();
                if all.len() >= MOST_KEPT {
                    all.clear();
                }
                all.insert(key, Rc::clone(&kept));
            });
            kept
        });
        Statement {
            plan: kept.0,
            snapshot: self.snapshot.as_ref(),
            _kept: Some(kept),
        }
    }

    fn plan(sql: &str, types: &[pg_sys::Oid]) -> pg_sys::SPIPlanPtr {
        let sql = server_text(sql);
        // SAFETY: the text is NUL-terminated; the types are only read.
        let plan = unsafe {
            let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as i32;
            let types = (types.as_ptr().cast_mut(), types.len() as i32);
            pg_sys::SPI_prepare_cursor(sql.as_ptr(), types.1, types.0, options)
        };
        if plan.is_null() {
            internal("SPI_prepare failed");
        }
        plan
    }

    /// Runs a statement without arguments or results.
    pub fn execute(&self, sql: &str) {
        self.prepare(sql, &[]).execute(&[]);
    }
}

/// A prepared statement, valid as long as its connection.
pub struct Statement<'c> {
    plan: pg_sys::SPIPlanPtr,
    snapshot: Option<&'c Snapshot>,
    _kept: Option<Rc<KeptPlan>>,
}

/// A plan that outlives its connection.
struct KeptPlan(pg_sys::SPIPlanPtr);

impl Drop for KeptPlan {
    fn drop(&mut self) {
        // SAFETY: no statement uses the plan anymore.
        unsafe { pg_sys::SPI_freeplan(self.0) };
    }
}

/// Maximum number of plans kept.
const MOST_KEPT: usize = 100;

/// The text of a statement, and the types of its arguments.
type PlanKey = (String, Vec<pg_sys::Oid>);

thread_local! {
    /// Kept plans by their text. They are not freed at the end of the session.
    static KEPT: ManuallyDrop<RefCell<HashMap<PlanKey, Rc<KeptPlan>>>> =
        ManuallyDrop::new(RefCell::default());
}

impl Statement<'_> {
    /// Runs the statement, and calls `visit` for the rows that it returns. Returns the number of rows returned or
    /// changed.
    pub fn run(
        &self,
        arguments: &[Option<pg_sys::Datum>],
        visit: &mut dyn FnMut(&Tuple<'_>),
    ) -> u64 {
        let none = std::ptr::null_mut();
        let snapshot = self.snapshot.map_or(none, |snapshot| snapshot.0);
        // SAFETY: the snapshot is registered.
        unsafe { self.run_under(snapshot, none, arguments, visit) }
    }

    /// Runs the statement. Returns the number of rows returned or changed.
    pub fn execute(&self, arguments: &[Option<pg_sys::Datum>]) -> u64 {
        self.run(arguments, &mut |_| {})
    }

    /// Runs the statement, and returns the OIDs in its first column, without NULLs.
    pub fn oids(&self, arguments: &[Option<pg_sys::Datum>]) -> Vec<pg_sys::Oid> {
        let mut oids = Vec::new();
        self.run(arguments, &mut |row| {
            oids.try_extend(row.get::<pg_sys::Oid>(1)).or_raise();
        });
        oids
    }

    /// Runs the statement on the rows that are committed now, whatever the transaction's snapshot, as foreign key
    /// checks do. Returns the number of rows returned or changed.
    ///
    /// # Errors
    /// ERROR `t_r_serialization_failure` if it would change a row that the transaction cannot see.
    pub fn run_latest(&self, arguments: &[Option<pg_sys::Datum>]) -> u64 {
        // SAFETY: a transaction is running; both snapshots are valid while the statement runs.
        unsafe {
            pg_sys::CommandCounterIncrement();
            let latest = pg_sys::GetLatestSnapshot();
            let visible = match Snapshot::is_of_transaction() {
                true => pg_sys::GetTransactionSnapshot(),
                false => std::ptr::null_mut(),
            };
            self.run_under(latest, visible, arguments, &mut |_| {})
        }
    }

    /// Runs the statement under `snapshot`, or a new one if it is NULL. Rows that it changes must be in `visible`,
    /// unless that is NULL.
    ///
    /// # Safety
    /// The snapshots are valid.
    unsafe fn run_under(
        &self,
        snapshot: pg_sys::Snapshot,
        visible: pg_sys::Snapshot,
        arguments: &[Option<pg_sys::Datum>],
        visit: &mut dyn FnMut(&Tuple<'_>),
    ) -> u64 {
        let (mut datums, flags) = values_and_nulls(arguments);
        let result = pg_sys::SPI_execute_snapshot(
            self.plan,
            datums.as_mut_ptr(),
            flags.as_ptr(),
            snapshot,
            visible,
            false,
            true,
            0,
        );
        if result < 0 {
            internal("SPI_execute_snapshot failed");
        }
        let visit = &mut |row: &Tuple<'_>| {
            visit(row);
            true
        };
        visit_returned(visit).0
    }

    /// Runs a read-only statement under the connection's snapshot, as a stage of a job, and calls `visit` for its rows
    /// without keeping them.
    pub fn read(&self, stage: &'static str, visit: &mut dyn FnMut(&Tuple<'_>)) {
        let mut progress = None;
        self.read_while(&[], &mut |expected, row| {
            let progress = progress.get_or_insert_with(|| Progress::about(stage, expected));
            progress.step();
            visit(row);
            true
        });
    }

    /// Runs a read-only statement under the connection's snapshot, and calls `visit` for its rows, without keeping
    /// them, until `visit` returns false. `visit` also gets the planner's estimate of the number of rows.
    pub fn read_while(
        &self,
        arguments: &[Option<pg_sys::Datum>],
        visit: &mut dyn FnMut(f64, &Tuple<'_>) -> bool,
    ) {
        let snapshot = self.snapshot.expect("the connection reads under one");
        let (mut datums, flags) = values_and_nulls(arguments);
        // SAFETY: as many values as the statement has parameters; the cursor reads under the active snapshot.
        unsafe {
            pg_sys::PushActiveSnapshot(snapshot.0);
            let portal = pg_sys::SPI_cursor_open(
                std::ptr::null(),
                self.plan,
                datums.as_mut_ptr(),
                flags.as_ptr(),
                true,
            );
            let expected = estimate(portal).0;
            let visit = &mut |row: &Tuple<'_>| visit(expected, row);
            let fetch = |rows: i64| pg_sys::SPI_cursor_fetch(portal, true, rows as _);
            visit_fetched(BATCH, fetch, visit);
            pg_sys::SPI_cursor_close(portal);
            pg_sys::PopActiveSnapshot();
        }
    }

    /// Returns the analyzed query of the statement, or None if the statement is not exactly one query.
    pub fn query(&self) -> Option<*mut pg_sys::Query> {
        // SAFETY: the statement is prepared; its source owns the lists.
        unsafe {
            let [source] = elements(pg_sys::SPI_plan_get_plan_sources(self.plan))?;
            let [query] = elements((*source.cast::<pg_sys::CachedPlanSource>()).query_list)?;
            Some(query.cast())
        }
    }
}

/// Maximum number of arguments of a statement.
const MAX_ARGUMENTS: usize = 8;

/// Returns the arguments of a statement as values, and as flags that tell which are NULL.
fn values_and_nulls(
    arguments: &[Option<pg_sys::Datum>],
) -> ([pg_sys::Datum; MAX_ARGUMENTS], [c_char; MAX_ARGUMENTS]) {
    let mut datums = [pg_sys::Datum::null(); MAX_ARGUMENTS];
    let mut flags = [b'n' as c_char; MAX_ARGUMENTS];
    for (number, value) in arguments.iter().enumerate() {
        if let Some(value) = *value {
            (datums[number], flags[number]) = (value, b' ' as c_char);
        }
    }
    (datums, flags)
}

/// The rows committed at one moment.
pub struct Snapshot(pg_sys::Snapshot);

impl Snapshot {
    /// Takes a snapshot of the rows committed by now or, above READ COMMITTED, of those committed when the transaction
    /// took its first snapshot.
    pub fn take() -> Self {
        // SAFETY: the snapshot is registered until its connection releases it, or the end of the transaction.
        unsafe {
            pg_sys::CommandCounterIncrement();
            Self(pg_sys::RegisterSnapshot(pg_sys::GetTransactionSnapshot()))
        }
    }

    /// Returns whether all snapshots of the transaction show the same committed rows.
    pub fn is_of_transaction() -> bool {
        // SAFETY: reads a variable of the backend.
        unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
    }
}

/// A row returned by a statement, while it is visited. Columns are counted from 1.
pub struct Tuple<'a> {
    tuple: pg_sys::HeapTuple,
    /// Memory that is freed with the row.
    pub(super) memory: pg_sys::MemoryContext,
    descriptor: &'a pg_sys::TupleDescData,
}

impl Tuple<'_> {
    /// Returns the value in `column`, or None for NULL.
    pub fn datum(&self, column: usize) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the tuple has that descriptor.
        let datum = unsafe {
            let descriptor = std::ptr::from_ref(self.descriptor).cast_mut();
            pg_sys::SPI_getbinval(self.tuple, descriptor, column as i32, &mut is_null)
        };
        (!is_null).then_some(datum)
    }

    /// Returns the value of type `wanted` in `column`, or None for NULL.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` for another type: a function that the statement calls can rename the
    /// columns of open tables, and functions.
    pub fn value(&self, column: usize, wanted: pg_sys::Oid) -> Option<pg_sys::Datum> {
        let datum = self.datum(column)?;
        let descriptor = std::ptr::from_ref(self.descriptor).cast_mut();
        // SAFETY: the descriptor is complete.
        let found = unsafe { pg_sys::SPI_gettypeid(descriptor, column as i32) };
        if found != wanted {
            let [found, wanted] = [found, wanted].map(names::type_);
            let message = format!("a statement of pg_neardup returned {found} instead of {wanted}");
            let hint = "Undo the last change of the columns and functions that it uses.";
            not_ready(&message, hint);
        }
        Some(datum)
    }

    /// Returns the value in `column` as `T`, which is passed by value, or None for NULL.
    ///
    /// # Errors
    /// The error of [`Self::value`].
    pub fn get<T: FromDatum + IntoDatum>(&self, column: usize) -> Option<T> {
        // SAFETY: the value has the type.
        self.value(column, T::type_oid())
            .and_then(|datum| unsafe { T::from_datum(datum, false) })
    }

    /// Returns a copy of the text in `column`, in the database's encoding, or None for NULL.
    ///
    /// # Errors
    /// The error of [`Self::value`].
    pub fn text(&self, column: usize) -> Option<Vec<u8>> {
        // SAFETY: as in `get`.
        let text = unsafe { Varlena::from_raw(self.value(column, pg_sys::TEXTOID)?) };
        Some(copied(&text).or_raise())
    }

    /// Returns the text in `column` in UTF-8, or None for NULL.
    pub fn name(&self, column: usize) -> Option<String> {
        self.text(column).map(|text| in_utf8(&text))
    }
}

/// Calls `visit` for the rows that PostgreSQL has just returned, until `visit` returns false, and frees them. Returns
/// the number of rows returned or changed, whether `visit` always returned true, and the bytes that the rows took.
///
/// # Safety
/// The last SPI call ran a statement or fetched rows.
unsafe fn visit_returned(visit: &mut dyn FnMut(&Tuple<'_>) -> bool) -> (u64, bool, usize) {
    let (table, rows) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed);
    if table.is_null() {
        return (rows, true, 0);
    }
    let goes_on = (0..rows as usize).all(|number| {
        visit(&Tuple {
            tuple: *(*table).vals.add(number),
            memory: (*table).tuptabcxt,
            descriptor: &*(*table).tupdesc,
        })
    });
    let bytes = pg_sys::MemoryContextMemAllocated((*table).tuptabcxt, true);
    pg_sys::SPI_freetuptable(table);
    (rows, goes_on, bytes)
}

/// Maximum number of rows per fetch. Larger fetches are hardly faster.
pub(super) const BATCH: i64 = 64;

/// Bytes of the rows of a fetch above which the next fetch is for a single row. Rows whose documents a table stores out
/// of line stay below.
const BATCH_BYTES: usize = 1 << 18;

/// Calls `visit` for the rows that `fetch` returns, until `visit` returns false. Each call of `fetch` is for twice as
/// many rows as the one before, at most `most`, unless these rows were large: PostgreSQL copies all of them. Returns
/// whether there were no more rows.
///
/// # Safety
/// `fetch` fetches up to the given number of the next rows of an open portal.
pub(super) unsafe fn visit_fetched(
    most: i64,
    fetch: impl Fn(i64),
    visit: &mut dyn FnMut(&Tuple<'_>) -> bool,
) -> bool {
    let mut rows = 1;
    loop {
        fetch(rows);
        match visit_returned(visit) {
            (0, ..) => return true,
            (_, false, _) => return false,
            (_, true, bytes) if bytes > BATCH_BYTES => rows = 1,
            (_, true, _) => rows = most.min(2 * rows),
        }
    }
}

/// Returns the planner's estimates for a portal: the number of rows, and the bytes of each. Both are 0 if there is no
/// plan.
///
/// # Safety
/// The portal is open.
pub(super) unsafe fn estimate(portal: pg_sys::Portal) -> (f64, usize) {
    let statement = pg_sys::PortalGetPrimaryStmt(portal).as_ref();
    match statement.and_then(|statement| statement.planTree.as_ref()) {
        Some(plan) => (plan.plan_rows, plan.plan_width.max(0) as usize),
        None => (0.0, 0),
    }
}

/// Returns a text in the database's encoding as a datum.
pub fn text_datum(text: &[u8]) -> pg_sys::Datum {
    // SAFETY: the bytes are copied.
    unsafe { pg_sys::cstring_to_text_with_len(text.as_ptr().cast(), text.len() as i32) }.into()
}

/// Returns texts in the database's encoding as a `text[]`.
pub fn text_array<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> pg_sys::Datum {
    array_of_texts(collected(texts.into_iter().map(text_datum)).or_raise())
}

/// Returns datums of type text as a `text[]`.
pub fn array_of_texts(mut elements: Vec<pg_sys::Datum>) -> pg_sys::Datum {
    // SAFETY: the elements are texts.
    unsafe {
        pg_sys::construct_array(
            elements.as_mut_ptr(),
            elements.len() as i32,
            pg_sys::TEXTOID,
            -1,
            false,
            pg_sys::TYPALIGN_INT as c_char,
        )
    }
    .into()
}

/// Returns a text in the database's encoding, cut at the first NUL.
pub fn server_text(text: &str) -> CString {
    before_nul(&to_server_encoding(text))
}
