//! Documents designed to be slow: the work stays nearly linear, or can be canceled. They have 1 MB in a release build,
//! and less without optimization, where that would take minutes.

use neardup::align::{
    Costs, Matching, chunk_similarity, common_chunks, edit_distance, explain, explain_segments,
    longest_common_substring,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SIZE: usize = if cfg!(debug_assertions) {
    1 << 17
} else {
    1 << 20
};

/// Maximum number of steps between two interrupt checks.
const STEPS: usize = 8192;

/// Pairs of documents.
fn traps() -> Vec<(&'static str, String, String)> {
    let fill = |text: &str| text.repeat(SIZE / text.len());
    let numbered =
        |letter: char| -> String { (0..SIZE / 7).map(|i| format!("{letter}{i:05} ")).collect() };
    // Runs of every length up to 600: each tile leaves shorter runs in the other document.
    let staircase: String = (1..600)
        .rev()
        .map(|n| format!("{}stop{n} ", "w ".repeat(n)))
        .collect();
    vec![
        ("one word", fill("word "), fill("word ")),
        (
            "one word, one longer",
            fill("w "),
            fill("w ") + "x " + &fill("w "),
        ),
        ("no common word", numbered('a'), numbered('b')),
        ("period 2", fill("tick tock "), fill("tock tick ")),
        (
            "period 2 against one word",
            fill("tick tock "),
            fill("tick "),
        ),
        ("period 2 against period 3", fill("a b "), fill("a b c ")),
        ("staircase", fill("w "), staircase),
        ("the same", numbered('a'), numbered('a')),
    ]
}

/// The number of interrupt checks bounds the number of steps: at most 100 per byte.
#[test]
fn work_is_near_linear() {
    for (name, a, b) in traps() {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let mut checks = 0;
        let mut check = || checks += 1;
        for matching in [Matching::Literal, Matching::Information] {
            chunk_similarity(a, b, 5, matching, &mut check).unwrap();
            common_chunks(a, b, 1, matching, &mut check).unwrap();
        }
        explain(a, b, &mut check).unwrap();
        explain_segments([a, b], 5, &mut check).unwrap();
        longest_common_substring(a, b, &mut check).unwrap();
        let steps = checks * STEPS;
        assert!(
            steps <= 7 * 100 * (a.len() + b.len()),
            "{name}: {steps} steps"
        );
    }
}

/// Edit distance is quadratic where the documents differ everywhere: a cancel ends it.
#[test]
fn edit_distance_can_be_canceled() {
    let (_, a, b) = traps().swap_remove(2);
    for costs in [[1, 1, 1], [1, 1, 2], [2, 2, 3]] {
        let costs = Costs::new(costs[0], costs[1], costs[2]).unwrap();
        let mut checks = 0;
        let mut cancel = || {
            checks += 1;
            if checks == 2000 {
                std::panic::resume_unwind(Box::new("canceled"));
            }
        };
        let run = || edit_distance(a.as_bytes(), b.as_bytes(), costs, None, &mut cancel);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
}

#[test]
fn edit_distance_of_traps_that_are_near_duplicates() {
    let a = "tick tock ".repeat(SIZE / 10);
    let unit = Costs::new(1, 1, 1).unwrap();
    let found = |b: &str, max| edit_distance(a.as_bytes(), b.as_bytes(), unit, max, &mut || {});
    assert_eq!(found(&a[1..], None).unwrap(), Some(1));
    assert_eq!(found(&format!("x{}y", &a[3..]), None).unwrap(), Some(4));
    assert_eq!(found(&"w".repeat(SIZE), Some(100)).unwrap(), None);
}
