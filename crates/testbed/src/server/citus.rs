//! Citus: a coordinator and its workers, as separate servers on this machine.

use anyhow::Result;

use super::{ScratchCluster, Server};

/// The extension's name.
pub const EXTENSION: &str = "citus";

/// Running nodes; the workers hold the documents.
pub struct Citus {
    pub coordinator: ScratchCluster,
    pub workers: Vec<ScratchCluster>,
}

impl Citus {
    /// Starts the nodes, each with both extensions and these settings.
    pub fn start(server: &Server, workers: usize, settings: &[(&str, &str)]) -> Result<Citus> {
        let coordinator = node(server, 0, settings)?;
        let mut client = coordinator.connect("postgres")?;
        let host = host(&coordinator);
        client.execute("SELECT citus_set_coordinator_host($1, 5432)", &[&host])?;
        let mut citus = Citus {
            coordinator,
            workers: Vec::new(),
        };
        for number in 1..=workers {
            let worker = node(server, number, settings)?;
            let host = self::host(&worker);
            client.execute("SELECT citus_add_node($1, 5432)", &[&host])?;
            citus.workers.push(worker);
        }
        Ok(citus)
    }
}

fn node(server: &Server, number: usize, settings: &[(&str, &str)]) -> Result<ScratchCluster> {
    let node = server.scratch_cluster(&format!("citus{number}"))?;
    node.create(&[("shared_preload_libraries", EXTENSION)])?;
    node.configure(&[("citus.local_hostname", &host(&node))])?;
    node.configure(settings)?;
    node.start()?;
    node.connect("postgres")?
        .batch_execute("CREATE EXTENSION citus; CREATE EXTENSION pg_neardup")?;
    Ok(node)
}

/// Returns the directory of the socket by which the nodes reach a node, at port 5432.
fn host(node: &ScratchCluster) -> String {
    node.socket_dir().to_string_lossy().into_owned()
}
