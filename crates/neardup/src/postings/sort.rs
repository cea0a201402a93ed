//! Sorts postings in place, so that they can use all of maintenance_work_mem.

/// Maximum number of postings to leave to the comparison sort.
const FEW: usize = 2048;

/// Number of postings to process between two checks for interrupts.
const HEARTBEAT: usize = 1 << 20;

/// Sorts postings as numbers ([`u64::from`]) and drops repeated ones, which come from rows with colliding keys.
/// Allocates nothing; calls `check`, which may unwind, every few milliseconds.
///
/// Most significant byte first, exchanging in place (McIlroy, Bostic, McIlroy, 'Engineering radix
/// sort', 1993).
pub fn sort_distinct(postings: &mut Vec<u64>, check: &mut dyn FnMut()) {
    sort_from(postings, u64::BITS - 8, check);
    postings.dedup();
}

fn sort_from(postings: &mut [u64], shift: u32, check: &mut dyn FnMut()) {
    if postings.len() <= FEW {
        postings.sort_unstable();
        return;
    }
    let ends = exchange(postings, shift, check);
    if shift == 0 {
        return;
    }
    let mut start = 0;
    for end in ends {
        sort_from(&mut postings[start..end], shift - 8, check);
        start = end;
    }
}

/// Groups `postings` by the byte at bit `shift`, and returns the end of each group.
fn exchange(postings: &mut [u64], shift: u32, check: &mut dyn FnMut()) -> [usize; 256] {
    let byte = |number: u64| (number >> shift) as usize & 0xFF;
    let mut counts = [0; 256];
    for chunk in postings.chunks(HEARTBEAT) {
        check();
        for number in chunk {
            counts[byte(*number)] += 1;
        }
    }
    let mut next = [0; 256];
    let mut ends = [0; 256];
    let mut end = 0;
    for value in 0..256 {
        next[value] = end;
        end += counts[value];
        ends[value] = end;
    }
    // Every exchange brings one number to its place, and none depends on the previous one.
    while next != ends {
        for value in 0..256 {
            for start in (next[value]..ends[value]).step_by(HEARTBEAT) {
                check();
                for i in start..ends[value].min(start + HEARTBEAT) {
                    let home = byte(postings[i]);
                    postings.swap(i, next[home]);
                    next[home] += 1;
                }
            }
        }
    }
    ends
}
