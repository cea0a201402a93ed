//! Documents: scan, index, pairs, clusters, constraint, guard and tracker find exactly the pairs of `resemblance`.

mod lasting;

use std::iter;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, ensure_same_rows};
use crate::known::{Collection, Generated, WITH_EXACT_PAIRS};
use lasting::{ensure_lasting, stars};

/// Thresholds of conditions.
const THRESHOLDS: [&str; 4] = ["0.5", "0.6666666666666666", "0.8", "0.9"];

/// Edited copies, half of them sharing a template with small parts of their own, and documents that are short, empty,
/// periodic, repeated, without words, or in several scripts.
const DOCUMENTS: &str = "
    CREATE TABLE docs (id bigserial PRIMARY KEY, body text);
    INSERT INTO docs (body)
    SELECT string_agg(CASE WHEN w <= i % 10 THEN 'Edit' || i || w ELSE substr(md5(i / 10 || ' ' || w), 1, 5) END,
                      CASE w % 3 WHEN 0 THEN ' of the ' ELSE ' ' END ORDER BY w * 7 % 30)
    FROM generate_series(1, 100) i, generate_series(1, 30) w GROUP BY i;
    INSERT INTO docs (body)
    SELECT string_agg(CASE WHEN w % 40 < i % 7 THEN 'part' || i * w ELSE 'Template' || w END, ' ' ORDER BY w)
    FROM generate_series(1, 100) i, generate_series(1, 60) w GROUP BY i;
    INSERT INTO docs (body)
    SELECT unnest(ARRAY[NULL, '', ' ', '...', 'one', 'one', 'One!', 'Two words', 'two, words!', 'two words more',
        repeat('a b c ', 50), repeat('A B C ', 500), repeat('again ', 40), repeat('again ', 400),
        'Ÿ ÿ é e\u{301} Straße STRASSE', 'ÿ Ÿ É É strasse straße', '我爱北京天安门我爱北京', '我爱北京天安门我爱上海',
        repeat('x', 3000), repeat('x', 3001)]);
    CREATE TABLE counted (q bigint, id bigint, similarity float8)";

/// How documents are cut: the arguments of `resemblance` and the options of an index.
const CUTS: [[&str; 2]; 5] = [
    ["", ""],
    [", 1", ", k = 1"],
    [", 5, 'char'", ", k = 5, unit = char"],
    [", 2, 'stop', 'marks'", ", k = 2, unit = stop, fold = marks"],
    [
        ", 4, 'char', 'none'",
        ", k = 4, unit = char, fold = none, seed = 7",
    ],
];

/// Returns the operator class of documents with these options, each preceded by a comma.
fn class(options: &str) -> String {
    match options.strip_prefix(", ") {
        Some(options) => format!(" text_ops ({options})"),
        None => String::new(),
    }
}

/// Documents of 1 to 20 000 words, on both sides of every level. They are pieces of one long text, so many contain others:
/// for each length and start, the piece itself and a copy with every tenth word replaced.
const LENGTHS: &str = "
    CREATE TABLE words AS SELECT w, 'word' || w AS word FROM generate_series(1, 10000) w;
    CREATE TABLE docs (id bigserial PRIMARY KEY, body text);
    INSERT INTO docs (body)
    SELECT string_agg(CASE WHEN edit > 0 AND w % 10 = edit THEN 'other' || length || w ELSE word END, ' ' ORDER BY w)
    FROM unnest('{1,3,20,66,67,90,131,200,400,514,515,620,1030,2100,5000,9000}'::int[]) length,
         unnest('{0,30}'::int[]) start, generate_series(0, 1) edit, words
    WHERE w > start AND w <= start + length GROUP BY length, start, edit;
    CREATE TABLE counted (q bigint, id bigint, similarity float8);
    SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off";

/// Joins are executed by workers that perform lookups in the index.
const IN_PARALLEL: &str =
    "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET enable_seqscan = on;
     SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0";

