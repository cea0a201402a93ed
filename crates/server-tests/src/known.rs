//! Collections whose true pairs are known: generated ones everywhere, corpora if they are present.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};
use fastrand::Rng;
use postgres::Client;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{ToSql, Type};
use testbed::corpora::Corpus;
use testbed::documents::edit::Edit;
use testbed::documents::generator::{Generator, Groups, Plan};
use testbed::documents::words::Words;

/// Documents with known pairs.
pub enum Collection {
    Corpus(Corpus),
    Generated(Generated),
}

/// Corpora in the Latin script that have a list of all similar pairs by three words.
pub const WITH_EXACT_PAIRS: &[&str] = &[
    "mccormick_2500",
    "clough_stevenson",
    "irplag_java",
    "msr_paraphrase",
    "reuters21578",
    "newsgroups20",
];

impl Collection {
    /// Returns the generated collection, and the corpora that are present.
    pub fn all(generated: Generated, corpora: &[&'static str]) -> Vec<Collection> {
        let corpora = corpora.iter().filter_map(|name| Corpus::find(name));
        let mut all = vec![Collection::Generated(generated)];
        all.extend(corpora.map(Collection::Corpus));
        all
    }

    /// Returns the collection's name in messages.
    pub fn name(&self) -> &str {
        match self {
            Collection::Corpus(corpus) => corpus.name(),
            Collection::Generated(_) => "generated documents",
        }
    }

    /// Loads the documents into a new table (id bigint, body text).
    pub fn load(&self, client: &mut Client, table: &str) -> Result<()> {
        match self {
            Collection::Corpus(corpus) => corpus.load(client, table),
            Collection::Generated(generated) => generated.load(client, table),
        }
    }

    /// Loads all pairs with a Jaccard similarity of at least 0.5 into a new table (a bigint, b bigint, jaccard float8).
    /// The list's name ends with the length of the shingles.
    pub fn load_exact(&self, client: &mut Client, list: &str, table: &str) -> Result<()> {
        match self {
            Collection::Corpus(corpus) => corpus.load_exact(client, list, table),
            Collection::Generated(generated) => generated.load_exact(client, list, table),
        }
    }

    /// Loads the pairs that are copies into a new table (a bigint, b bigint).
    pub fn load_truth(&self, client: &mut Client, table: &str) -> Result<()> {
        match self {
            Collection::Corpus(corpus) => corpus.load_truth(client, table),
            Collection::Generated(generated) => generated.load_truth(client, table),
        }
    }
}

/// Number of generated documents.
const DOCUMENTS: u64 = 1000;

/// Edits that add only words of the vocabulary.
const PLAIN_EDITS: &[Edit] = &[
    Edit::Copy,
    Edit::Substitution,
    Edit::Insertion,
    Edit::Truncation,
    Edit::Shuffle,
];

/// Generated documents; their numbers are their positions.
pub struct Generated {
    bodies: Vec<String>,
    /// Pairs of an original and its copy.
    truth: Vec<(i64, i64)>,
    /// The words of a text, found by a different method than the extension's.
    words: fn(&str) -> Vec<String>,
}

impl Generated {
    /// Returns texts of English words with every kind of edit; only slight edits make copies.
    pub fn english() -> Generated {
        Generated::new(english_vocabulary(), Edit::ALL, Edit::SLIGHT, |text| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words = words.filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect()
        })
    }

    /// Returns texts of English words in groups whose members differ slightly.
    pub fn copies() -> Generated {
        let words = Generated::english().words;
        Generated::new(english_vocabulary(), Edit::SLIGHT, Edit::SLIGHT, words)
    }

    /// Returns texts of English words, half of them edited copies of one text.
    pub fn template() -> Generated {
        let words = Generated::english().words;
        let half = Groups {
            others: DOCUMENTS / 2,
            number: 1,
        };
        Generated::of_groups(
            vec![half],
            english_vocabulary(),
            Edit::ALL,
            Edit::SLIGHT,
            words,
        )
    }

