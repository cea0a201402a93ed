//! The index access method, its operator classes, and planner support.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "pages, scans and nodes are PostgreSQL's; the `# Safety` sections name the callers' obligations"
)]

pub mod am;
pub mod ball;
pub mod ball_functions;
pub mod bound;
pub mod classes;
pub mod constraint_key;
pub mod key_call;
pub mod kind;
pub mod planned_column;
pub mod planner;
pub mod terms;
