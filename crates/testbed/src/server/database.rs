//! Databases for tests: new, with a unique name, and dropped at the end of their scope.

use std::io::Write;
use std::process::Stdio;

use anyhow::Result;
use postgres::Client;

use super::cluster::Cluster;

/// A database for one test.
pub struct Database<'a> {
    pub cluster: &'a Cluster,
    pub name: String,
}

impl<'a> Database<'a> {
    /// Creates an empty database; `options` go to `CREATE DATABASE`, for instance
    /// `ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`.
    pub fn create(cluster: &'a Cluster, name: &str, options: &str) -> Result<Database<'a>> {
        let name = format!("{name}_{}", std::process::id());
        let mut client = cluster.connect("postgres")?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)"))?;
        client.batch_execute(&format!("CREATE DATABASE \"{name}\" {options}"))?;
        Ok(Database { cluster, name })
    }

    /// Creates a database that has the extension.
    pub fn with_extension(cluster: &'a Cluster, name: &str) -> Result<Database<'a>> {
        let database = Database::create(cluster, name, "")?;
        database
            .connect()?
            .batch_execute("CREATE EXTENSION pg_neardup")?;
        Ok(database)
    }

    /// Connects to the database as superuser.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect(&self.name)
    }

    /// Runs a script in psql and returns everything it prints, including errors.
    pub fn psql(&self, script: &str) -> Result<String> {
        let (mut reader, writer) = std::io::pipe()?;
        let mut command = self.cluster.psql(&self.name);
        command
            .args(["--no-psqlrc", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = command.spawn()?;
        // The command keeps copies of the pipe's writing end, so that reading would never end.
        drop(command);
        let script = script.to_string();
        let input = child.stdin.take();
        let feeder = std::thread::spawn(move || {
            input.map_or(Ok(()), |mut input| input.write_all(script.as_bytes()))
        });
        let mut output = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut output)?;
        child.wait()?;
        let _ = feeder.join();
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        let dropped = self.cluster.connect("postgres").and_then(|mut client| {
            let statement = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
            Ok(client.batch_execute(&statement)?)
        });
        if let Err(error) = dropped {
            eprintln!("cannot drop database {}: {error:#}", self.name);
        }
    }
}
