//! Precision and recall of our methods and of the peers, compared with exact lists and labeled truth.

use std::collections::HashSet;

use anyhow::{Context, Result};
use plotters::chart::SeriesLabelPosition;
use testbed::corpora::Corpus;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::server::database::Database;

use super::known_pairs::{load_keyed, true_pairs};
use super::methods::{Found, find_all};
use super::pairs_peers::export;
use crate::context::Bench;
use crate::measure::session::Session;
use crate::peers::dir;
use crate::report::chart::{Axis, Chart, Curve};
use crate::report::table::{Table, row};
use crate::score::{self, Pair};

const GENERATED: u64 = 20_000;

/// Charts leave out worse values: everything of interest is in the remaining quarter.
const WORST: f64 = 0.5;

/// True pairs: their name, and the query for them.
struct Truth {
    name: &'static str,
    query: &'static str,
}

const EXACT_80: Truth = Truth {
    name: "Jaccard >= 0.8",
    query: "SELECT a.id, b.id FROM exact e JOIN docs a ON a.key = e.a JOIN docs b ON b.key = e.b WHERE e.jaccard >= 0.8",
};
const EXACT_50: Truth = Truth {
    name: "Jaccard >= 0.5",
    query: "SELECT a.id, b.id FROM exact e JOIN docs a ON a.key = e.a JOIN docs b ON b.key = e.b",
};
const LABELED: Truth = Truth {
    name: "labeled",
    query: "SELECT a.id, b.id FROM truth e JOIN docs a ON a.key = e.a JOIN docs b ON b.key = e.b",
};

/// Documents whose true pairs are all known.
struct Collection {
    name: &'static str,
    truths: &'static [Truth],
    /// How text is folded, and whether only ASCII documents are taken: in other scripts, the lists have other words.
    fold: &'static str,
    ascii: bool,
}

const COLLECTIONS: &[Collection] = &[
    Collection {
        name: "reuters21578",
        truths: &[EXACT_80, EXACT_50],
        fold: "case",
        ascii: true,
    },
    Collection {
        name: "newsgroups20",
        truths: &[EXACT_80, EXACT_50, LABELED],
        fold: "case",
        ascii: true,
    },
    Collection {
        name: "mccormick_2500",
        truths: &[LABELED],
        fold: "case",
        ascii: false,
    },
    Collection {
        name: "hadith_ar",
        truths: &[LABELED],
        fold: "marks",
        ascii: false,
    },
    Collection {
        name: "generated",
        truths: &[
            Truth {
                name: "Jaccard >= 0.8",
                query: "SELECT a.id, b.id FROM docs a JOIN docs b ON a.grp = b.grp AND a.id < b.id
                        WHERE resemblance(a.body, b.body) >= 0.8",
            },
            Truth {
                name: "of one original",
                query: "SELECT a.id, b.id FROM docs a JOIN docs b ON a.grp = b.grp AND a.id < b.id",
            },
        ],
        fold: "case",
        ascii: false,
    },
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Found pairs against true ones, each at the cut of its own similarity (in shares of 1; for SimHash of \
                 the equal bits) that gives the best F1. All were asked for what they propose from 0.4 on.";
    let columns = "documents | true pairs | how many | who | bytes a document | precision | recall | F1 | cut";
    let mut table = Table::new("quality.pairs", about, columns);
    let cluster = bench.started_cluster()?;
    for collection in COLLECTIONS {
        let database = Database::with_extension(&cluster, "quality")?;
        let session = Session::open(&database)?;
        if !collection.load(bench, &session)? {
            println!("Skipping {}: it is not present", collection.name);
            continue;
        }
        let file = dir().join(format!("{}.txt", collection.name));
        export(&session, &file)?;
        let found = find_all(bench, &session, collection.fold, &file)?;
        for (nth, truth) in collection.truths.iter().enumerate() {
            let pairs = true_pairs(&session, truth.query)?;
            for method in &found {
                let Some(best) = score::best(&method.pairs, &pairs) else {
                    continue;
                };
                table.push(row![
                    collection.name,
                    truth.name,
                    pairs.len() as f64,
                    method.name.clone(),
                    method.bytes as f64,
                    best.precision,
                    best.recall,
                    best.f1(),
                    best.cut
                ]);
            }
            if nth == 0 {
                chart(bench, collection, truth, &found, &pairs)?;
            }
        }
    }
    Ok(vec![table])
}

impl Collection {
    /// Loads the documents and their lists; returns false if they are absent.
    fn load(&self, bench: &Bench<'_>, session: &Session) -> Result<bool> {
        if self.name == "generated" {
            let documents = GENERATED.min(bench.scale.documents);
            let generator = Generator::new(bench.words, Plan::mixed(documents));
            load_generated(&mut session.client(), "docs", &generator)?;
            return Ok(true);
        }
        let Some(corpus) = Corpus::find(self.name) else {
            return Ok(false);
        };
        load_keyed(bench, session, &corpus, |body| {
            !self.ascii || body.is_ascii()
        })?;
        for truth in self.truths {
            match truth.name {
                "labeled" => corpus.load_truth(&mut session.client(), "truth")?,
                "Jaccard >= 0.8" => {
                    corpus.load_exact(&mut session.client(), "exact_w3", "exact")?
                }
                _ => {}
            }
        }
        Ok(true)
    }
}

/// Draws precision and recall for falling cuts.
fn chart(
    bench: &Bench<'_>,
    collection: &Collection,
    truth: &Truth,
    found: &[Found],
    pairs: &HashSet<Pair>,
) -> Result<()> {
    let curve = |method: &Found| Curve {
        label: method.name.clone(),
        points: score::curve(&method.pairs, pairs)
            .iter()
            .map(|score| (score.recall, score.precision))
            .filter(|(recall, precision)| recall.min(*precision) >= WORST)
            .collect(),
    };
    let chart = Chart {
        title: format!("{}, {}", collection.name, truth.name),
        below: Axis::even("recall", WORST, 1.0, 11),
        beside: Axis::even("precision", WORST, 1.0, 11),
        legend: SeriesLabelPosition::LowerLeft,
        curves: found
            .iter()
            .filter(|method| method.on_chart)
            .map(curve)
            .collect(),
    };
    let file = bench.results.join(format!("pairs_{}.svg", collection.name));
    chart.draw(&file).context("cannot draw")
}
