//! Threads that help with a job: pieces of work go out, and results come back in the same order.
//!
//! Only the leader, the thread that calls [`in_order`], may call the server: it makes the pieces, takes the results,
//! and works on pieces itself when it would otherwise wait. Helpers compute. All signals are blocked in them, and they
//! end before `in_order` returns or unwinds.

mod line;
mod threads;

pub use line::{Limits, Line, Work, in_order};
pub use threads::abandon;
