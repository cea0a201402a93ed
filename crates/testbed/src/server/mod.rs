//! The private PostgreSQL server of a checkout, with the extension installed.

pub mod account;
pub mod citus;
pub mod cluster;
pub mod database;
pub mod extension;
pub mod home;
pub mod installation;
pub mod memory;
pub mod postmaster;
mod script;
pub mod slow_storage;

use std::fs;

use anyhow::Result;

use crate::pg_config::PgConfig;
use account::Account;
use cluster::Cluster;
use home::Home;
use installation::Installation;

/// A running private server.
pub struct Server {
    pub pg: PgConfig,
    pub home: Home,
    pub main: Cluster,
}

impl Server {
    /// Builds the extension, installs it privately and starts the server. Skips each step that is up to date.
    pub fn start(pg: PgConfig) -> Result<Server> {
        Server::start_cluster(pg, "main")
    }

    /// Starts a server of this name, which shares the installed extension with the others.
    pub fn start_cluster(pg: PgConfig, name: &str) -> Result<Server> {
        let account = Account::for_server()?;
        let home = Home::create(pg.major, &account)?;
        let _lock = home.lock()?;
        let installation = Installation::create(&home, &pg)?;
        if installation.private_root.is_none() {
            eprintln!(
                "{} cannot be copied (unusual layout): installing into the server's own directories",
                pg.version
            );
        }
        extension::install(&installation, &pg)?;
        fs::create_dir_all(home.clusters())?;
        let main = Cluster::at(home.clusters().join(name), &installation, &account);
        if !main.exists() {
            eprintln!("Creating a private server in {}", home.path.display());
            main.remove()?;
            main.create(&[])?;
        }
        main.start()?;
        Ok(Server { pg, home, main })
    }

    /// Returns a new cluster for one test, which has not been created yet and is removed when dropped.
    pub fn scratch_cluster(&self, name: &str) -> Result<ScratchCluster> {
        let dir = format!("{name}-{}", std::process::id());
        let dir = self.home.clusters().join(dir);
        let cluster = Cluster::at(dir, &self.main.installation, &self.main.account);
        cluster.remove()?;
        Ok(ScratchCluster { cluster })
    }

    /// Starts a new cluster without autovacuum, whose ANALYZE would hold a snapshot: then rows are not removed, and pages
    /// are not reused.
    pub fn quiet_cluster(&self, name: &str, settings: &[(&str, &str)]) -> Result<ScratchCluster> {
        let cluster = self.scratch_cluster(name)?;
        cluster.create(&[&[("autovacuum", "off")][..], settings].concat())?;
        cluster.start()?;
        Ok(cluster)
    }
}

/// A cluster that is stopped and removed at the end of its scope.
pub struct ScratchCluster {
    cluster: Cluster,
}

impl std::ops::Deref for ScratchCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl std::ops::DerefMut for ScratchCluster {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }
}

impl Drop for ScratchCluster {
    fn drop(&mut self) {
        if let Err(error) = self.cluster.remove() {
            eprintln!("{error:#}");
        }
    }
}
