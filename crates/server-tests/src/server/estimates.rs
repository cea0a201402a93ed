//! Compares the planner's estimates of rows with the actual numbers.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Ten groups of 200 rows, 400 groups of ten, and 14 000 single rows. Rows of a group have three of 31 shingles of
/// their own, differ in one or two bits, or differ in one of 31 elements.
const TABLE: &str = "
    CREATE TABLE docs AS SELECT i AS id, minhash(
            (SELECT string_agg('w' || hashint8(grp * 100 + w), ' ') FROM generate_series(1, 30) w) || ' ' || i) AS sig,
        hashint8extended(grp, 0)::bit(64) # (1::bit(64) << i % 64) AS b,
        array(SELECT hashint8extended(grp * 100 + w, 1) FROM generate_series(1, 30) w) || i::bigint AS prints
    FROM generate_series(1, 20000) i,
         LATERAL (SELECT CASE WHEN i <= 2000 THEN i % 10 WHEN i <= 6000 THEN 100 + i % 400 ELSE i END AS grp) g;
    CREATE INDEX ON docs USING neardup (sig);
    CREATE INDEX ON docs USING neardup (b);
    CREATE INDEX ON docs USING neardup (prints);
    ANALYZE docs";

/// A row in a group of 200, a row in a group of ten, and a single row.
const ROWS: [i64; 3] = [77, 3333, 12345];

/// Conditions on a value.
const CONDITIONS: [(&str, &str); 9] = [
    ("sig", "near_dup(sig, VALUE, 0.8)"),
    ("sig", "sig <@ _ball((VALUE)::minhash_signature, 0.8)"),
    ("sig", "minhash_sim(sig, VALUE) > 0.8"),
    ("sig", "sig <=> VALUE <= 0.2"),
    ("b", "hamming_within(b, VALUE, 3)"),
    ("b", "3 >= bit_hamming(VALUE, b)"),
    ("prints", "near_contained(prints, VALUE, 0.8)"),
    ("prints", "near_contained(VALUE, prints, 0.8)"),
    ("prints", "near_dup(VALUE, prints, 0.8)"),
];

/// Checks that the estimate is within a factor of 3: for a constant, of the rows that it finds; for an unknown value,
/// of the mean over the table's rows.
pub fn near_the_truth(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "estimates")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    for (column, condition) in CONDITIONS {
        let on = |value: &str| condition.replace("VALUE", value);
        for row in ROWS {
            let value = literal(&mut client, column, row)?;
            let condition = on(&value);
            check(
                &mut client,
                &format!("SELECT id FROM docs WHERE {condition}"),
                None,
            )
            .with_context(|| format!("{condition} of row {row}"))?;
        }
        client.batch_execute(&format!(
            "SET plan_cache_mode = force_generic_plan;
             PREPARE lookup AS SELECT id FROM docs WHERE {}",
            on("$1")
        ))?;
        check(&mut client, "EXECUTE lookup (NULL)", Some(MEAN)).with_context(|| on("$1"))?;
        client.batch_execute("DEALLOCATE lookup")?;
    }
    Ok(Outcome::Passed)
}

/// The number of rows that a row of the table finds, on average.
const MEAN: f64 = (2000.0 * 200.0 + 4000.0 * 10.0 + 14000.0) / 20000.0;

/// Compares the planner's number of rows with `truth`, or with the number of rows found.
fn check(client: &mut Client, query: &str, truth: Option<f64>) -> Result<()> {
    let truth = match truth {
        Some(truth) => truth,
        None => client.query(query, &[])?.len() as f64,
    };
    let plan = client.query(&format!("EXPLAIN {query}"), &[])?;
    let plan: String = plan.first().context("no plan")?.get(0);
    let planned = number_after(&plan, "rows=")? as f64;
    ensure!(
        planned <= 3.0 * truth && truth <= 3.0 * planned,
        "{planned} rows planned, {truth} there are"
    );
    Ok(())
}

/// Returns the value of a row as an SQL literal.
fn literal(client: &mut Client, column: &str, row: i64) -> Result<String> {
    let type_ = match column {
        "b" => "bit(64)",
        "prints" => "bigint[]",
        _ => "minhash_signature",
    };
    let query = format!("SELECT quote_literal({column}::text) FROM docs WHERE id = {row}");
    let text: String = client.query_one(&query, &[])?.get(0);
    Ok(format!("{text}::{type_}"))
}

/// 40 000 unrelated rows, followed by 8 000 rows of one group.
const LATER_GROUP: &str = "
    CREATE TABLE later AS SELECT hashint8extended(i, 0)::bit(64) AS b FROM generate_series(1, 40000) i;
    CREATE INDEX ON later USING neardup (b);
    INSERT INTO later SELECT hashint8extended(0, 0)::bit(64) # (1::bit(64) << i % 64) FROM generate_series(1, 8000) i;
    VACUUM ANALYZE later";

/// Checks that the estimate for an unknown value is the mean over all segments, and not that of the largest segment.
pub fn of_later_groups(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "estimates")?;
    let mut client = database.connect()?;
    for statement in LATER_GROUP.split(';') {
        client.batch_execute(statement)?;
    }
    client.batch_execute(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE lookup AS SELECT FROM later WHERE hamming_within(b, $1, 3)",
    )?;
    let mean = (8000.0 * 8000.0 + 40000.0) / 48000.0;
    check(&mut client, "EXECUTE lookup (NULL)", Some(mean))?;
    Ok(Outcome::Passed)
}

