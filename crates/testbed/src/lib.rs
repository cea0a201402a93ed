//! Private servers, and documents to fill them, for tests, benchmarks and the command line.

pub mod corpora;
pub mod documents;
pub mod pg_config;
pub mod progress;
pub mod server;
pub mod setup;
pub mod shell;
pub mod workspace;
