//! The servers, documents and options that all measurements share.

use std::iter::successors;
use std::path::PathBuf;

use anyhow::Result;
use testbed::documents::Texts;
use testbed::documents::words::Words;
use testbed::server::{ScratchCluster, Server};

use crate::peers::Peers;

/// The settings of measured servers, which keep tables of a million documents in memory.
pub const SERVER_SETTINGS: [(&str, &str); 3] = [
    ("shared_buffers", "2GB"),
    ("max_wal_size", "32GB"),
    ("autovacuum", "off"),
];

/// The size of a measurement.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Number of documents to generate.
    pub documents: u64,
    /// Average number of words of a document of `scale`.
    pub length: usize,
    /// The number of turns of contenders that take milliseconds.
    pub rounds: usize,
    /// The number of turns of contenders that take seconds.
    pub long_rounds: usize,
}

impl Scale {
    /// Returns the numbers of documents with which growth is measured, each ten times the one before.
    pub fn growing(&self) -> Vec<u64> {
        let tenth = |size: &u64| Some(size / 10).filter(|size| *size >= LEAST_GROWN);
        let mut sizes: Vec<u64> = successors(Some(self.documents), tenth).collect();
        sizes.reverse();
        sizes
    }
}

/// Minimum number of documents at which growth is measured.
const LEAST_GROWN: u64 = 10_000;

/// The context of a measurement.
pub struct Bench<'a> {
    pub server: &'a Server,
    pub peers: &'a Peers,
    pub texts: &'a Texts,
    pub words: &'a Words,
    pub scale: Scale,
    /// The directory of results.
    pub results: PathBuf,
}

impl Bench<'_> {
    /// Returns a new server to measure, not yet started.
    pub fn cluster(&self, name: &str) -> Result<ScratchCluster> {
        let cluster = self.server.scratch_cluster(name)?;
        cluster.create(&SERVER_SETTINGS)?;
        Ok(cluster)
    }

    /// Returns a new server, started.
    pub fn started_cluster(&self) -> Result<ScratchCluster> {
        let cluster = self.cluster("bench")?;
        cluster.start()?;
        Ok(cluster)
    }
}
