//! The PostgreSQL installation to build for and run, found through its `pg_config`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{shell, workspace};

/// The major versions that the extension supports.
pub const SUPPORTED: std::ops::RangeInclusive<u16> = 15..=19;

/// Returns the supported versions in words for messages.
pub fn supported() -> String {
    format!("PostgreSQL {} to {}", SUPPORTED.start(), SUPPORTED.end())
}

/// The user's choice of server.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PostgresChoice {
    /// PostgreSQL major version [default: the highest installed with its headers, else the
    /// highest]; NEARDUP_PG_CONFIGS names further installations by the paths of their pg_config, separated by colons
    #[arg(long, global = true, value_name = "MAJOR")]
    pub pg: Option<u16>,
    /// Path of the pg_config of the PostgreSQL to use
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "pg")]
    pub pg_config: Option<PathBuf>,
}

/// An installed PostgreSQL, as described by its `pg_config`.
#[derive(Clone, Debug)]
pub struct PgConfig {
    pub path: PathBuf,
    pub version: String,
    pub major: u16,
    pub bindir: PathBuf,
    pub pkglibdir: PathBuf,
    pub sharedir: PathBuf,
    pub includedir_server: PathBuf,
    pgxs: PathBuf,
}

impl PgConfig {
    /// Returns the installation of the `pg_config` at `path`.
    pub fn read(path: &Path) -> Result<PgConfig> {
        let ask = |option: &str| shell::run_quietly(Command::new(path).arg(option));
        let version = ask("--version")?;
        let major = parse_major(&version)
            .with_context(|| format!("cannot read the version {version:?}"))?;
        Ok(PgConfig {
            path: path.to_path_buf(),
            major,
            version,
            bindir: ask("--bindir")?.into(),
            pkglibdir: ask("--pkglibdir")?.into(),
            sharedir: ask("--sharedir")?.into(),
            includedir_server: ask("--includedir-server")?.into(),
            pgxs: ask("--pgxs")?.into(),
        })
    }

    /// Makes the command use this PostgreSQL.
    pub fn put_into_environment(&self, command: &mut Command) {
        command.env_remove(MAJOR).env(PROGRAM, &self.path);
    }

    /// Returns the Cargo feature that builds for this version.
    pub fn feature(&self) -> String {
        format!("pg{}", self.major)
    }

    /// Returns the release, such as `15.20`.
    pub fn release(&self) -> &str {
        self.version.split_whitespace().nth(1).unwrap_or_default()
    }

    /// Returns a Cargo command that builds for this version.
    pub fn cargo(&self) -> Command {
        let mut command = workspace::cargo();
        command.env("PGRX_PG_CONFIG_PATH", &self.path);
        command
    }

    /// Returns whether a server can be run from this installation.
    pub fn has_server(&self) -> bool {
        ["postgres", "initdb", "pg_ctl"]
            .iter()
            .all(|program| which::which(self.bindir.join(program)).is_ok())
    }

    /// Returns whether extensions can be built for this installation.
    pub fn has_headers(&self) -> bool {
        self.includedir_server.join("postgres.h").is_file()
    }

    /// Returns the server's own regression test driver.
    pub fn pg_regress(&self) -> Result<PathBuf> {
        let src = self.pgxs.ancestors().nth(2).context("odd pgxs path")?;
        let program = src.join("test/regress/pg_regress");
        which::which(&program).with_context(|| {
            let path = program.display();
            format!("{path} is missing; is the server's development package installed?")
        })
    }
}

/// Returns the major version: 15 for `PostgreSQL 15.20 (Debian ...)`, and also for `15beta1` and `15devel`.
fn parse_major(version: &str) -> Option<u16> {
    let number = version.split_whitespace().nth(1)?;
    let digits = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    number[..digits].parse().ok()
}

/// Names further installations, by the paths of their pg_config, separated as in PATH.
const FURTHER: &str = "NEARDUP_PG_CONFIGS";

/// Returns every PostgreSQL of a supported version on this machine that has a server, newest first.
pub fn installed() -> Vec<PgConfig> {
    let mut paths: Vec<PathBuf> = which::which("pg_config").into_iter().collect();
    let further = std::env::var_os(FURTHER).unwrap_or_default();
    paths.extend(std::env::split_paths(&further));
    for major in SUPPORTED.rev() {
        paths.push(format!("/usr/lib/postgresql/{major}/bin/pg_config").into());
        paths.push(format!("/usr/pgsql-{major}/bin/pg_config").into());
    }
    paths.push("/usr/local/pgsql/bin/pg_config".into());
    let mut found: Vec<PgConfig> = paths
        .iter()
        .filter(|path| which::which(path).is_ok())
        .filter_map(|path| PgConfig::read(path).ok())
        .filter(|pg| SUPPORTED.contains(&pg.major) && pg.has_server())
        .collect();
    found.sort_by_key(|pg| std::cmp::Reverse((pg.has_headers(), pg.major)));
    found
}