/// Checks that an index on documents of all lengths, including sampled ones, gives the same results as a scan at every
/// threshold: in the log and in segments, with little memory, with other k, unit and fold, and in parallel.
pub fn sampled_equal_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_sampled")?;
    let mut client = database.connect()?;
    client.batch_execute(LENGTHS)?;
    let all = ["0.05", "0.1", "0.3", "0.5", "0.8", "0.9", "1"];
    let some = ["0.3", "0.8"];
    let of_characters = [", 9, 'char', 'none'", ", k = 9, unit = char, fold = none"];
    let mut counted_cut = None;
    for ([cut, options], keys, thresholds) in [
        (["", ""], ", keys = 64, seed = 5", &all[..]),
        (["", ""], "", &all),
        ([", 1", ", k = 1"], ", keys = 200", &some),
        (of_characters, "", &some),
    ] {
        if counted_cut.replace(cut) != Some(cut) {
            count(&mut client, "resemblance", cut)?;
        }
        let index = format!(
            "CREATE INDEX docs_body ON docs USING neardup (body{})",
            class(&format!("{options}{keys}"))
        );
        let mut check = |change: &str, thresholds: &[&str]| {
            for statement in change.split("; ") {
                client.batch_execute(statement)?;
            }
            for threshold in thresholds {
                let near = format!("near_dup(d.body, q.body, {threshold}{cut})");
                let counted = format!("SELECT q, id FROM counted WHERE similarity >= {threshold}");
                ensure_same(&mut client, &near, &counted)
                    .with_context(|| format!("{change}, {threshold}{options}{keys}"))?;
            }
            Ok::<_, anyhow::Error>(())
        };
        for change in [
            &index,
            "SET work_mem = '64kB'; UPDATE docs SET body = body",
            "VACUUM docs; SELECT near_dup_index_check('docs_body')",
            "REINDEX INDEX docs_body",
        ] {
            check(change, thresholds)?;
        }
        check(IN_PARALLEL, &some)?;
        let join =
            format!("EXPLAIN SELECT FROM docs q, docs d WHERE near_dup(d.body, q.body, 0.8{cut})");
        let plan = client.query(&join, &[])?;
        let gathers = |row: &postgres::Row| row.get::<_, String>(0).contains("Gather");
        ensure!(plan.iter().any(gathers), "{join} is not parallel");
        client.batch_execute(
            "DROP INDEX docs_body; SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off",
        )?;
    }
    Ok(Outcome::Passed)
}

/// Checks that an index on documents of all lengths finds the same rows by containment as a scan, in both directions,
/// at every threshold: in the log and in segments, with little memory, with other k, unit and fold, and within a scope.
pub fn containment_equals_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_contained")?;
    let mut client = database.connect()?;
    client.batch_execute(LENGTHS)?;
    client.batch_execute("ALTER TABLE docs ADD tenant int; UPDATE docs SET tenant = id % 2")?;
    let all = ["0.05", "0.1", "0.3", "0.5", "0.8", "0.9", "1"];
    let some = ["0.3", "0.8"];
    let of_characters = [", 9, 'char', 'none'", ", k = 9, unit = char, fold = none"];
    let mut counted_cut = None;
    for ([cut, options], keys, column, thresholds) in [
        (["", ""], ", keys = 64, seed = 5", "body", &all[..]),
        (["", ""], "", "body", &all),
        (["", ""], ", keys = 64", "tenant, body", &some),
        ([", 1", ", k = 1"], ", keys = 200", "body", &some),
        (of_characters, "", "body", &some),
    ] {
        if counted_cut.replace(cut) != Some(cut) {
            count(&mut client, "containment", cut)?;
        }
        let index = format!(
            "CREATE INDEX docs_body ON docs USING neardup ({column}{})",
            class(&format!("{options}{keys}"))
        );
        let scope = match column {
            "body" => "",
            _ => " AND d.tenant = 1",
        };
        for change in [
            &index,
            "SET work_mem = '64kB'; UPDATE docs SET body = body",
            "VACUUM docs; SELECT near_dup_index_check('docs_body')",
            "REINDEX INDEX docs_body",
        ] {
            for statement in change.split("; ") {
                client.batch_execute(statement)?;
            }
            // Changes of the index do not depend on the threshold.
            let thresholds = if *change == *index {
                thresholds
            } else {
                &some[..]
            };
            for threshold in thresholds {
                let counted = |columns: &str, row: &str| {
                    let of_scope = match scope {
                        "" => String::new(),
                        _ => format!(" AND {row} % 2 = 1"),
                    };
                    format!(
                        "SELECT {columns} FROM counted WHERE similarity >= {threshold}{of_scope}"
                    )
                };
                for (pair, counted) in [
                    ("q.body, d.body", counted("q, id", "id")),
                    ("d.body, q.body", counted("id, q", "q")),
                ] {
                    let contained = format!("near_contained({pair}, {threshold}{cut})");
                    let compared = format!("containment({pair}{cut}) >= {threshold}");
                    // The planner makes the same lookup from it.
                    let is_compared = *change == *index && some.contains(threshold);
                    let compared = is_compared.then_some(compared);
                    for condition in iter::once(contained).chain(compared) {
                        ensure_same(&mut client, &format!("{condition}{scope}"), &counted)
                            .with_context(|| format!("{change}, {threshold}{options}{keys}"))?;
                    }
                }
            }
        }
        client.batch_execute("DROP INDEX docs_body")?;
    }
    Ok(Outcome::Passed)
}

