//! The licenses of the libraries that are linked into the extension, or into the Python package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::{shell, workspace};

/// The beginnings of the names of license files.
const FILES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Returns the name, version and license of every library that is linked into a package of the workspace, with the
/// license texts in the library's package. The extension's libraries depend on a feature, the version of PostgreSQL.
pub fn text(package: &str, feature: Option<&str>) -> Result<String> {
    let mut command = workspace::cargo();
    command.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--no-default-features",
    ]);
    command.args(feature.map(|feature| format!("--features={feature}")));
    let metadata: Value = serde_json::from_str(&shell::run_quietly(&mut command)?)?;
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let root = packages.iter().find(|(_, found)| found["name"] == package);
    let mut reached = BTreeSet::new();
    let mut next = vec![
        *root
            .with_context(|| format!("no {package} in the metadata"))?
            .0,
    ];
    while let Some(id) = next.pop() {
        if reached.insert(id) {
            next.extend(linked(nodes[id]));
        }
    }
    let mut text = format!("Libraries that are linked into {package}, and their licenses.\n");
    for id in reached {
        let package = packages[id];
        // The packages of the workspace have the license of pg_neardup.
        if !package["source"].is_null() {
            add(package, &mut text)?;
        }
    }
    Ok(text)
}

fn by_id(values: &Value) -> BTreeMap<&str, &Value> {
    let values = values.as_array().into_iter().flatten();
    values
        .filter_map(|value| Some((value["id"].as_str()?, value)))
        .collect()
}

/// Returns the ids of the packages that a package needs at run time. Procedural macros may be among them, although they
/// are not linked in.
fn linked(node: &Value) -> impl Iterator<Item = &str> {
    let deps = node["deps"].as_array().into_iter().flatten();
    let at_run_time = |dep: &&Value| {
        let mut kinds = dep["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"].is_null())
    };
    deps.filter(at_run_time)
        .filter_map(|dep| dep["pkg"].as_str())
}

fn add(package: &Value, text: &mut String) -> Result<()> {
    let field = |name: &str| package[name].as_str().unwrap_or("unknown");
    *text += &format!(
        "\n{0}\n{1} {2}: {3}\n",
        "=".repeat(80),
        field("name"),
        field("version"),
        field("license")
    );
    let dir = Path::new(field("manifest_path"))
        .parent()
        .context("a manifest has a folder")?;
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && FILES.iter().any(|start| name.starts_with(start)) {
            files.push(entry.path());
        }
    }
    files.sort();
    for file in files {
        *text += &format!("\n{}\n", fs::read_to_string(file)?.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn names_what_is_linked_in() {
        let extension = text("pg_neardup", Some("pg15")).unwrap();
        let python = text("neardup-python", None).unwrap();
        for (name, is_in_extension, is_in_python) in [
            ("pgrx ", true, false),
            ("pyo3 ", false, true),
            ("siphasher ", true, true),
            ("proptest ", false, false),
        ] {
            let heading = format!("\n{}\n{name}", "=".repeat(80));
            assert_eq!(extension.contains(&heading), is_in_extension, "{name}");
            assert_eq!(python.contains(&heading), is_in_python, "{name}");
        }
        assert!(python.contains("Permission is hereby granted"));
    }
}
