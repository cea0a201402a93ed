//! What the demo prints.

use std::time::Duration;

use anyhow::Result;
use postgres::Client;
use testbed::documents::source::LeftOut;

use super::THRESHOLD;
use super::differences::describe;
use super::groups::Group;
use super::load::Loaded;
use super::pairs::Found;

/// How many groups are printed, and how many texts of each.
const GROUPS: usize = 8;
const MEMBERS: usize = 4;

/// Prints the largest groups with what differs in them.
pub fn groups(client: &mut Client, groups: &[Group]) -> Result<()> {
    for (number, group) in groups.iter().take(GROUPS).enumerate() {
        let texts = group.others.len() + 1;
        println!(
            "\nGroup {}: {} documents, {texts} different texts",
            number + 1,
            group.documents()
        );
        let (name, body) = document(client, group.first)?;
        println!("        {name}{}", copies(group.copies));
        for member in group.others.iter().take(MEMBERS) {
            let (other_name, other_body) = document(client, member.id)?;
            println!(
                "  {:.3} {other_name}{}",
                member.similarity,
                copies(member.copies)
            );
            for line in describe(&body, &other_body) {
                println!("          {line}");
            }
        }
        if group.others.len() > MEMBERS {
            println!("        and {} more texts", group.others.len() - MEMBERS);
        }
    }
    if groups.len() > GROUPS {
        println!("\nand {} more groups", groups.len() - GROUPS);
    }
    Ok(())
}

fn document(client: &mut Client, id: i64) -> Result<(String, String)> {
    let row = client.query_one("SELECT name, body FROM documents WHERE id = $1", &[&id])?;
    Ok((row.get(0), row.get(1)))
}

fn copies(number: i64) -> String {
    match number {
        1 => String::new(),
        2 => " (and 1 copy)".into(),
        _ => format!(" (and {} copies)", number - 1),
    }
}

/// Prints the figures, and how to go on.
pub fn summary(
    client: &mut Client,
    loaded: &Loaded,
    found: &Found,
    groups: usize,
    search_time: Duration,
) -> Result<()> {
    let size = "SELECT coalesce(avg(pg_column_size(sig)), 0)::float8 FROM documents";
    let size: f64 = client.query_one(size, &[])?.get(0);
    let megabytes = loaded.bytes as f64 / 1e6;
    let seconds = loaded.time.as_secs_f64();
    let copies: i64 = found.texts.iter().map(|text| text.copies - 1).sum();
    println!();
    println!(
        "Documents        {} ({megabytes:.1} MB){}",
        loaded.documents,
        left_out(&loaded.left_out)
    );
    println!(
        "Loading          {seconds:.2} s with signatures = {:.1} MB/s",
        megabytes / seconds
    );
    println!("Band index       {:.2} s", loaded.index_time.as_secs_f64());
    println!("Signature        {size:.0} bytes a document");
    println!("Copies           {copies} documents have the same signature as an earlier one");
    println!(
        "Near-duplicates  {} pairs of different texts at similarity >= {THRESHOLD}, in {groups} groups, found in {:.2} s",
        found.pairs.len(),
        search_time.as_secs_f64()
    );
    println!("\nExplore further:  cargo xtask psql");
    println!("for instance with:");
    println!("  SELECT b.name, minhash_sim(a.sig, b.sig) FROM documents a, documents b");
    println!("  WHERE a.id = 1 AND a.id <> b.id ORDER BY a.sig <=> b.sig LIMIT 10;");
    Ok(())
}

fn left_out(left_out: &LeftOut) -> String {
    let reasons = [
        (left_out.not_text, "not UTF-8 text"),
        (left_out.too_large, "too large"),
        (left_out.unreadable, "unreadable"),
    ];
    let reasons = reasons.iter().filter(|(number, _)| *number > 0);
    let reasons: Vec<String> = reasons
        .map(|(number, reason)| format!("{number} {reason}"))
        .collect();
    match reasons.is_empty() {
        true => String::new(),
        false => format!("; left out: {}", reasons.join(", ")),
    }
}