/// More documents of one template than a page has postings, with shared parts of their own, in pairs, of every size.
const TEMPLATES: &str = "
    CREATE TABLE docs AS
    SELECT i AS id, string_agg(CASE WHEN w <= i % 50 THEN 'own' || i / 2 || 'x' || w ELSE 'common' || w END, ' ' ORDER BY w) AS body
    FROM generate_series(1, 4000) i, generate_series(1, 40 + i % 37) w GROUP BY i;
    CREATE TABLE queries AS SELECT * FROM docs WHERE id % 97 = 0
    UNION ALL SELECT 0, string_agg('common' || w, ' ' ORDER BY w) FROM generate_series(1, 60) w;
    CREATE TABLE counted AS
    SELECT q.id AS q, d.id, resemblance(q.body, d.body) AS similarity FROM queries q, docs d;
    CREATE INDEX docs_body ON docs USING neardup (body);
    SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off";

/// Checks an index on documents of one template at every threshold, in merged segments, with little memory.
pub fn templates_equal_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_templates")?;
    let mut client = database.connect()?;
    client.batch_execute(TEMPLATES)?;
    for change in [
        "ANALYZE docs",
        "SET work_mem = '64kB'; UPDATE docs SET body = body WHERE id % 3 = 0",
        "UPDATE docs SET body = body WHERE id % 2 = 0; VACUUM docs",
        "REINDEX INDEX docs_body; SELECT near_dup_index_check('docs_body')",
    ] {
        for statement in change.split("; ") {
            client.batch_execute(statement)?;
        }
        for threshold in [
            "0.05", "0.2", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "1",
        ] {
            let near = format!("near_dup(d.body, q.body, {threshold})");
            let counted = format!("SELECT q, id FROM counted WHERE similarity >= {threshold}");
            ensure_found(&mut client, "queries", &near, &counted)
                .with_context(|| format!("{change}, {threshold}"))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Checks indexes at several thresholds, after changes, and with every cut, against `resemblance` of all pairs.
pub fn index_equals_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    client.batch_execute("SET max_parallel_workers_per_gather = 0")?;
    for [cut, options] in CUTS {
        count(&mut client, "resemblance", cut)?;
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS docs_body;
             CREATE INDEX docs_body ON docs USING neardup (body{})",
            class(options)
        ))?;
        for threshold in ["0.05", "0.3"].into_iter().chain(THRESHOLDS).chain(["1"]) {
            ensure_counted(&mut client, threshold, cut)
                .with_context(|| format!("threshold {threshold}{options}"))?;
        }
    }
    client.batch_execute(
        "UPDATE docs SET body = body || ' and more' WHERE id % 5 = 0; DELETE FROM docs WHERE id % 7 = 0;
         INSERT INTO docs (body) SELECT body FROM docs WHERE id % 9 = 0",
    )?;
    let cut = CUTS[4][0];
    count(&mut client, "resemblance", cut)?;
    for change in ["", "VACUUM docs", "REINDEX INDEX CONCURRENTLY docs_body"] {
        client.batch_execute(change)?;
        ensure_counted(&mut client, "0.9", cut).context(change)?;
    }
    client.batch_execute("SELECT near_dup_index_check('docs_body')")?;
    Ok(Outcome::Passed)
}

