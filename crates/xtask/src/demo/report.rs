//! Output of the demo.

use std::path::Path;

use super::keep::Kept;
use super::load::Loaded;
use super::reject::Rejected;
use super::search::{Found, Group, Text};
use crate::psql::DEMO_DATABASE;

/// The number of words of a difference to show, and the number of characters of each word.
const WORDS: usize = 6;
const LETTERS: usize = 30;

/// Prints groups and the differences within them.
pub fn groups(groups: &[Group]) {
    for (number, group) in (1..).zip(groups) {
        println!(
            "\nGroup {number}: {} documents, {} different texts",
            group.documents, group.different
        );
        for text in &group.texts {
            let (name, copies) = (&text.name, copies(text.documents));
            match text.similarity {
                Some(similarity) if similarity < 1.0 => {
                    println!("  {similarity:.3} {name}{copies}: {}", text.kind);
                }
                _ => println!("        {name}{copies}"),
            }
            difference(text);
        }
        let more = group.different - group.texts.len() as i64;
        if more > 0 {
            println!("        and {more} more texts");
        }
    }
}

fn copies(documents: i64) -> String {
    match documents {
        1 => String::new(),
        2 => " (and 1 copy)".into(),
        _ => format!(" (and {} copies)", documents - 1),
    }
}

fn difference(text: &Text) {
    for (sign, words) in [('-', &text.removed), ('+', &text.added)] {
        if !words.is_empty() {
            println!("          {sign} {}", shorten(words));
        }
    }
}

fn shorten(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().take(WORDS).map(|word| clip(word)).collect();
    match words.len() {
        0..=WORDS => shown.join(" "),
        number => format!("{} ... ({number} words)", shown.join(" ")),
    }
}

fn clip(word: &str) -> String {
    match word.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_string(),
    }
}

/// Prints the figures, and how to continue with the server whose sockets are in a directory.
pub fn summary(loaded: &Loaded, found: &Found, socket_dir: &Path) {
    let more = found.clusters - found.groups.len();
    if more > 0 {
        println!("\nand {more} more groups");
    }
    let megabytes = loaded.bytes as f64 / 1e6;
    let seconds = loaded.time.as_secs_f64();
    println!();
    println!(
        "Documents        {} ({megabytes:.1} MB){}",
        loaded.documents, loaded.left_out
    );
    println!(
        "Loading          {seconds:.2} s = {:.1} MB/s",
        megabytes / seconds
    );
    println!("Index            {:.2} s", loaded.index_time.as_secs_f64());
    println!(
        "Copies           {} documents have the same text as an earlier one",
        found.copies
    );
    println!(
        "Near-duplicates  {} pairs of different texts at resemblance >= 0.8, in {} groups (identical texts count once), found in {:.2} s",
        found.pairs,
        found.clusters,
        found.search_time.as_secs_f64()
    );
    println!(
        "Lookup           {:.1} ms for the near-duplicates of one document through the index",
        1e3 * found.lookup_time.as_secs_f64()
    );
    println!(
        "Order            {:.1} ms for the ten most similar of these, in order",
        1e3 * found.order_time.as_secs_f64()
    );
    kept(&found.kept);
    rejected(&found.rejected);
    println!("\nExplore further:  cargo xtask psql");
    println!("for instance with:");
    println!("  SELECT b.name, resemblance(a.body, b.body) FROM documents a, documents b");
    println!("  WHERE a.id < b.id AND near_dup(b.body, a.body, 0.8) LIMIT 10;");
    println!(
        "\nA page about all groups, with the Python package (pip install './crates/python[lab]'):"
    );
    println!(
        "  neardup report 'host={} user=postgres dbname={DEMO_DATABASE}' 'SELECT id, body FROM documents ORDER BY id' -o report.html",
        socket_dir.display()
    );
}

fn kept(kept: &Kept) {
    println!(
        "Kept clusters    {} by near_dup_track in {:.2} s; '{}' came: {}, of {} documents now, refreshed in {:.1} ms",
        kept.clusters,
        kept.track_time.as_secs_f64(),
        kept.copy,
        kept.event,
        kept.members,
        1e3 * kept.refresh_time.as_secs_f64()
    );
}

fn rejected(rejected: &Rejected) {
    println!(
        "Constraint       {} documents let in, one of each group, in {:.2} s; a copy of one:",
        rejected.accepted,
        rejected.time.as_secs_f64()
    );
    println!("                 {}", rejected.outcome);
}
