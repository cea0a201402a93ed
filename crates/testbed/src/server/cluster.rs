//! One database cluster: creating it, starting it, stopping it, connecting to it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use postgres::{Client, Config, NoTls};

use super::account::Account;
use super::installation::Installation;
use super::postmaster;
use crate::shell;

/// The superuser of every private cluster.
pub const SUPERUSER: &str = "postgres";

/// Settings of every private cluster: fast, quiet and reached only by its socket. They are also patient, so that a
/// replica on a slow machine does not lose its primary. The replica cancels queries soon, as it may at any time: if
/// it waited for them without limit while replaying that a file is shortened, both would wait for each other.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("shared_preload_libraries", ""),
    ("shared_buffers", "256MB"),
    // Plans that may not scan a table have so high a cost that compiling them would take longer than running them.
    ("jit", "off"),
    ("max_wal_size", "1GB"),
    ("lc_messages", "C"),
    ("timezone", "UTC"),
    ("logging_collector", "off"),
    ("max_standby_streaming_delay", "3s"),
    ("max_standby_archive_delay", "3s"),
    ("wal_receiver_timeout", "0"),
    ("wal_sender_timeout", "0"),
];

/// The time in which a replica must catch up.
const REPLICA_PATIENCE: Duration = Duration::from_mins(10);

/// A database cluster of its own, with its Unix socket in the same directory.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub installation: Installation,
    pub account: Account,
    dir: PathBuf,
    /// Variables for the server's environment.
    environment: Vec<(String, String)>,
}

impl Cluster {
    /// Returns the cluster in `dir`, which need not exist yet.
    pub fn at(dir: PathBuf, installation: &Installation, account: &Account) -> Cluster {
        Cluster {
            installation: installation.clone(),
            account: account.clone(),
            dir,
            environment: Vec::new(),
        }
    }

