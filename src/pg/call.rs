//! Calls whose arguments are read by hand, and C functions without `#[pg_extern]`. A scan calls such C functions for
//! every row, and pgrx's wrapper takes as long as comparing two signatures.

use crate::pg::arrays::names_in;
use crate::pg::encoding::{in_utf8, utf8};
use crate::pg::error::raise;
use crate::pg::varlena::Varlena;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys::{Datum, FunctionCallInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// A running call, whose arguments are read one by one. As an argument of a Rust function, it has no counterpart in
/// SQL.
pub struct Call(FunctionCallInfo);

// SAFETY: pgrx passes on the call information that it got from PostgreSQL.
unsafe impl<'fcx> ArgAbi<'fcx> for Call {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        Self(FunctionCallInfo::unbox_arg_unchecked(arg))
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

// SAFETY: a `Call` has no argument in SQL.
unsafe impl SqlTranslatable for Call {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Call);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::Skip);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

impl Call {
    pub fn fcinfo(&self) -> FunctionCallInfo {
        self.0
    }

    /// Returns argument `number`, which must not be NULL. Errors call it `name`.
    ///
    /// # Errors
    /// ERROR `null_value_not_allowed` if it is NULL.
    pub fn argument(&self, number: usize, name: &str) -> Datum {
        self.optional_argument(number).unwrap_or_else(|| {
            let code = PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED;
            raise(code, &format!("{name} must not be NULL"), "")
        })
    }

    /// Returns argument `number`, or None if it is NULL.
    pub fn optional_argument(&self, number: usize) -> Option<Datum> {
        // SAFETY: the call is running, and its function has that many arguments.
        unsafe { pgrx::fcinfo::pg_getarg_datum(self.0, number) }
    }

    /// Returns argument `number`, which must not be NULL, as `T`, which corresponds to its SQL type. Errors call it
    /// `name`.
    ///
    /// # Errors
    /// The errors of [`Self::argument`].
    pub fn get<T: FromDatum>(&self, number: usize, name: &str) -> T {
        self.argument(number, name);
        self.optional(number).expect("it is not NULL")
    }

    /// Returns argument `number` as `T`, which corresponds to its SQL type, or None if it is NULL.
    pub fn optional<T: FromDatum>(&self, number: usize) -> Option<T> {
        let datum = self.optional_argument(number)?;
        // SAFETY: `T` corresponds to the declared type.
        unsafe { T::from_datum(datum, false) }
    }

    /// Returns argument `number`, of type oid or regclass, which must not be NULL. Errors call it `name`.
    ///
    /// # Errors
    /// The errors of [`Self::argument`].
    pub fn oid(&self, number: usize, name: &str) -> pg_sys::Oid {
        self.get(number, name)
    }

    /// Returns argument `number`, of type name, or None if it is NULL.
    pub fn name(&self, number: usize) -> Option<String> {
        self.optional::<&CStr>(number).map(utf8)
    }

    /// Returns the elements of argument `number`, of type name[], without NULLs; none if it is NULL.
    pub fn names(&self, number: usize) -> Vec<String> {
        let names = self.optional_argument(number);
        // SAFETY: the argument is declared as name[].
        names.map_or_else(Vec::new, |names| unsafe { names_in(names) })
    }

    /// Returns argument `number`, of type text, or None if it is NULL.
    pub fn text(&self, number: usize) -> Option<String> {
        let text = self.optional::<Varlena<'_>>(number);
        text.map(|text| in_utf8(&text))
    }

    fn arguments(&self) -> usize {
        // SAFETY: the call is running.
        usize::try_from(unsafe { (*self.0).nargs }).unwrap_or(0)
    }

    /// Returns the last argument, or None if it is NULL.
    pub fn last_argument(&self) -> Option<Datum> {
        self.optional_argument(self.arguments().checked_sub(1)?)
    }

    /// Returns argument `number`, which some declarations of the function lack: `default` if it is missing, None if it
    /// is NULL.
    pub fn trailing_argument<T: FromDatum>(&self, number: usize, default: T) -> Option<T> {
        match number < self.arguments() {
            true => self.optional(number),
            false => Some(default),
        }
    }

    /// Returns the actual type of a polymorphic argument.
    pub fn argument_type(&self, number: i32) -> pg_sys::Oid {
        // SAFETY: the call is running.
        unsafe { pg_sys::get_fn_expr_argtype((*self.0).flinfo, number) }
    }

    /// Returns the OID of the function that is called.
    pub fn function(&self) -> pg_sys::Oid {
        // SAFETY: the call is running.
        unsafe { (*(*self.0).flinfo).fn_oid }
    }

    /// Returns the schema of the extension.
    pub fn schema(&self) -> pg_sys::Oid {
        // SAFETY: plain catalog lookup.
        unsafe { pg_sys::get_func_namespace(self.function()) }
    }
}

/// Returns the event for which a trigger fires, or None if the function was not called as a trigger.
///
/// # Safety
/// `fcinfo` belongs to the running call.
pub unsafe fn trigger_data<'c>(fcinfo: FunctionCallInfo) -> Option<&'c pg_sys::TriggerData> {
    let data = (*fcinfo).context.cast::<pg_sys::TriggerData>().as_ref();
    data.filter(|data| data.type_ == pg_sys::NodeTag::T_TriggerData)
}

/// Tells PostgreSQL how to call a function that is written by hand. PostgreSQL looks for the symbol `pg_finfo_`
/// followed by the function's name.
macro_rules! finfo {
    ($symbol:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $symbol() -> &'static pgrx::pg_sys::Pg_finfo_record {
            const VERSION_1: pgrx::pg_sys::Pg_finfo_record =
                pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    };
}
pub(crate) use finfo;
