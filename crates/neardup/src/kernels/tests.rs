//! Tests of every path against the definitions and against the portable path.

use super::fold::{ALONE, DROPPED, LETTER, MARK, MOVES, ONE_BYTE, SPACE, UNCHANGED, VALID};
use super::{Kernels, available, portable};
use crate::hash::slot::{MAX_SLOTS, UNFILLED};
use crate::hash::slot::{code, first_code, slot};
use crate::hash::{Key, combine, split_mix};
use crate::text::{Fold, Table};

const INPUTS: u64 = 100_000;

/// A stream of numbers that is the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        split_mix(split_mix(self.0))
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn list(&mut self, len: usize) -> Vec<u64> {
        (0..len).map(|_| self.next()).collect()
    }
}

/// Returns a length that is usually short, and sometimes up to `longest`.
fn length(numbers: &mut Numbers, longest: usize) -> usize {
    let longest = if numbers.below(20) == 0 {
        longest
    } else {
        longest / 20
    };
    numbers.below(longest + 1)
}

fn others() -> impl Iterator<Item = &'static Kernels> {
    available().filter(|kernels| kernels.name != "portable")
}

/// Makes a sketch exactly as defined.
fn defined_sketch(slots: &mut [u32], hashes: &[u64]) {
    for round in 0..2 * slots.len() {
        if !slots.iter().any(|&code| code >= first_code(round)) {
            break;
        }
        for &x in hashes {
            let slot = slot(x, round, slots.len());
            slots[slot] = slots[slot].min(code(x, round));
        }
    }
}

#[test]
fn every_path_makes_the_defined_sketch() {
    let mut numbers = Numbers(1);
    for i in 0..INPUTS {
        let is_defined = i % 50 == 0;
        let most = [150, MAX_SLOTS][usize::from(i % 50 == 1 || i % 500 == 0)];
        let mut expected = vec![UNFILLED; 1 + numbers.below(most)];
        let mut defined = expected.clone();
        let mut made: Vec<Vec<u32>> = others().map(|_| expected.clone()).collect();
        for _ in 0..1 + numbers.below(2) {
            let len = length(&mut numbers, if is_defined { 2_000 } else { 1_000 });
            let mut hashes = numbers.list(len);
            if is_defined && numbers.below(3) == 0 {
                hashes = hashes[..len.min(7)].repeat(40);
            }
            portable::KERNELS.sketch(&mut expected, &hashes);
            for (kernels, made) in others().zip(&mut made) {
                kernels.sketch(made, &hashes);
                let slots = made.len();
                assert_eq!(*made, expected, "{}, {slots} slots, {len}", kernels.name);
            }
            if is_defined {
                defined_sketch(&mut defined, &hashes);
                assert_eq!(expected, defined);
            }
        }
    }
}

#[test]
fn every_path_combines_windows_as_defined() {
    let mut numbers = Numbers(4);
    for _ in 0..INPUTS {
        let (len, skip) = (length(&mut numbers, 1_000), numbers.below(4));
        let longest = [12, 256][numbers.below(10) / 9];
        let k = 1 + numbers.below(longest);
        let tokens = &numbers.list(len + skip)[skip..];
        let before = numbers.list(skip);
        let defined: Vec<u64> = tokens.windows(k).map(combine).collect();
        let defined = [&before[..], &defined].concat();
        for kernels in available() {
            let mut made = before.clone();
            kernels.combine_windows(tokens, k, &mut made);
            assert_eq!(made, defined, "{}, k = {k}, {len} tokens", kernels.name);
        }
    }
}

/// Returns a text of code points of a few blocks, with ASCII among them.
fn code_points(numbers: &mut Numbers) -> String {
    let ends = [0x600, 0x3000, 0x1_0000, 0x11_0000];
    let firsts = [(); 3].map(|()| {
        let end = ends[numbers.below(4)];
        numbers.below(end) as u32
    });
    let ascii = 1 + numbers.below(30);
    let len = numbers.below(300);
    let code = |_| match numbers.below(ascii) {
        0 => numbers.below(0x80) as u32,
        _ => firsts[numbers.below(3)] + numbers.below(64) as u32,
    };
    (0..len).map(code).filter_map(char::from_u32).collect()
}