    /// Sets an environment variable of the server from its next start on.
    pub fn set_environment(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_string(), value.to_string()));
    }

    /// Returns the directory of the Unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Returns the server's log.
    pub fn log_file(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Returns the directory of the cluster's own locales, which the server finds in addition to the system's.
    pub fn locales(&self) -> PathBuf {
        self.dir.join("locales")
    }

    /// Returns whether the cluster has been created.
    pub fn exists(&self) -> bool {
        self.data_dir().join("PG_VERSION").is_file()
    }

    /// Creates the cluster with UTF8, with page checksums, and with the given settings in addition to the usual ones.
    /// Checksums are set because pg_upgrade requires the same setting in both clusters, and PostgreSQL 18 has them by
    /// default.
    pub fn create(&self, settings: &[(&str, &str)]) -> Result<()> {
        self.make_dir()?;
        let data = self.data_dir();
        shell::run_quietly(
            self.server_program("initdb")
                .args([
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--locale=C.UTF-8",
                    "--data-checksums",
                    "--no-sync",
                ])
                .arg(format!("--username={SUPERUSER}"))
                .arg("--pgdata")
                .arg(&data),
        )?;
        let socket_dir = self.dir.to_string_lossy().into_owned();
        self.configure(SETTINGS)?;
        self.configure(&[("unix_socket_directories", &socket_dir)])?;
        self.configure(settings)
    }

    /// Copies a running cluster into this one as its streaming replica, starts it, and waits until it streams: a
    /// replica that is paused earlier never begins to stream.
    pub fn create_replica_of(&self, primary: &Cluster) -> Result<()> {
        self.make_dir()?;
        shell::run_quietly(
            self.server_program("pg_basebackup")
                .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
                .arg(format!("--username={SUPERUSER}"))
                .arg("--host")
                .arg(primary.socket_dir())
                .arg("--pgdata")
                .arg(self.data_dir()),
        )?;
        let socket_dir = self.dir.to_string_lossy().into_owned();
        self.configure(&[("unix_socket_directories", &socket_dir)])?;
        self.start()?;
        wait_until(
            &mut primary.connect("postgres")?,
            "SELECT EXISTS (SELECT FROM pg_stat_replication
                 WHERE state = 'streaming' AND replay_lsn IS NOT NULL)",
        )
    }

    /// Waits until this replica has replayed everything that its primary has written.
    pub fn wait_for(&self, primary: &Cluster) -> Result<()> {
        let mut client = primary.connect("postgres")?;
        let goal: String = client
            .query_one("SELECT pg_current_wal_insert_lsn()::text", &[])?
            .get(0);
        let reached = format!("SELECT pg_last_wal_replay_lsn() >= '{goal}'::pg_lsn");
        wait_until(&mut self.connect("postgres")?, &reached)
    }

    /// Adds settings that take effect when the server is next started.
    pub fn configure(&self, settings: &[(&str, &str)]) -> Result<()> {
        let path = self.data_dir().join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path)?;
        for (name, value) in settings {
            writeln!(file, "{name} = '{}'", value.replace('\'', "''"))?;
        }
        Ok(())
    }

    /// Starts the server unless it is running.
    pub fn start(&self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let started = self
            .server_program("pg_ctl")
            .args(["start", "--wait", "--timeout=600"])
            .arg("--pgdata")
            .arg(self.data_dir())
            .arg("--log")
            .arg(self.log_file())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?
            .success();
        if !started {
            bail!(
                "the server did not start; its log ends:\n{}",
                self.log_tail()
            );
        }
        Ok(())
    }

    /// Stops the server if it is running.
    pub fn stop(&self) -> Result<()> {
        postmaster::stop(&self.data_dir())
    }

    /// Returns whether the server is running.
    pub fn is_running(&self) -> bool {
        postmaster::running(&self.data_dir()).is_some()
    }

    /// Kills the server, as a power failure would.
    pub fn crash(&self) -> Result<()> {
        postmaster::crash(&self.data_dir())
    }

    /// Stops the server and removes the cluster.
    pub fn remove(&self) -> Result<()> {
        self.stop()?;
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns the processor time of all processes of the server so far, in seconds.
    pub fn processor_seconds(&self) -> Result<f64> {
        postmaster::processor_seconds(&self.data_dir())
    }

    /// Returns whether an extension is available for creation on the server.
    pub fn offers(&self, extension: &str) -> Result<bool> {
        let query = "SELECT FROM pg_available_extensions WHERE name = $1";
        let found = self.connect("postgres")?.query_opt(query, &[&extension])?;
        Ok(found.is_some())
    }

    /// Connects to a database of this cluster as its superuser.
    pub fn connect(&self, database: &str) -> Result<Client> {
        Config::new()
            .host_path(self.socket_dir())
            .user(SUPERUSER)
            .dbname(database)
            .application_name("testbed")
            .connect(NoTls)
            .with_context(|| format!("cannot connect to database {database}"))
    }

    /// Returns one of the client programs, with an environment that leads it to this cluster. It runs as the user of
    /// this program.
    pub fn client_program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_remove("LD_LIBRARY_PATH")
            .env("PGHOST", self.socket_dir())
            .env("PGUSER", SUPERUSER)
            .env_remove("PGPORT")
            .env_remove("PGDATABASE")
            .env_remove("PGSERVICE")
            .env_remove("PGOPTIONS");
        command
    }

    /// Returns a `psql` command for a database of this cluster.
    pub fn psql(&self, database: &str) -> Command {
        let mut command = self.client_program(&self.installation.program("psql"));
        command.env("PGDATABASE", database);
        command
    }

    /// Returns the last lines of the server's log.
    pub fn log_tail(&self) -> String {
        let text = fs::read(self.log_file()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn make_dir(&self) -> Result<()> {
        DirBuilder::new()
            .mode(0o700)
            .create(&self.dir)
            .with_context(|| format!("cannot create {}", self.dir.display()))?;
        self.account.take(&self.dir)
    }

    /// Returns one of the server's programs, to be run under the server's account in this directory.
    pub fn server_program(&self, program: &str) -> Command {
        let mut command = self
            .account
            .command(&self.installation.program(program), &self.dir);
        command.env_remove("PGDATA").env_remove("PGPORT");
        command.envs(self.environment.iter().cloned());
        if self.locales().is_dir() {
            let paths = format!("{}:/usr/lib/locale", self.locales().display());
            command.env("LOCPATH", paths);
        }
        command
    }
}

/// Waits until a query, for example about a replica, returns true.
pub fn wait_until(client: &mut Client, question: &str) -> Result<()> {
    let is_true = || Ok(client.query_one(question, &[])?.get(0));
    let is_true = until(REPLICA_PATIENCE, Duration::from_millis(20), is_true)?;
    ensure!(is_true, "never true: {question}");
    Ok(())
}

/// Repeats a check, with pauses, until it returns true. Returns false if it has not when the limit has passed.
pub fn until(
    limit: Duration,
    pause: Duration,
    mut check: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let start = Instant::now();
    while !check()? {
        if start.elapsed() > limit {
            return Ok(false);
        }
        sleep(pause);
    }
    Ok(true)
}