    /// Returns texts of ideographs, each of which is a word.
    pub fn han() -> Generated {
        let mut rng = Rng::with_seed(1);
        let word = |rng: &mut Rng| -> String {
            let length = rng.usize(1..4);
            let ideograph = |_| char::from_u32(rng.u32(0x4E00..0x5200)).unwrap_or('\u{4E00}');
            (0..length).map(ideograph).collect()
        };
        let vocabulary: Vec<String> = (0..2000).map(|_| word(&mut rng)).collect();
        let words = Words::of(vocabulary.iter().map(String::as_str));
        Generated::new(words, PLAIN_EDITS, &[Edit::Copy], |text| {
            let ideographs = text.chars().filter(|c| c.is_alphabetic());
            ideographs.map(String::from).collect()
        })
    }

    /// Returns Arabic texts; every edited copy has vowel signs.
    pub fn arabic() -> Generated {
        const LETTERS: &str = "ابتثجحخدذرزسشصضطظعغفقكلمنهوي";
        let mut rng = Rng::with_seed(1);
        let letters: Vec<char> = LETTERS.chars().collect();
        let word = |rng: &mut Rng| -> String {
            let length = rng.usize(2..8);
            (0..length).filter_map(|_| rng.choice(&letters)).collect()
        };
        let vocabulary: Vec<String> = (0..2000).map(|_| word(&mut rng)).collect();
        let words = Words::of(vocabulary.iter().map(String::as_str));
        let mut generated = Generated::new(words, PLAIN_EDITS, &[Edit::Copy], |text| {
            let words = text.split([' ', '.']).filter(|word| !word.is_empty());
            words.map(|word| word.replace(is_vowel_sign, "")).collect()
        });
        for (_, copy) in &generated.truth {
            let body = &mut generated.bodies[*copy as usize];
            *body = vocalize(body, &mut rng);
        }
        generated
    }

    fn new(
        vocabulary: Words,
        edits: &'static [Edit],
        copies: &[Edit],
        words: fn(&str) -> Vec<String>,
    ) -> Generated {
        let groups = [(1, 200), (4, 40)].map(|(others, number)| Groups { others, number });
        Generated::of_groups(groups.to_vec(), vocabulary, edits, copies, words)
    }

    fn of_groups(
        groups: Vec<Groups>,
        vocabulary: Words,
        edits: &'static [Edit],
        copies: &[Edit],
        words: fn(&str) -> Vec<String>,
    ) -> Generated {
        let plan = Plan::new(DOCUMENTS, groups, edits);
        let documents: Vec<_> = Generator::new(&vocabulary, plan).documents().collect();
        let mut originals = HashMap::new();
        for (id, document) in (0i64..).zip(&documents) {
            if document.edit.is_none() {
                originals.insert(document.group, id);
            }
        }
        let mut truth = Vec::new();
        for (id, document) in (0i64..).zip(&documents) {
            if document.edit.is_some_and(|edit| copies.contains(&edit)) {
                truth.push((originals[&document.group], id));
            }
        }
        Generated {
            bodies: documents
                .into_iter()
                .map(|document| document.body)
                .collect(),
            truth,
            words,
        }
    }

    fn load(&self, client: &mut Client, table: &str) -> Result<()> {
        let rows = (0i64..).zip(&self.bodies);
        let columns = [("id", Type::INT8), ("body", Type::TEXT)];
        copy(client, table, &columns, rows, |(id, body)| [id, body])
    }

    fn load_truth(&self, client: &mut Client, table: &str) -> Result<()> {
        let columns = [("a", Type::INT8), ("b", Type::INT8)];
        let rows = self.truth.iter().copied();
        copy(client, table, &columns, rows, |(a, b)| [a, b])
    }

