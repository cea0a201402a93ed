//! deduplicate-text-datasets (Lee and others, ACL 2022), built from the user's checkout.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testbed::progress::waiting;
use testbed::server::memory;
use testbed::{shell, workspace};

use super::dir;

/// Number of parts of a suffix array that are made at the same time, as in the tool's own script above 10 MB.
const PARTS: usize = 4;

/// Number of bytes that a part shares with the next part.
const OVERLAP: usize = 100_000;

/// The tool.
pub struct SuffixArrays {
    program: PathBuf,
}

/// The findings of the tool, and its cost.
pub struct Found {
    /// The first bytes of all ranges that occur in several places.
    pub ranges: Vec<usize>,
    pub seconds: f64,
    /// The most private memory of all processes together, in kB.
    pub memory: u64,
    /// Bytes of the files that the tool wrote.
    pub files: u64,
}

impl SuffixArrays {
    pub fn build(checkout: &Path) -> Result<SuffixArrays> {
        let target = dir().join("suffix_arrays");
        let progress = waiting("compiling deduplicate-text-datasets, only once")?;
        let mut build = workspace::cargo();
        build
            .args(["build", "--release", "--manifest-path"])
            .arg(checkout.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target);
        shell::run_quietly(&mut build)?;
        progress.finish_and_clear();
        Ok(SuffixArrays {
            program: target.join("release/dedup_dataset"),
        })
    }

    /// Finds every range of `length` bytes of a file that occurs in several places.
    pub fn find(&self, file: &Path, length: usize) -> Result<Found> {
        let cache = dir().join("suffix_cache");
        fs::create_dir_all(&cache)?;
        for entry in fs::read_dir(&cache)? {
            fs::remove_file(entry?.path())?;
        }
        let start = Instant::now();
        let size = fs::metadata(file)?.len() as usize;
        let parts = self.make_parts(file, size)?;
        let merged = cache.join("merged");
        let mut merge = self.command("merge");
        merge
            .arg("--output-file")
            .arg(&merged)
            .args(["--num-threads", "2"]);
        for part in &parts.files {
            merge.arg("--suffix-path").arg(part);
        }
        let mut memory = parts.memory.max(run(&mut merge)?);
        let table = sibling(file, ".table.bin");
        join(&cache, &table)?;
        let mut similar = self.command("self-similar");
        similar
            .arg("--data-file")
            .arg(file)
            .arg("--cache-dir")
            .arg(&cache);
        similar.args([
            "--num-threads",
            "2",
            "--length-threshold",
            &length.to_string(),
        ]);
        memory = memory.max(run(&mut similar)?);
        let seconds = start.elapsed().as_secs_f64();
        let width = fs::metadata(&table)?.len() as usize / size;
        let mut files = fs::metadata(&table)?.len();
        for part in &parts.files {
            let table = sibling(part, ".table.bin");
            files += fs::metadata(part)?.len() + fs::metadata(&table)?.len();
            fs::remove_file(part)?;
            fs::remove_file(&table)?;
        }
        fs::remove_file(&table)?;
        let ranges = read_ranges(&cache, width, &mut files)?;
        Ok(Found {
            ranges,
            seconds,
            memory,
            files,
        })
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name);
        command
    }

    fn make_parts(&self, file: &Path, size: usize) -> Result<Parts> {
        let length = size.div_ceil(PARTS);
        let (mut children, mut files) = (Vec::new(), Vec::new());
        for start in (0..size).step_by(length) {
            let end = size.min(start + length + OVERLAP);
            let mut make = self.command("make-part");
            make.arg("--data-file").arg(file);
            make.args([
                "--start-byte",
                &start.to_string(),
                "--end-byte",
                &end.to_string(),
            ]);
            children.push(quiet(&mut make).spawn()?);
            files.push(sibling(file, &format!(".part.{start}-{end}")));
            if end == size {
                break;
            }
        }
        let memory = wait_for_all(children)?;
        Ok(Parts { files, memory })
    }
}

/// The parts of a suffix array.
struct Parts {
    files: Vec<PathBuf>,
    memory: u64,
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// Runs a command, and returns its peak memory.
fn run(command: &mut Command) -> Result<u64> {
    wait_for_all(vec![quiet(command).spawn()?])
}

/// Waits for processes, and returns the most memory that they had together.
fn wait_for_all(mut children: Vec<Child>) -> Result<u64> {
    let mut peak = 0;
    loop {
        let (mut taken, mut are_running) = (0, false);
        for child in &mut children {
            match child.try_wait()? {
                Some(status) => ensure!(status.success(), "deduplicate-text-datasets failed"),
                None => {
                    are_running = true;
                    // It may have ended in the meantime.
                    taken += memory::private(child.id() as i32).unwrap_or(0);
                }
            }
        }
        if !are_running {
            return Ok(peak);
        }
        peak = peak.max(taken);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the file whose name has an extension added.
fn sibling(file: &Path, extension: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// Writes the pieces of the merged table, in order, into one file.
fn join(cache: &Path, table: &Path) -> Result<()> {
    let mut pieces = files_named(cache, "merged.")?;
    pieces.sort();
    let mut joined = File::create(table)?;
    for piece in pieces {
        io::copy(&mut File::open(&piece)?, &mut joined)?;
        fs::remove_file(piece)?;
    }
    Ok(())
}

/// Returns the positions in the tool's output files, of `width` bytes each.
fn read_ranges(cache: &Path, width: usize, files: &mut u64) -> Result<Vec<usize>> {
    let mut ranges = Vec::new();
    for file in files_named(cache, "dups_")? {
        let bytes = fs::read(file)?;
        *files += bytes.len() as u64;
        ranges.extend(bytes.chunks_exact(width).map(|position| {
            let mut number = [0; 8];
            number[..width].copy_from_slice(position);
            u64::from_le_bytes(number) as usize
        }));
    }
    Ok(ranges)
}

fn files_named(dir: &Path, beginning: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(beginning) {
            found.push(entry.path());
        }
    }
    Ok(found)
}
