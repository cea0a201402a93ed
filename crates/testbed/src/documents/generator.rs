//! Any number of documents with known near-duplicates: the same seed makes the same documents.

use fastrand::Rng;

use super::draft::Draft;
use super::edit::Edit;
use super::words::Words;

/// Groups of documents: an original and some edited copies of it.
#[derive(Clone, Copy)]
pub struct Groups {
    /// Number of near-duplicates of each document.
    pub others: u64,
    pub number: u64,
}

/// Plan of a generated collection.
pub struct Plan {
    pub seed: u64,
    /// Words of a document, on average.
    pub length: usize,
    pub groups: Vec<Groups>,
    pub edits: &'static [Edit],
    /// Half of the originals begin with the same text, three times as long as their own on average.
    pub is_templated: bool,
}

impl Plan {
    /// Returns a plan where three in ten documents are edited copies of others, mostly in pairs.
    pub fn mixed(documents: u64) -> Plan {
        let groups = |others, share: f64| Groups {
            others,
            number: (documents as f64 * share) as u64,
        };
        let groups = vec![groups(1, 0.1), groups(3, 0.03), groups(10, 0.01)];
        Plan::new(documents, groups, Edit::ALL)
    }

    /// Returns the groups, and documents without near-duplicates up to the wanted number.
    pub fn new(documents: u64, mut groups: Vec<Groups>, edits: &'static [Edit]) -> Plan {
        let grouped: u64 = groups.iter().map(|g| (g.others + 1) * g.number).sum();
        groups.push(Groups {
            others: 0,
            number: documents.saturating_sub(grouped),
        });
        Plan {
            seed: 1,
            length: 120,
            groups,
            edits,
            is_templated: false,
        }
    }

    /// Returns a plan in which one template makes half of the documents: resemblance 0.6 on average, and below
    /// 0.75. Copies are edited only slightly, because only the template would be left after a truncation.
    pub fn templated(self) -> Plan {
        Plan {
            edits: Edit::SLIGHT,
            is_templated: true,
            ..self
        }
    }

    /// Returns how many documents there will be.
    pub fn documents(&self) -> u64 {
        self.groups.iter().map(|g| (g.others + 1) * g.number).sum()
    }
}

/// A generated document.
pub struct Document {
    pub group: u64,
    /// The number of its near-duplicates.
    pub others: u64,
    /// The edit of the original; None for the original itself.
    pub edit: Option<Edit>,
    pub body: String,
}

/// Makes the documents of a plan, in any order.
pub struct Generator<'a> {
    words: &'a Words,
    plan: Plan,
    documents: u64,
    stride: u64,
    template: Vec<Vec<&'a str>>,
}

impl<'a> Generator<'a> {
    pub fn new(words: &'a Words, plan: Plan) -> Generator<'a> {
        let documents = plan.documents();
        // Members of a group are far from each other.
        let mut stride = (documents as f64 * 0.618) as u64 | 1;
        while gcd(stride, documents) != 1 {
            stride += 2;
        }
        let mut rng = Rng::with_seed(plan.seed);
        let template = Draft::of_length(words, plan.length, &mut rng).sentences;
        Generator {
            words,
            plan,
            documents,
            stride,
            template,
        }
    }

    /// Returns all documents, in the order of their keys, which count from 0.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = Document> {
        (0..self.documents as usize).map(|key| self.document(key as u64))
    }

    /// Returns the document of this key.
    pub fn document(&self, key: u64) -> Document {
        let place = u128::from(key) * u128::from(self.stride) % u128::from(self.documents);
        let (group, member, others) = self.member(place as u64);
        let seed = self.plan.seed << 48 ^ group << 16;
        let mut rng = Rng::with_seed(seed);
        let mut draft = self.original(group, &mut rng);
        let edit = (member > 0).then(|| {
            let mut rng = Rng::with_seed(seed ^ member);
            let edit = self.plan.edits[rng.usize(..self.plan.edits.len())];
            edit.apply(&mut draft, self.words, &mut rng);
            edit
        });
        Document {
            group,
            others,
            edit,
            body: draft.write(),
        }
    }

