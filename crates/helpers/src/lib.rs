//! Threads that help with a job: pieces of work go out, and results come back in the same order.
//!
//! The leader, the thread that calls [`in_order`], alone may call the server: it makes the pieces,
//! takes the results, and works on pieces itself where it would have to wait. Helpers compute. All
//! signals are blocked in them, and they end before `in_order` returns or unwinds.

mod line;
mod threads;

pub use line::{Limits, Line, Work, in_order};
pub use threads::abandon;
