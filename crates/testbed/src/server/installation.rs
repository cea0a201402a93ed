//! A private copy of the server's installation, to which the extension is added.
//!
//! PostgreSQL finds its library and share directories relative to its own executable, as long as their layout stays
//! the same. So a copy works from anywhere: the system's installation stays untouched, and an ordinary user can test
//! an extension.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use super::home::Home;
use crate::pg_config::PgConfig;
use crate::shell;

/// The programs that a private server and its tests use; other programs of the same directory are not copied.
const PROGRAMS: &[&str] = &[
    "initdb",
    "pg_amcheck",
    "pg_basebackup",
    "pg_config",
    "pg_controldata",
    "pg_ctl",
    "pg_dump",
    "pg_dumpall",
    "pg_isready",
    "pg_resetwal",
    "pg_restore",
    "pg_upgrade",
    "pg_verifybackup",
    "pgbench",
    "postgres",
    "psql",
    "vacuumdb",
];

/// An installation that the extension may be added to.
#[derive(Clone, Debug)]
pub struct Installation {
    pub bindir: PathBuf,
    /// The root of the private copy; none if the system's own installation is used.
    pub private_root: Option<PathBuf>,
}

impl Installation {
    /// Copies the installation of `pg` unless this has been done before. If a copy would not find its own files,
    /// because of an unusual layout, the system's installation is used.
    pub fn create(home: &Home, pg: &PgConfig) -> Result<Installation> {
        let root = home.path.join("install");
        let stamp = root.join("complete");
        let origin = origin(pg);
        if fs::read_to_string(&stamp).is_ok_and(|text| text == origin) {
            return Ok(Installation::private(pg, root));
        }
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir(&root)?;
        for program in PROGRAMS {
            let program = pg.bindir.join(program);
            if program.is_file() {
                copy_file(&program, &below(&root, &program))?;
            }
        }
        if is_own_directory(&pg.pkglibdir) && is_own_directory(&pg.sharedir) {
            copy_tree(&pg.pkglibdir, &root)?;
            copy_tree(&pg.sharedir, &root)?;
        }
        if !finds_own_files(&root, pg) {
            return Ok(Installation {
                bindir: pg.bindir.clone(),
                private_root: None,
            });
        }
        fs::write(&stamp, origin)?;
        Ok(Installation::private(pg, root))
    }

    fn private(pg: &PgConfig, root: PathBuf) -> Installation {
        Installation {
            bindir: below(&root, &pg.bindir),
            private_root: Some(root),
        }
    }

    /// Returns the directory of the extensions' scripts in the private copy.
    pub fn extension_dir(&self, pg: &PgConfig) -> Option<PathBuf> {
        let root = self.private_root.as_ref()?;
        Some(below(root, &pg.sharedir).join("extension"))
    }

    /// Returns one of the server's programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bindir.join(name)
    }
}

/// Identifies the origin of the copy and the other installed extensions.
fn origin(pg: &PgConfig) -> String {
    let extensions = fs::metadata(pg.sharedir.join("extension"));
    let changed = extensions.and_then(|data| data.modified()).ok();
    format!("{}\n{}\n{changed:?}\n", pg.path.display(), pg.version)
}

/// Returns the location of an absolute path in a tree that represents `/`.
pub fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns whether the directory belongs to PostgreSQL alone, unlike for example `/usr/lib`.
fn is_own_directory(dir: &Path) -> bool {
    let text = dir.to_string_lossy();
    text.contains("postgres") || text.contains("pgsql") || !text.starts_with("/usr")
}

/// Returns whether the copy finds its own files, by asking its `pg_config`, which locates itself exactly like the
/// server.
fn finds_own_files(root: &Path, pg: &PgConfig) -> bool {
    let program = below(root, &pg.bindir).join("pg_config");
    let answers = |option: &str, dir: &Path| {
        let answer = shell::run_quietly(Command::new(&program).arg(option));
        answer.is_ok_and(|text| Path::new(&text) == below(root, dir))
    };
    answers("--sharedir", &pg.sharedir) && answers("--pkglibdir", &pg.pkglibdir)
}

fn copy_tree(dir: &Path, root: &Path) -> Result<()> {
    for entry in WalkDir::new(dir) {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            copy_file(entry.path(), &below(root, entry.path()))?;
        }
    }
    Ok(())
}

/// Copies a file. A symbolic link becomes a link to the file that it points to; a broken one is left out.
pub fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        if let Some(dir) = to.parent() {
            fs::create_dir_all(dir)?;
        }
        if !from.is_symlink() {
            fs::copy(from, to)?;
        } else if let Ok(target) = from.canonicalize() {
            symlink(target, to)?;
        }
        Ok(())
    };
    copy().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
