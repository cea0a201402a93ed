//! Calibration on half of the labeled pairs of each corpus, scored on the other half and compared with the defaults.

use anyhow::Result;
use postgres::Row;
use testbed::corpora::Corpus;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};

/// The origin of a corpus's labels.
enum Labels {
    /// A list of labeled pairs, and the condition for the same.
    List(&'static str, &'static str),
    /// A list of pairs that are the same; pairs that differ are drawn.
    Truth,
    /// Pairs that share shingles; the condition for the same.
    Pairs(&'static str),
}

/// Documents with labeled pairs.
struct Collection {
    corpus: &'static str,
    about: &'static str,
    labels: Labels,
}

const COLLECTIONS: &[Collection] = &[
    Collection {
        corpus: "newsgroups20",
        about: "mail: Usenet posts and their cross-posts",
        labels: Labels::Truth,
    },
    Collection {
        corpus: "mccormick_2500",
        about: "news: articles and plagiarized copies",
        labels: Labels::Truth,
    },
    Collection {
        corpus: "hadith_ar",
        about: "religious law: Arabic, vocalized and plain",
        labels: Labels::Truth,
    },
    Collection {
        corpus: "clough_stevenson",
        about: "short answers, plagiarized to some degree",
        labels: Labels::List("truth_levels", "label <> 'non'"),
    },
    Collection {
        corpus: JAVA,
        about: "code: Java, plagiarized to some degree",
        labels: Labels::List("truth_levels", "label <> 'non'"),
    },
    Collection {
        corpus: "msr_paraphrase",
        about: "sentences and paraphrases",
        labels: Labels::List("truth_labels", "label = '1'"),
    },
    Collection {
        corpus: SONG,
        about: "poems: Chinese, a fifth or less edited",
        labels: Labels::Pairs(
            "edit_distance(x.body, y.body) * 5 <= greatest(length(x.body), length(y.body))",
        ),
    },
];

const SONG: &str = "song_zh";
const JAVA: &str = "irplag_java";

/// The units and lengths of shingles in the table of lengths.
const LENGTHS: [(&str, i32); 8] = [
    ("word", 1),
    ("word", 2),
    ("word", 3),
    ("word", 5),
    ("char", 3),
    ("char", 5),
    ("char", 8),
    ("char", 12),
];

/// Lengths of shingles and thresholds, for short Chinese texts and for code.
const SHORT: [(i32, f64); 6] = [(3, 0.8), (3, 0.5), (2, 0.8), (2, 0.6), (1, 0.8), (1, 0.6)];
const CODE: [(i32, f64); 6] = [(3, 0.5), (5, 0.5), (8, 0.5), (12, 0.5), (5, 0.3), (12, 0.3)];

/// The number of pairs drawn for comparison with a truth, and the number of pairs of poems.
const DRAWN: i32 = 1500;
const POEM_PAIRS: i32 = 20_000;

/// Precision, recall and F1 of a condition on the pairs that were not used for calibration.
const HELD_OUT: &str = "SELECT tp / greatest(found, 1), tp / greatest(same, 1), 2 * tp / greatest(found + same, 1)
    FROM (SELECT count(*) FILTER (WHERE found AND same)::float8 AS tp, count(*) FILTER (WHERE found)::float8 AS found,
                 count(*) FILTER (WHERE same)::float8 AS same
          FROM (SELECT CONDITION AS found, same FROM pairs WHERE NOT seen) p) c";

/// The threshold with the highest F1 for each k, unit and fold, rounded as far as possible without passing a pair; of
/// several such thresholds, the highest.
const CALIBRATED: &str = "CREATE TABLE calibrated AS
    WITH scored AS MATERIALIZED (
        SELECT k, unit, fold, same, resemblance(a, b, k, unit, fold) AS score
        FROM pairs, unnest(ARRAY[1, 2, 3, 4, 5, 8, 12]) k, unnest(ARRAY['word', 'char']) unit,
             unnest(ARRAY['none', 'case', 'marks']) fold
        WHERE seen
    ), cuts AS (
        SELECT k, unit, fold, score, lead(score, 1, 0.0) OVER above AS next, sum(hits) OVER above AS hits,
               sum(found) OVER above AS found, sum(hits) OVER (PARTITION BY k, unit, fold) AS same
        FROM (SELECT k, unit, fold, score, count(*) AS found, count(*) FILTER (WHERE same) AS hits
              FROM scored GROUP BY 1, 2, 3, 4) s
        WINDOW above AS (PARTITION BY k, unit, fold ORDER BY score DESC)
    )
    SELECT DISTINCT ON (k, unit, fold) k, unit, fold, 2 * hits::float8 / (found + same)::float8 AS f1, score - next AS gap,
           (SELECT rounded FROM generate_series(1, 15) digits, LATERAL (SELECT round(((score + next) / 2)::numeric, digits)::float8) r (rounded)
            WHERE rounded > next AND rounded <= score ORDER BY digits LIMIT 1) AS threshold
    FROM cuts WHERE score > 0 ORDER BY k, unit, fold, f1 DESC, score DESC";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let mut tables = [
        Table::new(
            "calibration.corpora",
            "Half of the labeled pairs of each corpus chose the parameters, by a hash of their keys; the figures are of the \
             other half. All the same: the F1 of taking every pair for the same. Defaults: words, k = 3, fold 'case', threshold 0.8.",
            "documents | pairs (same) | chosen | precision | recall | F1 | defaults: precision | recall | F1 \
                 | all the same: F1",
        ),
        Table::new(
            "calibration.lengths",
            "The best F1 of resemblance on the pairs that chose, fold 'case', in brackets from which threshold on.",
            "documents | word 1 | word 2 | word 3 | word 5 | char 3 | char 5 | char 8 | char 12",
        ),
        Table::new(
            "calibration.short_chinese",
            "Of the pairs of poems that were not used to choose, those edited by a fifth or less are the same.",
            "k, words | threshold | precision | recall | F1",
        ),
        Table::new(
            "calibration.code",
            "Of the pairs of programs that were not used to choose, those plagiarized are the same; fold 'none'.",
            "k, characters | threshold | precision | recall | F1",
        ),
    ];
    let cluster = bench.started_cluster()?;
    for collection in COLLECTIONS {
        let Some(corpus) = Corpus::find(collection.corpus) else {
            println!("Skipping {}: it is not present", collection.corpus);
            continue;
        };
        let database = Database::with_extension(&cluster, "calibration")?;
        let session = Session::open(&database)?;
        collection.load(&corpus, &session)?;
        session.execute(CALIBRATED)?;
        let [corpora, lengths, short, code] = &mut tables;
        corpora.push(chosen(&session, collection.about)?);
        lengths.push(by_length(&session, collection.about)?);
        let (table, unit, parameters) = match collection.corpus {
            SONG => (short, "word", SHORT),
            JAVA => (code, "char", CODE),
            _ => continue,
        };
        for (k, threshold) in parameters {
            let condition = format!("resemblance(a, b, {k}, '{unit}', 'none') >= {threshold}");
            let mut row = row![f64::from(k), threshold];
            row.extend(held_out(&session, &condition)?);
            table.push(row);
        }
    }
    Ok(tables
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect())
}

