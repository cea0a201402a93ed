//! The machine and the versions that figures were measured with.

use std::fs;

use anyhow::Result;
use postgres::Client;
use serde::Serialize;

/// The machine and the versions.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: f64,
    /// The kernels that signatures use on this machine.
    pub kernels: &'static str,
    pub postgresql: String,
    pub pg_neardup: String,
    pub date: String,
    /// Versions that the peers report.
    pub peers: Vec<String>,
}

impl Machine {
    /// Returns the properties of this machine and of the server that the client is connected to.
    pub fn read(client: &mut Client, peers: Vec<String>) -> Result<Machine> {
        let row = client.query_one(
            "SELECT current_setting('server_version'), pg_neardup_version(), current_date::text",
            &[],
        )?;
        let processor = field("/proc/cpuinfo", "model name");
        let memory = field("/proc/meminfo", "MemTotal");
        let kilobytes: Option<f64> = memory.split(' ').next().and_then(|kb| kb.parse().ok());
        Ok(Machine {
            processor: processor.replace("(R)", "").replace("  ", " "),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: (kilobytes.unwrap_or_default() / 1048576.0).round(),
            kernels: neardup::kernels::active().name,
            postgresql: row.get(0),
            pg_neardup: row.get(1),
            date: row.get(2),
            peers,
        })
    }

    /// Returns the machine and the versions in one paragraph.
    pub fn line(&self) -> String {
        format!(
            "*{}: {} cores of {}, {} GiB, kernels {}, PostgreSQL {}, pg_neardup {}; {}.*",
            self.date,
            self.cores,
            self.processor,
            self.memory_gib,
            self.kernels,
            self.postgresql,
            self.pg_neardup,
            self.peers.join(", ")
        )
    }
}

/// Returns the value after the colon of the first line that begins with `name`.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("unknown".to_string(), |(_, value)| value.trim().to_string())
}
