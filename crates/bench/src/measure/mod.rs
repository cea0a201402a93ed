//! Clocks: contenders that take turns, single lookups, sessions of the measured server.

pub mod latency;
pub mod race;
pub mod session;