    fn load_exact(&self, client: &mut Client, list: &str, table: &str) -> Result<()> {
        let k = list.chars().last().and_then(|digit| digit.to_digit(10));
        let k = k.context("the list does not tell the length of shingles")?;
        let columns = [
            ("a", Type::INT8),
            ("b", Type::INT8),
            ("jaccard", Type::FLOAT8),
        ];
        let rows = self.similar_pairs(k as usize);
        copy(client, table, &columns, rows, |(a, b, jaccard)| {
            [a, b, jaccard]
        })
    }

    /// Returns all pairs with a Jaccard similarity of at least 0.5, found through the documents that contain each
    /// shingle.
    fn similar_pairs(&self, k: usize) -> impl Iterator<Item = (i64, i64, f64)> {
        let shingles = |body: &String| -> BTreeSet<Vec<String>> {
            let words = (self.words)(body);
            words
                .windows(k.min(words.len()).max(1))
                .map(<[String]>::to_vec)
                .collect()
        };
        let sets: Vec<_> = self.bodies.iter().map(shingles).collect();
        let mut documents: HashMap<&Vec<String>, Vec<usize>> = HashMap::new();
        let mut common: HashMap<(usize, usize), usize> = HashMap::new();
        for (number, set) in sets.iter().enumerate() {
            for shingle in set {
                let earlier = documents.entry(shingle).or_default();
                for &other in earlier.iter() {
                    *common.entry((other, number)).or_default() += 1;
                }
                earlier.push(number);
            }
        }
        let jaccard = |((a, b), common): ((usize, usize), usize)| {
            let all = sets[a].len() + sets[b].len() - common;
            (a as i64, b as i64, common as f64 / all as f64)
        };
        let pairs: Vec<_> = common.into_iter().map(jaccard).collect();
        pairs.into_iter().filter(|(_, _, jaccard)| *jaccard >= 0.5)
    }
}

fn english_vocabulary() -> Words {
    Words::of([include_str!("../../../README.md")])
}

/// Returns whether a character is an Arabic vowel sign or a similar mark.
fn is_vowel_sign(c: char) -> bool {
    ('\u{064B}'..='\u{0652}').contains(&c)
}

/// Adds a vowel sign after most letters.
fn vocalize(text: &str, rng: &mut Rng) -> String {
    let mut vocalized = String::new();
    for c in text.chars() {
        vocalized.push(c);
        if c.is_alphabetic() && rng.u32(0..4) > 0 {
            vocalized.extend(char::from_u32(rng.u32(0x064B..0x0653)));
        }
    }
    vocalized
}

/// Fills a new table with rows.
fn copy<R, const N: usize>(
    client: &mut Client,
    table: &str,
    columns: &[(&str, Type); N],
    rows: impl Iterator<Item = R>,
    values: impl Fn(&R) -> [&(dyn ToSql + Sync); N],
) -> Result<()> {
    let definitions = columns
        .each_ref()
        .map(|(name, kind)| format!("{name} {kind}"));
    client.batch_execute(&format!(
        "CREATE TABLE {table} ({})",
        definitions.join(", ")
    ))?;
    let writer = client.copy_in(&format!("COPY {table} FROM STDIN BINARY"))?;
    let types = columns.each_ref().map(|(_, kind)| kind.clone());
    let mut writer = BinaryCopyInWriter::new(writer, &types);
    for row in rows {
        writer.write(&values(&row))?;
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Generated;

    #[test]
    fn exact_pairs_are_those_of_comparing_all() {
        let generated = Generated {
            bodies: ["a b c d", "A b c. d!", "a b c e", "x y", "x y", ""]
                .map(String::from)
                .to_vec(),
            ..Generated::english()
        };
        let mut pairs: Vec<_> = generated.similar_pairs(2).collect();
        pairs.sort_by_key(|&(a, b, _)| (a, b));
        assert_eq!(pairs, [(0, 1, 1.0), (0, 2, 0.5), (1, 2, 0.5), (3, 4, 1.0)]);
    }
}