/// Folds a run one code point at a time. Returns the words, the characters, and whether they end with a word of one
/// character and with white space.
fn folded_run(
    run: &str,
    [mut is_alone, mut is_space]: [bool; 2],
    table: &'static Table,
) -> FoldedRun {
    let (mut words, mut chars, mut before) = (Vec::new(), Vec::new(), 0);
    for c in run.chars() {
        let (row, place) = (table.rows().row(c as usize / 64), c as usize % 64);
        let flags = row.flags[place];
        let has = |flag| flags & flag != 0;
        assert!(has(VALID) && !(has(MOVES) && before & MOVES != 0), "{run}");
        assert!(!has(MARK) || before & (ALONE | LETTER | MARK) != 0, "{run}");
        before = flags;
        if has(DROPPED) {
            continue;
        }
        let len = if has(ONE_BYTE) { 1 } else { c.len_utf8() };
        let bytes: Vec<u8> = row.bytes[..len].iter().map(|bytes| bytes[place]).collect();
        if !(has(SPACE) && is_space) {
            chars.extend(str::from_utf8(&bytes).unwrap().chars().map(u32::from));
        }
        if has(ALONE) || is_alone && has(LETTER) {
            words.push(b' ');
        }
        match has(ALONE | LETTER | MARK) {
            true => words.extend(bytes),
            false => words.extend(vec![b' '; len]),
        }
        is_alone = has(ALONE) || is_alone && has(MARK);
        is_space = has(SPACE);
    }
    (words, chars, [is_alone, is_space])
}

type FoldedRun = (Vec<u8>, Vec<u32>, [bool; 2]);

#[test]
fn every_path_folds_runs_as_defined() {
    let mut numbers = Numbers(8);
    for _ in 0..INPUTS {
        let text = code_points(&mut numbers);
        let table = Table::of([Fold::None, Fold::Case, Fold::Marks][numbers.below(3)]);
        let is_after = numbers.below(2) == 0;
        let check = |done: usize, kernels: &Kernels| {
            let (run, rest) = text.split_at(done);
            // Nothing after the run changes it.
            let next = rest.chars().next().filter(|_| done > 0);
            folded_run(
                &next.map_or_else(String::new, String::from),
                [false; 2],
                table,
            );
            (
                folded_run(run, [is_after; 2], table),
                format!("{}: {run}", kernels.name),
            )
        };
        for kernels in available() {
            let (mut words, mut chars) = ([0; 1200], [0; 1200]);
            let folded = kernels.fold_words(text.as_bytes(), is_after, table.rows(), &mut words);
            let ((defined, _, [is_alone, _]), about) = check(folded.done, kernels);
            assert_eq!(words[..folded.written], defined, "{about}");
            assert_eq!(folded.is_after, is_alone, "{about}");
            let folded = kernels.fold_chars(text.as_bytes(), is_after, table.rows(), &mut chars);
            let ((_, defined, [_, is_space]), about) = check(folded.done, kernels);
            assert_eq!(chars[..folded.written], defined, "{about}");
            assert_eq!(folded.is_after, is_space, "{about}");
        }
    }
}

#[test]
fn unchanged_rows_are_as_in_the_tables() {
    for (first, last, flags) in UNCHANGED {
        let row =
            |[first, second]: [u8; 2]| usize::from(first & 0xF) << 6 | usize::from(second & 0x3F);
        for c in (row(first) * 64..row(last) * 64 + 64).filter_map(|c| char::from_u32(c as u32)) {
            for fold in [Fold::None, Fold::Case, Fold::Marks] {
                let (row, place) = (Table::of(fold).rows().row(c as usize / 64), c as usize % 64);
                assert_eq!(
                    c.to_string().as_bytes(),
                    row.bytes.map(|bytes| bytes[place])
                );
                assert_eq!(row.flags[place], flags);
            }
        }
    }
}

/// Returns words of all lengths, of any bytes.
fn text(numbers: &mut Numbers, len: usize) -> Vec<u8> {
    let spaces = 1 + numbers.below(80);
    (0..len)
        .map(|_| match numbers.below(spaces) {
            0 => b' ',
            _ => numbers.next() as u8,
        })
        .collect()
}

#[test]
fn every_path_hashes_words_as_defined() {
    let mut numbers = Numbers(6);
    for i in 0..INPUTS {
        let longest = if i % 100 == 0 { 20_000 } else { 700 };
        let (len, skip) = (length(&mut numbers, longest), numbers.below(64));
        let text = &text(&mut numbers, len + skip)[skip..];
        let key = Key::from_seed(i as i64);
        let words = text.split(|byte| *byte == b' ');
        let words = words.filter(|word| !word.is_empty());
        let defined: Vec<u64> = words.map(|word| key.token_hash(word)).collect();
        for kernels in available() {
            let mut made = Vec::new();
            kernels.word_hashes(text, &key, &mut made);
            let text = text.escape_ascii();
            assert_eq!(made, defined, "{}, {text:?}", kernels.name);
        }
    }
}

