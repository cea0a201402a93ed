//! Slow storage: every read takes some time, reads requested in advance take it together, and all reads are counted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::cluster::Cluster;
use crate::{shell, workspace};

/// A page that a process has read.
pub struct Read {
    /// Its file below the data directory, in the form of `pg_relation_filepath`.
    pub file: String,
    pub block: u64,
    /// How often the process had waited by the time that it had the page.
    pub waits: u64,
}

/// The slow storage of a cluster.
pub struct SlowStorage {
    reads: PathBuf,
}

impl SlowStorage {
    /// Puts slow storage under a cluster that has been created. From the server's next start on, it counts reads,
    /// without a delay.
    pub fn under(cluster: &mut Cluster) -> Result<SlowStorage> {
        let library = cluster.socket_dir().join("slow_storage.so");
        let source = workspace::root().join("crates/testbed/src/server/slow_storage.c");
        shell::run_quietly(
            Command::new("cc")
                .args(["-O1", "-fPIC", "-shared", "-o"])
                .args([&library, &source]),
        )?;
        let reads = cluster.socket_dir().join("reads");
        fs::create_dir(&reads)?;
        cluster.account.take(&library)?;
        cluster.account.take(&reads)?;
        cluster.set_environment("LD_PRELOAD", &library.to_string_lossy());
        cluster.set_environment("SLOW_STORAGE_READS", &reads.to_string_lossy());
        Ok(SlowStorage { reads })
    }

    /// Makes each read take some time, from the server's next start on.
    pub fn set_delay(cluster: &mut Cluster, delay: Duration) {
        let microseconds = delay.as_micros().to_string();
        cluster.set_environment("SLOW_STORAGE_MICROSECONDS", &microseconds);
    }

    /// Returns all pages of data files that a process of the server has read.
    pub fn reads(&self, process: i32) -> Result<Vec<Read>> {
        let path = self.reads.join(process.to_string());
        let text = fs::read_to_string(path).unwrap_or_default();
        let read = |line: &str| {
            let (rest, waits) = line.rsplit_once(' ')?;
            let (file, block) = rest.rsplit_once(' ')?;
            Some(Read {
                file: file.to_string(),
                block: block.parse().ok()?,
                waits: waits.parse().ok()?,
            })
        };
        let reads = text.lines().map(|line| read(line).context("not a read"));
        reads.collect()
    }
}