/// Compares all pairs of documents by a measure, once for all thresholds.
fn count(client: &mut Client, measure: &str, cut: &str) -> Result<()> {
    client.batch_execute(&format!(
        "TRUNCATE counted;
         INSERT INTO counted
         SELECT * FROM (SELECT q.id AS q, d.id, {measure}(q.body, d.body{cut}) AS similarity FROM docs q, docs d) all_pairs
         WHERE similarity >= 0.05"
    ))?;
    Ok(())
}

/// Checks that a scan finds the counted pairs, and so does an index, with the arguments in either order and in a
/// comparison.
fn ensure_counted(client: &mut Client, threshold: &str, cut: &str) -> Result<()> {
    let [comma, cut] = if cut.is_empty() {
        ["", ""]
    } else {
        [", ", &cut[2..]]
    };
    let counted = format!("SELECT q, id FROM counted WHERE similarity >= {threshold}");
    let near = format!("near_dup(d.body, q.body, {threshold}{comma}{cut})");
    client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    let found = format!("SELECT q.id, d.id FROM docs q, docs d WHERE {near}");
    ensure_same_rows(client, &found, &counted)?;
    client.batch_execute(
        "RESET enable_indexscan; RESET enable_bitmapscan; SET enable_seqscan = off",
    )?;
    for condition in [
        near,
        format!("near_dup(q.body, d.body, {threshold}{comma}{cut})"),
        format!("resemblance(d.body, q.body{comma}{cut}) >= {threshold}"),
    ] {
        ensure_same(client, &condition, &counted)?;
    }
    client.batch_execute("RESET enable_seqscan")?;
    Ok(())
}

/// Checks that an index of documents finds the pairs that a query returns.
fn ensure_same(client: &mut Client, condition: &str, wanted: &str) -> Result<()> {
    ensure_found(client, "docs", condition, wanted)
}

/// Does the same for all queries in a table.
fn ensure_found(client: &mut Client, queries: &str, condition: &str, wanted: &str) -> Result<()> {
    let found = format!("SELECT q.id AS q, d.id FROM {queries} q, docs d WHERE {condition}");
    let plan = client.query(&format!("EXPLAIN {found}"), &[])?;
    let uses_index = |row: &postgres::Row| row.get::<_, String>(0).contains("docs_body");
    ensure!(
        plan.iter().any(uses_index),
        "{found} does not take the index"
    );
    ensure_same_rows(client, &found, wanted)
}

/// Checks pairs, joins, clusters, constraints, guards and trackers with every cut against `resemblance` of all pairs,
/// in memory and in temporary files.
pub fn pairs_equal_comparison(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_pairs")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    for [cut, _] in CUTS {
        count(&mut client, "resemblance", cut)?;
        for threshold in THRESHOLDS {
            let what = || format!("threshold {threshold}{cut}");
            for work_mem in ["64kB", "64MB"] {
                client.batch_execute(&format!("SET work_mem = '{work_mem}'"))?;
                ensure_pairs(&mut client, threshold, cut).with_context(what)?;
            }
            ensure_lasting(&mut client, threshold, cut).with_context(what)?;
        }
    }
    Ok(Outcome::Passed)
}