/// Returns slots as stored, and a copy with some bytes changed.
fn stored_pair(numbers: &mut Numbers, slots: usize, bits: u32) -> (Vec<u8>, Vec<u8>) {
    let bytes = (slots * bits as usize).div_ceil(8);
    let mut a: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8).collect();
    let used = slots * bits as usize % 8;
    if used != 0 {
        a[bytes - 1] &= (1 << used) - 1;
    }
    let mut b = a.clone();
    for _ in 0..numbers.below(2 * slots) {
        let slot = numbers.below(slots) * bits as usize;
        b[slot / 8] ^= 1 << (slot % 8 + numbers.below((bits as usize).min(8)));
    }
    (a, b)
}

fn defined_equal(a: &[u8], b: &[u8], slots: usize, bits: u32) -> usize {
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (i % 8) & 1;
    let bits = bits as usize;
    (0..slots)
        .filter(|slot| (slot * bits..(slot + 1) * bits).all(|i| bit(a, i) == bit(b, i)))
        .count()
}

#[test]
fn every_path_counts_and_merges_alike() {
    let mut numbers = Numbers(7);
    for i in 0..INPUTS {
        let slots = 1 + numbers.below(if i % 20 == 0 { MAX_SLOTS } else { 130 });
        let bits = [1, 2, 4, 8, 16, 32][numbers.below(6)];
        let (a, b) = stored_pair(&mut numbers, slots, bits);
        // At every offset from an aligned address.
        let skip = numbers.below(8);
        let shifted = [vec![0; skip], b].concat();
        let b = &shifted[skip..];
        let expected = portable::KERNELS.count_equal(&a, b, slots, bits);
        if i % 20 == 0 {
            assert_eq!(
                expected,
                defined_equal(&a, b, slots, bits),
                "{slots} x {bits}"
            );
        }
        let other: Vec<u32> = numbers.list(slots).iter().map(|&x| x as u32).collect();
        let own: Vec<u32> = numbers.list(slots).iter().map(|&x| x as u32).collect();
        let merged: Vec<u32> = own.iter().zip(&other).map(|(a, b)| *a.min(b)).collect();
        for kernels in available() {
            let equal = kernels.count_equal(&a, b, slots, bits);
            assert_eq!(equal, expected, "{}, {slots} x {bits}", kernels.name);
            let mut made = own.clone();
            kernels.merge(&mut made, &other);
            assert_eq!(made, merged, "{}", kernels.name);
        }
    }
}

#[test]
fn every_path_adds_bits_alike() {
    let mut numbers = Numbers(8);
    for _ in 0..INPUTS / 10 {
        let len = numbers.below(20);
        let words = numbers.list(len);
        let weights: Vec<i64> = (0..len).map(|_| numbers.next() as i64 >> 8).collect();
        let before: [i64; 64] = std::array::from_fn(|_| numbers.next() as i64 >> 8);
        let defined: [i64; 64] = std::array::from_fn(|bit| {
            let set = words
                .iter()
                .zip(&weights)
                .filter(|(word, _)| *word >> bit & 1 == 1);
            before[bit] + set.map(|(_, weight)| weight).sum::<i64>()
        });
        for kernels in available() {
            let mut made = before;
            kernels.add_where_set(&words, &weights, &mut made);
            assert_eq!(made, defined, "{}", kernels.name);
        }
    }
}

#[test]
fn every_path_adds_one_weight_alike() {
    let mut numbers = Numbers(9);
    for len in (0..600).chain([4095, 4096, 8191, 8192, 20_000]) {
        let mut words = numbers.list(len);
        // Counts up to the highest possible.
        let common = numbers.next();
        words.iter_mut().for_each(|word| *word |= common);
        let weight = numbers.next() as i64 >> 20;
        let before: [i64; 64] = std::array::from_fn(|_| numbers.next() as i64 >> 8);
        let defined: [i64; 64] = std::array::from_fn(|bit| {
            let set = words.iter().filter(|word| *word >> bit & 1 == 1).count();
            before[bit] + weight * set as i64
        });
        for kernels in available() {
            let mut made = before;
            kernels.add_weight(&words, weight, &mut made);
            assert_eq!(made, defined, "{}", kernels.name);
        }
    }
}