    fn original(&self, group: u64, rng: &mut Rng) -> Draft<'a> {
        let length = self.plan.length;
        if !self.plan.is_templated || group.is_multiple_of(2) {
            return Draft::draw(self.words, length, rng);
        }
        let mut own = Draft::draw(self.words, length / 3, rng);
        own.sentences.splice(..0, self.template.iter().cloned());
        own
    }

    /// Returns the group at a place, which of its members, and how many others it has.
    fn member(&self, mut place: u64) -> (u64, u64, u64) {
        let mut first = 0;
        for groups in &self.plan.groups {
            let size = groups.others + 1;
            if place < size * groups.number {
                return (first + place / size, place % size, groups.others);
            }
            place -= size * groups.number;
            first += groups.number;
        }
        unreachable!("there are not so many documents")
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const TEXT: &str = include_str!("generator.rs");

    fn shingles(text: &str) -> Vec<String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.windows(3).map(|three| three.join(" ")).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_documents() {
        let words = Words::of([TEXT]);
        let make = |seed| {
            let plan = Plan {
                seed,
                ..Plan::mixed(200)
            };
            let documents: Vec<String> = Generator::new(&words, plan)
                .documents()
                .map(|document| document.body)
                .collect();
            documents
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert_eq!(make(1).len(), 200);
    }

    #[test]
    fn half_of_the_documents_of_a_template_resemble_each_other() {
        let words = Words::of([TEXT]);
        let plan = Plan::new(200, Vec::new(), Edit::ALL).templated();
        let generator = Generator::new(&words, plan);
        let sets: Vec<BTreeSet<String>> = generator
            .documents()
            .filter(|document| document.group % 2 == 1)
            .map(|document| shingles(&document.body).into_iter().collect())
            .collect();
        assert_eq!(sets.len(), 100);
        for (a, b) in sets.iter().zip(&sets[1..]) {
            let resemblance = a.intersection(b).count() as f64 / a.union(b).count() as f64;
            assert!((0.3..0.8).contains(&resemblance), "{resemblance}");
        }
    }

    #[test]
    fn groups_have_the_planned_sizes() {
        let words = Words::of([TEXT]);
        let groups = vec![Groups {
            others: 4,
            number: 7,
        }];
        let generator = Generator::new(&words, Plan::new(100, groups, Edit::ALL));
        let mut members: BTreeMap<u64, Vec<Document>> = BTreeMap::new();
        for document in generator.documents() {
            members.entry(document.group).or_default().push(document);
        }
        let sizes: Vec<usize> = members.values().map(Vec::len).collect();
        assert_eq!(sizes.iter().filter(|&&size| size == 5).count(), 7);
        assert_eq!(sizes.iter().filter(|&&size| size == 1).count(), 65);
        for group in members.values() {
            let originals = group.iter().filter(|document| document.edit.is_none());
            assert_eq!(originals.count(), 1);
            assert!(group.iter().all(|d| d.others as usize + 1 == group.len()));
        }
    }

    #[test]
    fn slight_edits_leave_nearly_every_shingle() {
        let words = Words::of([TEXT]);
        let pairs = vec![Groups {
            others: 1,
            number: 100,
        }];
        let generator = Generator::new(&words, Plan::new(200, pairs, Edit::SLIGHT));
        let mut groups: BTreeMap<u64, Vec<Vec<String>>> = BTreeMap::new();
        for document in generator.documents() {
            let group = groups.entry(document.group).or_default();
            group.push(shingles(&document.body));
        }
        for pair in groups.values() {
            let sets: Vec<BTreeSet<&String>> =
                pair.iter().map(|set| set.iter().collect()).collect();
            let common = sets[0].intersection(&sets[1]).count() as f64;
            let all = sets[0].union(&sets[1]).count() as f64;
            assert!(common / all >= 0.8, "{common} of {all}");
        }
    }
}