fn ensure_pairs(client: &mut Client, threshold: &str, cut: &str) -> Result<()> {
    let query = |rows: &str| format!("'SELECT id, body FROM docs WHERE {rows} ORDER BY id'");
    let (all, odd, even) = (query("true"), query("id % 2 = 1"), query("id % 2 = 0"));
    let counted =
        format!("SELECT q, id, similarity FROM counted WHERE similarity >= {threshold} AND");
    for (found, wanted) in [
        (
            format!("SELECT * FROM near_dup_pairs(NULL::bigint, {all}, {threshold}{cut})"),
            format!("{counted} q < id"),
        ),
        (
            format!("SELECT * FROM near_dup_join(NULL::bigint, {odd}, {even}, {threshold}{cut})"),
            format!("{counted} q % 2 = 1 AND id % 2 = 0"),
        ),
        (
            format!(
                "SELECT key, cluster FROM near_dup_clusters(NULL::bigint, {all}, {threshold}, 'star'{cut})"
            ),
            stars(threshold),
        ),
        (
            format!(
                "SELECT key, cluster FROM near_dup_clusters(NULL::bigint, {all}, {threshold}, 'connected'{cut})"
            ),
            format!(
                "SELECT id, coalesce(component, id) FROM docs LEFT JOIN connected_components(
                     NULL::bigint, 'SELECT q, id FROM counted WHERE similarity >= {threshold}') ON key = id"
            ),
        ),
    ] {
        ensure_same_rows(client, &found, &wanted)?;
    }
    Ok(())
}

/// Two texts of 90 words that share 80 words, chosen so that the estimate falls far short of their resemblance, and 200
/// copies of each.
const UNDERRATED: &str = "
    CREATE TABLE shared AS SELECT string_agg('shared' || w, ' ') AS body FROM generate_series(1, 80) w;
    CREATE TABLE own AS
    SELECT 'own' || w AS word,
           row_number() OVER (ORDER BY minhash_sim(minhash(body, 1), minhash(body || ' own' || w, 1)), w) AS place
    FROM shared, generate_series(1, 1000) w;
    CREATE TABLE texts AS
    SELECT place % 2 AS text, body || string_agg(' ' || word, '') AS body
    FROM shared, own WHERE place <= 20 GROUP BY place % 2, body;
    CREATE TABLE docs AS SELECT row_number() OVER () AS id, body FROM texts, generate_series(1, 200);
    CREATE INDEX docs_body ON docs USING neardup (body text_ops (k = 1));
    SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0";

/// Checks that copies of two texts are found whose resemblance just reaches the threshold, far above its estimate.
pub fn underrated_copies(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_underrated")?;
    let mut client = database.connect()?;
    client.batch_execute(UNDERRATED)?;
    let row = client.query_one(
        "SELECT resemblance(a.body, b.body, 1), minhash_sim(minhash(a.body, 1), minhash(b.body, 1))
         FROM texts a, texts b WHERE a.text < b.text",
        &[],
    )?;
    let [resemblance, estimate]: [f64; 2] = [row.get(0), row.get(1)];
    ensure!(
        resemblance == 0.8 && estimate < 0.65,
        "{resemblance}, {estimate}"
    );
    let all = "SELECT a.id, b.id FROM docs a, docs b";
    ensure_same(&mut client, "near_dup(d.body, q.body, 0.8, 1)", all)?;
    for rows in [
        "id, body",
        "id, minhash(body, 1), body",
        "id, string_to_array(body, '' '')",
    ] {
        let found = format!(
            "SELECT a, b FROM near_dup_pairs(NULL::bigint, 'SELECT {rows} FROM docs ORDER BY id', 0.8, 1)"
        );
        ensure_same_rows(&mut client, &found, &format!("{all} WHERE a.id < b.id"))?;
    }
    Ok(Outcome::Passed)
}

