//! Nanoseconds per document of the steps of a signature, for every path that this processor supports: `cargo bench -p
//! neardup --bench signature`. The paths take turns; the result is the fastest of the rounds, which is the one least
//! disturbed by other work on the machine.

use md5::{Digest, Md5};
use neardup::hash::Key;
use neardup::kernels::{Kernels, available};
use neardup::minhash::UNFILLED;
use neardup::shingle::{Shingling, for_each_block};
use neardup::text::{Fold, Unit};
use std::hint::black_box;
use std::time::Instant;

const DOCUMENTS: usize = 256;
const WORDS: usize = 262;
const ROUNDS: usize = 101;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(neardup::hash::GOLDEN);
    neardup::hash::split_mix(*state)
}

/// Returns words of 1 to 14 letters, 4.7 on average, as in English news.
fn document(state: &mut u64) -> String {
    const LENGTHS: [usize; 32] = [
        1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10,
        11, 14,
    ];
    let mut text = String::new();
    for i in 0..WORDS {
        let length = LENGTHS[(next(state) % 32) as usize];
        text.extend((0..length).map(|_| char::from(b'a' + (next(state) % 26) as u8)));
        text.push_str(if i % 12 == 11 { ". " } else { " " });
    }
    text
}

/// The name of a contender, and its work on the document with a number.
type Contender<'a> = (String, Box<dyn FnMut(usize) + 'a>);

/// Prints the nanoseconds per document of the fastest round of each contender. The contenders take turns.
fn race(contenders: &mut [Contender<'_>]) {
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for ((_, run), times) in contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (0..DOCUMENTS).for_each(&mut *run);
            times.push(start.elapsed().as_nanos() as f64 / DOCUMENTS as f64);
        }
    }
    for ((name, _), times) in contenders.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name:40} {:9.1} ns", times[0]);
    }
}

fn contender<'a>(
    what: &str,
    kernels: &'static Kernels,
    run: impl FnMut(usize) + 'a,
) -> Contender<'a> {
    (format!("{what}, {}", kernels.name), Box::new(run))
}

fn main() {
    let mut state = 7;
    let texts: Vec<String> = (0..DOCUMENTS).map(|_| document(&mut state)).collect();
    let key = Key::from_seed(0);
    let shingling = Shingling::new(3, Unit::Word, Fold::Case).expect("valid");
    let hashes: Vec<Vec<u64>> = texts
        .iter()
        .map(|text| {
            let mut all = Vec::new();
            for_each_block(text.as_bytes(), &shingling, &key, &mut |block| {
                all.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            all
        })
        .collect();
    let sketches: Vec<Vec<u8>> = hashes
        .iter()
        .map(|hashes| {
            hashes[..128]
                .iter()
                .flat_map(|x| (*x as u32).to_le_bytes())
                .collect()
        })
        .collect();

    race(&mut [
        (
            "MD5".to_owned(),
            Box::new(|i| {
                black_box(Md5::digest(texts[i].as_bytes()));
            }),
        ),
        (
            "shingle hashes, path in use".to_owned(),
            Box::new(|i| {
                for_each_block(texts[i].as_bytes(), &shingling, &key, &mut |block| {
                    black_box(block);
                    Ok(())
                })
                .unwrap();
            }),
        ),
    ]);
    let race_paths = |what: &str, run: &dyn Fn(&'static Kernels, usize)| {
        let mut contenders: Vec<_> = available()
            .map(|kernels| contender(what, kernels, move |i| run(kernels, i)))
            .collect();
        race(&mut contenders);
    };
    race_paths("words", &|kernels, i| {
        let mut out = Vec::with_capacity(WORDS + 4);
        kernels.word_hashes(texts[i].as_bytes(), &key, &mut out);
        black_box(&out);
    });
    race_paths("windows of 3", &|kernels, i| {
        let mut out = Vec::with_capacity(WORDS + 4);
        kernels.combine_windows(&hashes[i], 3, &mut out);
        black_box(&out);
    });
    for slots in [128, 256, 1024] {
        for count in [1, 20, 260] {
            race_paths(&format!("sketch of {count} in {slots}"), &|kernels, i| {
                let mut sketch = [UNFILLED; 1024];
                kernels.sketch(&mut sketch[..slots], &hashes[i][..count]);
                black_box(&sketch);
            });
        }
    }
    for bits in [32, 16, 8, 4, 1] {
        let bytes = 128 * bits as usize / 8;
        race_paths(&format!("comparing 128 x {bits}"), &|kernels, i| {
            let other = &sketches[(i + 1) % DOCUMENTS][..bytes];
            black_box(kernels.count_equal(&sketches[i][..bytes], other, 128, bits));
        });
    }
    race_paths("merging 128 x 32", &|kernels, i| {
        let mut sketch = [7; 128];
        let other: [u32; 128] = std::array::from_fn(|slot| (slot + i) as u32);
        kernels.merge(&mut sketch, &other);
        black_box(&sketch);
    });
}
