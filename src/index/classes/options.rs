//! The options of an operator class: declaring them, and reading the values that PostgreSQL filled in.

use crate::pg::conversion::before_nul;
use neardup::bands::USUAL_KEYS;
use neardup::text::{Fold, Unit};
use pgrx::{Internal, PgLogLevel, pg_sys};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::mem::offset_of;

/// The options of an index column. PostgreSQL fills in those that the column's class declares.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClassOptions {
    varlena_header: i32,
    pub k: i32,
    pub threshold: f64,
    pub unit: i32,
    pub fold: i32,
    pub seed: i32,
    pub keys: i32,
    pub distance: i32,
}

pub const DEFAULT: ClassOptions = ClassOptions {
    varlena_header: 0,
    k: 3,
    threshold: 0.8,
    unit: Unit::Word as i32,
    fold: Fold::Case as i32,
    seed: 0,
    keys: USUAL_KEYS as i32,
    distance: 3,
};

/// The type of PostgreSQL's functions that check options after they have been filled in.
type Check =
    unsafe extern "C-unwind" fn(*mut std::ffi::c_void, *mut pg_sys::relopt_value, std::ffi::c_int);

/// Options being declared. Their names and descriptions are static.
pub struct Declared(*mut pg_sys::local_relopts);

thread_local! {
    /// The start of the statement that last declared options, and the names of these options.
    static NAMES: RefCell<(pg_sys::TimestampTz, Vec<&'static str>)> = const { RefCell::new((0, Vec::new())) };
}

static mut PREVIOUS: pg_sys::emit_log_hook_type = None;

/// Installs the hook that names the valid options. Called once, when a session loads the library.
pub fn install() {
    // SAFETY: called while the library is loaded, before any helper starts.
    unsafe {
        PREVIOUS = pg_sys::emit_log_hook;
        pg_sys::emit_log_hook = Some(hint_at_names);
    }
}

/// Adds a hint with the valid options to PostgreSQL's error about an undeclared option. PostgreSQL raises that error
/// after the options function has returned, so only `emit_log_hook` can add to it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn hint_at_names(report: *mut pg_sys::ErrorData) {
    // PostgreSQL passes the report that it is about to send; strings are NUL-terminated.
    let error = &mut *report;
    let is_unknown = error.elevel == PgLogLevel::ERROR as i32
        && error.hint.is_null()
        && !error.message_id.is_null()
        && CStr::from_ptr(error.message_id) == c"unrecognized parameter \"%s\"";
    if is_unknown && let Some(hint) = NAMES.with_borrow(valid_names) {
        error.hint = pg_sys::MemoryContextStrdup(error.assoc_context, hint.as_ptr());
    }
    if let Some(previous) = PREVIOUS {
        previous(report);
    }
}

/// Returns a hint with the valid options, or None if another statement declared them.
#[allow(clippy::disallowed_methods, reason = "one entry per option")]
fn valid_names((statement, names): &(pg_sys::TimestampTz, Vec<&'static str>)) -> Option<CString> {
    // SAFETY: reads a variable of the backend.
    let now = unsafe { pg_sys::GetCurrentStatementStartTimestamp() };
    let names = names.join("\", \"");
    (*statement == now).then(|| before_nul(format!("Valid parameters are \"{names}\".").as_bytes()))
}

impl Declared {
    /// Begins declaring the options of a class.
    ///
    /// # Safety
    /// `relopts` is the argument that PostgreSQL passes to an options function.
    pub unsafe fn begin(relopts: &mut Internal) -> Self {
        let relopts = relopts
            .get_mut::<pg_sys::local_relopts>()
            .expect("an options function gets the options");
        pg_sys::init_local_reloptions(relopts, size_of::<ClassOptions>());
        NAMES.set((pg_sys::GetCurrentStatementStartTimestamp(), Vec::new()));
        Self(relopts)
    }

    /// Records the name of an option for error hints.
    #[allow(clippy::disallowed_methods, reason = "one entry per option")]
    fn note(&self, name: &'static CStr) {
        NAMES.with_borrow_mut(|(_, names)| names.push(name.to_str().unwrap_or_default()));
    }

    /// Declares `threshold` without limits, because PostgreSQL would print them with six decimals, "between 0.000000
    /// and 1.000000". Instead, `check` checks the options when they are set.
    pub fn threshold(&self, description: &'static CStr, check: Check) {
        self.note(c"threshold");
        // SAFETY: the field at the offset is an f64; PostgreSQL calls `check` with the options.
        unsafe {
            pg_sys::add_local_real_reloption(
                self.0,
                c"threshold".as_ptr(),
                description.as_ptr(),
                DEFAULT.threshold,
                f64::NEG_INFINITY,
                f64::INFINITY,
                offset_of!(ClassOptions, threshold) as i32,
            );
            pg_sys::register_reloptions_validator(self.0, Some(check));
        }
    }

    /// Declares an integer option with its default, minimum and maximum.
    ///
    /// # Safety
    /// [`ClassOptions`] has an i32 at `offset`.
    pub unsafe fn integer(
        &self,
        name: &'static CStr,
        description: &'static CStr,
        [default, least, greatest]: [i32; 3],
        offset: usize,
    ) {
        self.note(name);
        let [name, about] = [name, description].map(CStr::as_ptr);
        let offset = offset as i32;
        pg_sys::add_local_int_reloption(self.0, name, about, default, least, greatest, offset);
    }

    /// Declares an option whose value is one of the names in `choices`, each stored as a number. `valid` is the error
    /// detail for any other name.
    ///
    /// # Safety
    /// The same as for [`Self::integer`].
    pub unsafe fn choice(
        &self,
        [name, description, valid]: [&'static CStr; 3],
        choices: &[(&'static CStr, i32)],
        default: i32,
        offset: usize,
    ) {
        const SIZE: usize = size_of::<pg_sys::relopt_enum_elt_def>();
        self.note(name);
        // The list lives as long as the options, and ends with NULL.
        let members = pg_sys::palloc0((choices.len() + 1) * SIZE);
        let members = members.cast::<pg_sys::relopt_enum_elt_def>();
        for (place, (choice, number)) in choices.iter().enumerate() {
            (*members.add(place)).string_val = choice.as_ptr();
            (*members.add(place)).symbol_val = *number;
        }
        let [name, about, valid] = [name, description, valid].map(CStr::as_ptr);
        let offset = offset as i32;
        pg_sys::add_local_enum_reloption(self.0, name, about, members, default, valid, offset);
    }
}

/// Reads parsed options. Returns the defaults if `options` is NULL or too short.
///
/// # Safety
/// `options` is NULL or a varlena that PostgreSQL made from the options of an operator class.
pub unsafe fn read_options(options: *mut pg_sys::bytea) -> ClassOptions {
    // The length is checked, and any bytes are valid.
    let is_complete =
        !options.is_null() && pgrx::varlena::varsize(options.cast()) >= size_of::<ClassOptions>();
    match is_complete {
        true => options.cast::<ClassOptions>().read_unaligned(),
        false => DEFAULT,
    }
}