/// Checks that the planner's number of pairs in a join is near the actual number, and does not depend on the spelling.
pub fn of_joins(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "estimates")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let pairs = MEAN * 20000.0;
    for condition in [
        "near_dup(a.sig, b.sig, 0.8)",
        "minhash_sim(b.sig, a.sig) >= 0.8",
        "a.sig <=> b.sig < 0.2",
        "hamming_within(a.b, b.b, 3)",
        "bit_hamming(a.b, b.b) < 4",
        "near_contained(a.prints, b.prints, 0.8)",
        "near_dup(a.prints, b.prints, 0.8)",
    ] {
        let join = format!("SELECT a.id FROM docs a JOIN docs b ON {condition}");
        check(&mut client, &join, Some(pairs)).context(condition)?;
    }
    Ok(Outcome::Passed)
}

/// Parts of 20 sets of 2000 elements, 40 elements each, and the same number of rows that share one such element.
const PARTS: &str = "
    CREATE TABLE parts AS
    SELECT i AS id, array(SELECT (i % 20) * 10000 + i * 37 % 1960 + e FROM generate_series(1, 40) e) AS prints
    FROM generate_series(1, 10000) i
    UNION ALL
    SELECT i, array(SELECT -i * 100 - e FROM generate_series(1, 39) e) || (i % 20 * 10000 + i % 1960)::bigint
    FROM generate_series(1, 10000) i;
    CREATE INDEX ON parts USING neardup (prints);
    VACUUM ANALYZE parts";

/// Checks that the number of rows that a large set contains is estimated from some of its elements.
pub fn of_large_sets(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "estimates")?;
    let mut client = database.connect()?;
    for statement in PARTS.split(';') {
        client.batch_execute(statement)?;
    }
    for (elements, threshold) in [(2000, 0.8), (1000, 0.8), (2000, 0.1), (100, 0.5)] {
        let set = format!("(SELECT array_agg(30000 + e) FROM generate_series(1, {elements}) e)");
        let set: String = client
            .query_one(&format!("SELECT {set}::text"), &[])?
            .get(0);
        let query = format!(
            "SELECT id FROM parts WHERE near_contained(prints, '{set}'::bigint[], {threshold})"
        );
        check(&mut client, &query, None).with_context(|| format!("of {elements}"))?;
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS) {query}");
        client.query(&explain, &[])?;
        let plan = client.query(&explain, &[])?;
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        let (run, planned) = plan.split_once("Planning:").context("no planning")?;
        let [running, planning] = [run, planned].map(|part| number_after(part, "shared hit="));
        let (running, planning) = (running?, planning?);
        ensure!(
            elements < 200 || planning * 2 < running,
            "{planning} pages to plan, {running} to run, for {elements} elements"
        );
    }
    Ok(Outcome::Passed)
}

/// Groups of 100 documents. The indexes of `others`, and one of `docs`, call functions that fail once their helper is
/// gone, or in parallel workers. The other one is created before its rows, so that only VACUUM can measure it.
const FUNCTIONS: &str = "
    CREATE FUNCTION helper(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(t)';
    CREATE FUNCTION calling(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN public.helper(t); END $$;
    CREATE FUNCTION inlined(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT public.helper(t)';
    CREATE FUNCTION setting(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM set_config('extra_float_digits', '2', true); RETURN lower(t); END $$;
    CREATE FUNCTION catching(t text) RETURNS minhash_signature LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN public.minhash(t); EXCEPTION WHEN data_exception THEN RETURN NULL; END $$;
    CREATE DOMAIN checked AS text CHECK (calling(VALUE) <> '');
    CREATE TABLE docs (id int, body text);
    CREATE INDEX ON docs USING neardup (minhash(body));
    INSERT INTO docs
    SELECT i, (SELECT string_agg('word' || i % 20 * 100 + w, ' ') FROM generate_series(1, 30) w) || ' ' || i
    FROM generate_series(1, 2000) i;
    CREATE INDEX ON docs USING neardup (catching(body));
    CREATE TABLE others AS TABLE docs;
    CREATE INDEX ON others USING neardup (calling(body));
    CREATE INDEX ON others USING neardup (inlined(body));
    CREATE INDEX ON others USING neardup (setting(body));
    CREATE INDEX ON others USING neardup ((body::checked::text));
    DELETE FROM others WHERE id % 10 = 0;
    DROP FUNCTION helper(text)";

/// Checks that VACUUM, alone or with parallel workers, measures an index on functions in C, calls no others, and
/// otherwise keeps the build's measurements.
pub fn of_functions(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "estimates_functions")?;
    database.connect()?.batch_execute(FUNCTIONS)?;
    let mut client = database.connect()?;
    client.batch_execute("SET min_parallel_index_scan_size = 0")?;
    for workers in [0, 2] {
        client.batch_execute(&format!("SET max_parallel_maintenance_workers = {workers}"))?;
        for table in ["others", "docs"] {
            client.batch_execute(&format!("VACUUM {table}"))?;
        }
    }
    client.batch_execute("SET plan_cache_mode = force_generic_plan")?;
    for signature in ["minhash(body)", "catching(body)"] {
        client.batch_execute(&format!(
            "PREPARE lookup AS SELECT FROM docs WHERE near_dup({signature}, $1, 0.8)"
        ))?;
        check(&mut client, "EXECUTE lookup (NULL)", Some(100.0)).context(signature)?;
        client.batch_execute("DEALLOCATE lookup")?;
    }
    Ok(Outcome::Passed)
}

/// Returns the number after the first occurrence of a word in a plan.
pub fn number_after(plan: &str, word: &str) -> Result<u64> {
    let (_, after) = plan.split_once(word).context("the plan lacks a number")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}