/// Checks that all functions find every pair of real documents that another program lists, and of generated documents
/// half of which follow one template, and no pair below the threshold.
pub fn equal_exact_lists(server: &Server) -> Result<Outcome> {
    let mut collections = Collection::all(Generated::english(), WITH_EXACT_PAIRS);
    collections.push(Collection::Generated(Generated::template()));
    for collection in collections {
        let database = Database::with_extension(&server.main, "documents_exact")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        collection.load_exact(&mut client, "exact_w3", "exact")?;
        // Words outside ASCII are not the same by every rule.
        client.batch_execute(
            "DELETE FROM docs WHERE octet_length(body) <> char_length(body);
             CREATE TABLE counted AS
             SELECT a.id AS q, b.id, resemblance(a.body, b.body) AS similarity
             FROM exact e JOIN docs a ON a.id = least(e.a, e.b) JOIN docs b ON b.id = greatest(e.a, e.b);
             SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0",
        )?;
        let docs: i64 = client.query_one("SELECT count(*) FROM docs", &[])?.get(0);
        client.batch_execute("CREATE INDEX docs_body ON docs USING neardup (body)")?;
        let is_small = docs < 3000;
        let is_chosen = |threshold: &&str| is_small || ["0.5", "0.8"].contains(threshold);
        for threshold in THRESHOLDS.into_iter().filter(is_chosen) {
            let near = format!("near_dup(d.body, q.body, {threshold}) AND q.id < d.id");
            let counted = format!("SELECT q, id FROM counted WHERE similarity >= {threshold}");
            ensure_same(&mut client, &near, &counted).context(collection.name().to_string())?;
            let pairs = format!(
                "SELECT least(a, b), greatest(a, b) FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', {threshold})"
            );
            ensure_same_rows(&mut client, &pairs, &counted)
                .context(collection.name().to_string())?;
            if threshold == "0.8" || is_small {
                ensure_lasting(&mut client, threshold, "")
                    .context(collection.name().to_string())?;
            }
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that a join plans each of its queries once, whichever is smaller: a function that PostgreSQL treats as a
/// constant is called at each planning.
pub fn join_plans_once(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_join")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i AS id, 'Some words of document ' || i / 2 AS body FROM generate_series(1, 100) i;
         ANALYZE docs;
         CREATE SEQUENCE plans;
         CREATE FUNCTION planned() RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
             $$ BEGIN PERFORM nextval('plans'); RETURN true; END $$",
    )?;
    let query = |rows: &str| format!("'SELECT id, body FROM docs WHERE planned() AND {rows}'");
    for (a, b) in [("id % 2 = 0", "true"), ("true", "id % 2 = 0")] {
        let (a, b) = (query(a), query(b));
        client.execute("SELECT setval('plans', 1, false)", &[])?;
        let pairs = format!("SELECT count(*) FROM near_dup_join(NULL::int, {a}, {b}, 0.8)");
        let pairs: i64 = client.query_one(&pairs, &[])?.get(0);
        let plans: i64 = client
            .query_one("SELECT last_value FROM plans", &[])?
            .get(0);
        ensure!(
            pairs > 0 && plans == 2,
            "{plans} plans of two queries, {pairs} pairs"
        );
    }
    Ok(Outcome::Passed)
}

/// Checks documents of 10 MB: copies with one more word are found, unrelated documents are not.
pub fn large_documents(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "documents_large")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id bigint, body text);
         INSERT INTO docs SELECT i, string_agg(md5(i / 2 || ' ' || w), ' ') || repeat(' more', i)
         FROM generate_series(2, 5) i, generate_series(1, 320000) w GROUP BY i;
         CREATE TABLE counted AS
         SELECT q.id AS q, d.id, resemblance(q.body, d.body) AS similarity FROM docs q, docs d;
         CREATE INDEX docs_body ON docs USING neardup (body)",
    )?;
    client.batch_execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")?;
    let wanted = "SELECT q.id, d.id FROM docs q JOIN docs d ON q.id / 2 = d.id / 2";
    ensure_same_rows(
        &mut client,
        "SELECT q, id FROM counted WHERE similarity >= 0.8",
        wanted,
    )?;
    ensure_same(&mut client, "near_dup(d.body, q.body)", wanted)?;
    let pairs = "SELECT a, b FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.8)";
    ensure_same_rows(&mut client, pairs, &format!("{wanted} WHERE q.id < d.id"))?;
    ensure_lasting(&mut client, "0.8", "")?;
    Ok(Outcome::Passed)
}
