//! The lower tail of the binomial distribution: the minimum number of keys or slots that a pair shares.

/// The probability with which a pair of different documents at the threshold may be missed, both by an index and by
/// the search for all pairs.
pub const MISSED: f64 = 1e-9;

/// Keeps the probabilities of few keys, which are far below the least `f64`, within its range.
const SCALE: f64 = (1u128 << 127) as f64;

/// Returns the probability of each number of shared keys, from 0 to `keys`, which is at most 1024. Each key is shared
/// with probability `probability`. Uses only the four operations of arithmetic, so results are equal on every machine.
pub fn shared_keys(keys: usize, probability: f64) -> impl Iterator<Item = f64> {
    let differs = 1.0 - probability;
    // The probability is `scaled / SCALE^scales`.
    let (mut scaled, mut scales) = (1.0, 0);
    for _ in 0..keys {
        scaled *= differs;
        if scaled < 1.0 / SCALE {
            scaled *= SCALE;
            scales += 1;
        }
    }
    let odds = probability / differs;
    (0..=keys).map(move |count| {
        let probability = match scales {
            _ if differs <= 0.0 => f64::from(u8::from(count == keys)),
            0 => scaled,
            _ => 0.0,
        };
        scaled *= (keys - count) as f64 / (count + 1) as f64 * odds;
        while scales > 0 && scaled >= 1.0 {
            scaled /= SCALE;
            scales -= 1;
        }
        probability
    })
}

/// Returns the maximum T such that a pair shares fewer than T of `keys` keys with a probability of at most `missed`.
/// Each key is shared with probability `probability`.
pub fn least_shared(keys: usize, probability: f64, missed: f64) -> usize {
    let mut below = 0.0;
    let few = shared_keys(keys, probability).take_while(|probability| {
        below += probability;
        below <= missed
    });
    few.count().min(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_distribution() {
        for (keys, probability) in [
            (1, 0.5),
            (64, 0.512),
            (1024, 0.02),
            (1024, 0.5),
            (1024, 1.0),
        ] {
            let all: f64 = shared_keys(keys, probability).sum();
            assert!((all - 1.0).abs() < 1e-9, "{keys}, {probability}: {all}");
            let of = |(count, probability)| count as f64 * probability;
            let mean: f64 = (0..).zip(shared_keys(keys, probability)).map(of).sum();
            assert!((mean - keys as f64 * probability).abs() < 1e-6, "{keys}");
        }
        let three = [0.125, 0.375, 0.375, 0.125];
        assert!(shared_keys(3, 0.5).eq(three));
        let least = [0.1, 0.125, 0.5, 1.0].map(|missed| least_shared(3, 0.5, missed));
        assert_eq!(least, [0, 1, 2, 3]);
        assert_eq!(least_shared(64, 1.0, MISSED), 64);
    }
}
