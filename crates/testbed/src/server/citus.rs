//! Citus: a coordinator and its workers, as separate servers on this machine.

use anyhow::Result;

use super::{ScratchCluster, Server};

/// The extension's name.
pub const EXTENSION: &str = "citus";

/// The addresses by which the nodes reach each other, at port 5432.
#[derive(Clone, Copy)]
pub enum Hosts {
    Sockets,
    /// Loopback addresses, one for each node: the interface counts the bytes that the nodes exchange.
    Loopback,
}

/// Running nodes; the workers hold the documents.
pub struct Citus {
    pub coordinator: ScratchCluster,
    pub workers: Vec<ScratchCluster>,
}

impl Citus {
    /// Starts the nodes, each with both extensions and these settings.
    pub fn start(
        server: &Server,
        workers: usize,
        hosts: Hosts,
        settings: &[(&str, &str)],
    ) -> Result<Citus> {
        let coordinator = node(server, 0, hosts, settings)?;
        let mut client = coordinator.connect("postgres")?;
        let host = host(&coordinator, 0, hosts);
        client.execute("SELECT citus_set_coordinator_host($1, 5432)", &[&host])?;
        let mut citus = Citus {
            coordinator,
            workers: Vec::new(),
        };
        for number in 1..=workers {
            let worker = node(server, number, hosts, settings)?;
            let host = self::host(&worker, number, hosts);
            client.execute("SELECT citus_add_node($1, 5432)", &[&host])?;
            citus.workers.push(worker);
        }
        Ok(citus)
    }

    /// Returns the processor time of all nodes so far, in seconds.
    pub fn processor_seconds(&self) -> Result<f64> {
        let nodes = self.workers.iter().chain([&self.coordinator]);
        nodes.map(|node| node.processor_seconds()).sum()
    }
}

fn node(
    server: &Server,
    number: usize,
    hosts: Hosts,
    settings: &[(&str, &str)],
) -> Result<ScratchCluster> {
    let node = server.scratch_cluster(&format!("citus{number}"))?;
    node.create(&[("shared_preload_libraries", EXTENSION)])?;
    let host = host(&node, number, hosts);
    node.configure(&[("citus.local_hostname", &host)])?;
    if let Hosts::Loopback = hosts {
        node.configure(&[("listen_addresses", &host)])?;
    }
    node.configure(settings)?;
    node.start()?;
    node.connect("postgres")?
        .batch_execute("CREATE EXTENSION citus; CREATE EXTENSION pg_neardup")?;
    Ok(node)
}

fn host(node: &ScratchCluster, number: usize, hosts: Hosts) -> String {
    match hosts {
        Hosts::Sockets => node.socket_dir().to_string_lossy().into_owned(),
        Hosts::Loopback => format!("127.0.7.{}", number + 1),
    }
}