/// Tells programs without an option for it which version the user chose.
const MAJOR: &str = "NEARDUP_PG";
const PROGRAM: &str = "NEARDUP_PG_CONFIG";

impl PostgresChoice {
    /// Returns the choice made by `NEARDUP_PG_CONFIG` or `NEARDUP_PG`.
    pub fn from_environment() -> Result<PostgresChoice> {
        let major = std::env::var(MAJOR).ok();
        Ok(PostgresChoice {
            pg: major
                .map(|major| major.parse())
                .transpose()
                .context(MAJOR)?,
            pg_config: std::env::var_os(PROGRAM).map(PathBuf::from),
        })
    }

    /// Returns the installed PostgreSQL that fits the choice best, or None. An installation with headers is
    /// preferred to a newer one without them.
    pub fn find(&self) -> Result<Option<PgConfig>> {
        if let Some(path) = &self.pg_config {
            let pg = PgConfig::read(path)?;
            if !SUPPORTED.contains(&pg.major) {
                bail!("{} is not supported; {} are", pg.version, supported());
            }
            if !pg.has_server() {
                bail!(
                    "{} holds no server (postgres, initdb, pg_ctl)",
                    pg.bindir.display()
                );
            }
            return Ok(Some(pg));
        }
        if let Some(major) = self.pg.filter(|major| !SUPPORTED.contains(major)) {
            bail!("PostgreSQL {major} is not supported; {} are", supported());
        }
        let fits = |pg: &PgConfig| self.pg.is_none_or(|major| major == pg.major);
        Ok(installed().into_iter().find(fits))
    }
}

#[cfg(test)]
mod tests {
    use super::{SUPPORTED, parse_major, supported};
    use crate::workspace;
    use std::fs;
    use walkdir::WalkDir;

    #[test]
    fn supported_versions_are_the_same_everywhere() {
        let listed = |entry: fn(u16) -> String, between: &str| {
            SUPPORTED.map(entry).collect::<Vec<_>>().join(between)
        };
        let matrix = format!("pg: [{}]", listed(|major| major.to_string(), ", "));
        let features = listed(|major| format!("pg{major} = [\"pgrx/pg{major}\"]"), "\n");
        let known = listed(|major| format!("    feature = \"pg{major}\""), ",\n");
        for (file, stated) in [
            ("README.md", supported()),
            (
                "META.json",
                format!("\"PostgreSQL\": \"{}.0.0\"", SUPPORTED.start()),
            ),
            (".github/workflows/ci.yml", matrix.clone()),
            (".github/workflows/release.yml", matrix),
            ("Cargo.toml", features + "\n\n"),
            ("Dockerfile", format!("ARG PG={}\n", SUPPORTED.end())),
            ("src/lib.rs", format!("any(\n{known}\n)")),
        ] {
            let text = fs::read_to_string(workspace::root().join(file)).expect(file);
            assert!(text.contains(&stated), "{file} lacks {stated}");
        }
    }

    /// With a `cfg` that names the newest version, the next version would silently lose that code.
    #[test]
    fn code_for_the_newest_version_is_there_for_the_next() {
        let newest = format!("feature = \"pg{}\"", SUPPORTED.end());
        for entry in WalkDir::new(workspace::root().join("src")) {
            let path = entry.expect("src can be read").into_path();
            if path.is_file() && !path.ends_with("src/lib.rs") {
                let text = fs::read_to_string(&path).expect("a source is text");
                assert!(!text.contains(&newest), "{} names it", path.display());
            }
        }
    }

    #[test]
    fn majors_of_releases_and_of_development_versions() {
        assert_eq!(
            parse_major("PostgreSQL 15.20 (Debian 15.20-0+deb12u1)"),
            Some(15)
        );
        assert_eq!(parse_major("PostgreSQL 18beta1"), Some(18));
        assert_eq!(parse_major("PostgreSQL 17devel"), Some(17));
        assert_eq!(parse_major("nonsense"), None);
    }
}
