//! The names that most modules of the extension use.

pub use super::call::Call;
pub use super::error::{OrRaise, check_interrupts, corrupted, invalid, not_ready, raise};
pub use super::error::{too_large, unsupported, wrong_type};
pub use super::names;
pub use super::progress::{Progress, over};
pub use super::query::{CheckedColumn, Query};
pub use super::relation::Relation;
pub use super::settings::work_mem_bytes;
pub use super::spool::Records;
pub use super::statement::Connection;
pub use super::text::{NewText, Text};
pub use super::value::Keys;
pub use neardup::Result;
pub use neardup::memory::{Grow, collected, copied, filled};
pub use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};
