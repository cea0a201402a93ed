//! The words in which two documents differ, briefly.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How many changes are shown, and how many words of each.
const CHANGES: usize = 3;
const WORDS: usize = 6;

/// Comparing two long and very different documents is cut short, and shows larger changes then.
const PATIENCE: Duration = Duration::from_millis(200);

/// The first changes from `a` to `b`, one a line: removed words, an arrow, added words.
pub fn describe(a: &str, b: &str) -> Vec<String> {
    let a: Vec<&str> = a.split_whitespace().collect();
    let b: Vec<&str> = b.split_whitespace().collect();
    let deadline = Some(Instant::now() + PATIENCE);
    let changes = capture_diff_slices_deadline(Algorithm::Myers, &a, &b, deadline);
    let is_change = |change: &&DiffOp| !matches!(change, DiffOp::Equal { .. });
    let total = changes.iter().filter(is_change).count();
    let mut lines: Vec<String> = changes
        .iter()
        .filter(is_change)
        .take(CHANGES)
        .map(|change| line(&a[change.old_range()], &b[change.new_range()]))
        .collect();
    match total {
        0 => lines.push("only white space differs".into()),
        more if more > CHANGES => lines.push(format!("and {} more", more - CHANGES)),
        _ => {}
    }
    lines
}

fn line(old: &[&str], new: &[&str]) -> String {
    match (old, new) {
        ([], new) => format!("added: {}", shorten(new)),
        (old, []) => format!("removed: {}", shorten(old)),
        (old, new) => format!("{} -> {}", shorten(old), shorten(new)),
    }
}

fn shorten(words: &[&str]) -> String {
    let shown: Vec<String> = words.iter().take(WORDS).map(|word| clip(word)).collect();
    match words.len() {
        0..=WORDS => shown.join(" "),
        number => format!("{} ... ({number} words)", shown.join(" ")),
    }
}

/// A word of at most 30 characters.
fn clip(word: &str) -> String {
    match word.char_indices().nth(30) {
        Some((end, _)) => format!("{}...", &word[..end]),
        None => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn replaced_added_and_removed_words() {
        assert_eq!(describe("a b c", "a x y c"), ["b -> x y"]);
        assert_eq!(describe("a b", "a b c"), ["added: c"]);
        assert_eq!(describe("a b c", "a b"), ["removed: c"]);
        assert_eq!(describe("a  b", "a\nb"), ["only white space differs"]);
        let long = describe("a", "b c d e f g h i");
        assert_eq!(long, ["a -> b c d e f g ... (8 words)"]);
    }
}