impl Collection {
    /// Creates the table pairs (a text, b text, same boolean, seen boolean).
    fn load(&self, corpus: &Corpus, session: &Session) -> Result<()> {
        corpus.load(&mut session.client(), "docs")?;
        session.execute("ALTER TABLE docs ADD PRIMARY KEY (id); ANALYZE docs")?;
        let labels = match &self.labels {
            Labels::List(list, condition) => {
                corpus.load_labels(&mut session.client(), list, "labels")?;
                format!("SELECT a, b, {condition} AS same FROM labels")
            }
            Labels::Truth => {
                corpus.load_truth(&mut session.client(), "truth")?;
                format!(
                    "SELECT a, b, true AS same FROM truth UNION ALL
                     SELECT a, b, false FROM (SELECT least(a_key, b_key), greatest(a_key, b_key)
                                              FROM near_dup_sample_pairs(NULL::bigint, 'SELECT id, body FROM docs', {DRAWN})
                                              EXCEPT SELECT least(a, b), greatest(a, b) FROM truth) d (a, b)"
                )
            }
            Labels::Pairs(condition) => format!(
                "SELECT p.a, p.b, {condition} AS same
                 FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.4, k => 1) p
                 JOIN docs x ON x.id = p.a JOIN docs y ON y.id = p.b
                 WHERE length(x.body) <= 400 AND length(y.body) <= 400
                 ORDER BY hashint8(p.a * 1000003 + p.b) LIMIT {POEM_PAIRS}"
            ),
        };
        session.execute(&format!(
            "CREATE TABLE pairs AS SELECT x.body AS a, y.body AS b, same, hashint8(l.a * 1000003 + l.b) & 1 = 0 AS seen
             FROM ({labels}) l JOIN docs x ON x.id = l.a JOIN docs y ON y.id = l.b ORDER BY l.a, l.b"
        ))
    }
}

fn chosen(session: &Session, about: &str) -> Result<Vec<Cell>> {
    let pairs = session.row(
        "SELECT count(*), count(*) FILTER (WHERE same) FROM pairs",
        &[],
    )?;
    let (all, same): (i64, i64) = (pairs.get(0), pairs.get(1));
    let best = session.row(
        "SELECT format('resemblance(a, b, %s, %L, %L) >= %s', k, unit, fold, threshold),
                concat(unit, ', k = ', k, ', fold ''', fold, ''', threshold ', threshold)
         FROM calibrated ORDER BY f1 DESC, gap DESC LIMIT 1",
        &[],
    )?;
    let condition: String = best.get(0);
    let mut row = row![about, format!("{all} ({same})"), best.get::<_, String>(1)];
    row.extend(held_out(session, &condition)?);
    row.extend(held_out(session, "resemblance(a, b) >= 0.8")?);
    row.extend(held_out(session, "true")?.pop());
    Ok(row)
}

fn by_length(session: &Session, about: &str) -> Result<Vec<Cell>> {
    let mut row = row![about];
    for (unit, k) in LENGTHS {
        let found = session.row(
            "SELECT coalesce(max(f1), 0), coalesce(max(threshold), 1) FROM calibrated
             WHERE fold = 'case' AND unit = $1 AND k = $2",
            &[&unit, &k],
        )?;
        let (f1, threshold): (f64, f64) = (found.get(0), found.get(1));
        row.push(format!("{f1:.2} ({threshold})").into());
    }
    Ok(row)
}

fn held_out(session: &Session, condition: &str) -> Result<Vec<Cell>> {
    let row: Row = session.row(&HELD_OUT.replace("CONDITION", condition), &[])?;
    Ok((0..3).map(|i| Cell::from(row.get::<_, f64>(i))).collect())
}
