//! Shared by tests, benchmarks and the command line: private servers, and documents to fill them.

pub mod corpora;
pub mod documents;
pub mod pg_config;
pub mod progress;
pub mod server;
pub mod setup;
pub mod shell;
pub mod workspace;
