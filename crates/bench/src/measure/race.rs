//! Contenders measured in turn, A B A B, so that other activity of the machine affects all alike.

use anyhow::Result;
use testbed::progress::bar;

use crate::report::table::Ratio;

/// Something that is measured.
pub struct Contender<'a> {
    pub name: String,
    /// The number of documents (or rows, or pairs) in one run.
    pub documents: usize,
    run: Box<dyn FnMut() -> Result<f64> + 'a>,
}

impl<'a> Contender<'a> {
    /// Returns a contender; `run` returns the seconds that one pass took.
    pub fn new(
        name: impl Into<String>,
        documents: usize,
        run: impl FnMut() -> Result<f64> + 'a,
    ) -> Contender<'a> {
        Contender {
            name: name.into(),
            documents,
            run: Box::new(run),
        }
    }

    /// Returns a contender that measures steady times. A turn begins with a pass that is not counted, because the
    /// previous contender has filled the caches; then it makes passes for [`TURN`].
    fn steady(self) -> Contender<'a> {
        let mut run = self.run;
        Contender::new(self.name, self.documents, move || {
            let passes = (TURN / run()?).ceil().clamp(1.0, MOST_PASSES);
            let mut seconds = 0.0;
            for _ in 0..passes as usize {
                seconds += run()?;
            }
            Ok(seconds / passes)
        })
    }
}

/// Seconds of the counted passes of a turn, and the most passes, for the fastest contenders.
const TURN: f64 = 0.1;
const MOST_PASSES: f64 = 50.0;

/// The seconds of every round of one contender.
pub struct Times {
    pub name: String,
    pub documents: usize,
    pub seconds: Vec<f64>,
}

impl Times {
    /// Returns the median time for a document, in microseconds.
    pub fn microseconds(&self) -> f64 {
        1e6 * self.median() / self.documents as f64
    }

    /// Returns the median time of a run, in seconds.
    pub fn median(&self) -> f64 {
        quantile(&self.seconds, 0.5)
    }

    /// Returns how many times as long as `other` this takes for a document, as a ratio of each round.
    pub fn over(&self, other: &Times) -> Ratio {
        let scale = other.documents as f64 / self.documents as f64;
        let rounds = self.seconds.iter().zip(&other.seconds);
        let ratios: Vec<f64> = rounds.map(|(a, b)| scale * a / b).collect();
        spread(&ratios)
    }
}

/// Returns the median and the quartiles of the ratios of all rounds.
pub fn spread(ratios: &[f64]) -> Ratio {
    Ratio {
        median: quantile(ratios, 0.5),
        low: quantile(ratios, 0.25),
        high: quantile(ratios, 0.75),
    }
}

/// The times of all contenders, in their order.
pub struct Results(Vec<Times>);

impl Results {
    /// Returns the times of a contender; None if it could not run.
    pub fn get(&self, name: &str) -> Option<&Times> {
        self.0.iter().find(|times| times.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Times> {
        self.0.iter()
    }
}

/// Up to this many rounds, the work takes so long that a warm-up round is not worth its time.
const FEW_ROUNDS: usize = 3;

/// Lets the contenders take turns. If there are many rounds, they are steady and follow a round that is not counted.
/// A contender that fails in its first round is left out with a message.
pub fn race(what: &str, rounds: usize, contenders: Vec<Contender<'_>>) -> Result<Results> {
    let warming = usize::from(rounds > FEW_ROUNDS);
    let progress = bar(((rounds + warming) * contenders.len()) as u64, what)?;
    let (mut running, mut times) = (Vec::new(), Vec::new());
    for contender in contenders {
        let mut contender = if warming > 0 {
            contender.steady()
        } else {
            contender
        };
        progress.set_message(format!("{what}: {}", contender.name));
        match (contender.run)() {
            Ok(seconds) => {
                times.push(Times {
                    name: contender.name.clone(),
                    documents: contender.documents,
                    seconds: [seconds][warming..].to_vec(),
                });
                running.push(contender);
            }
            Err(error) => progress.suspend(|| println!("Skipping {}: {error:#}", contender.name)),
        }
        progress.inc(1);
    }
    for _ in 1 - warming..rounds {
        for (contender, times) in running.iter_mut().zip(&mut times) {
            progress.set_message(format!("{what}: {}", contender.name));
            times.seconds.push((contender.run)()?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(Results(times))
}

/// Returns a quantile of some numbers, interpolated like PostgreSQL's percentile_cont.
pub fn quantile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.25), 1.25);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn ratios_are_of_documents_and_of_the_same_round() -> Result<()> {
        let mut clock = [2.0, 4.0, 8.0].into_iter().cycle();
        let slow = Contender::new("slow", 10, || Ok(1.0));
        let fast = Contender::new("fast", 40, move || Ok(clock.next().unwrap_or_default()));
        let broken = Contender::new("broken", 1, || anyhow::bail!("not here"));
        let results = race("test", 3, vec![slow, fast, broken])?;
        let times = |name| results.get(name);
        assert!(times("broken").is_none());
        let (Some(slow), Some(fast)) = (times("slow"), times("fast")) else {
            panic!("both ran")
        };
        assert_eq!(slow.over(fast).median, 1.0);
        assert_eq!(fast.microseconds(), 1e5);
        Ok(())
    }
}
