//! Tries every pair of changes in two sessions, fresh ones and used ones, with their steps in every order: no copy is
//! accepted, or each is noted.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use super::noted::{ensure_noted, is_noted};
use super::prepared_cluster;
use crate::harness::{Outcome, figure};
use crate::sessions::{Sessions, Step, orders};

/// The guarded tables, in which rows of one tenant that are not drafts are compared with each other by their values of
/// type {TYPE}: a single table, whose index excludes drafts, and a table with two partitions.
const TABLES: &str = "
    CREATE TABLE plain_{TYPE} (id int PRIMARY KEY, tenant int, part int, body text, draft bool DEFAULT false{COLUMN});
    CREATE INDEX ON plain_{TYPE} USING neardup ({VALUE}) WHERE NOT draft;
    SELECT near_dup_protect('plain_{TYPE}', '{VALUE}', {BOUND}, scope => '{tenant}', condition => 'NOT draft'{ACTION});
    CREATE TABLE parted_{TYPE} (id int, tenant int, part int, body text, draft bool DEFAULT false{COLUMN}, PRIMARY KEY (id, part))
        PARTITION BY LIST (part);
    CREATE TABLE parted_{TYPE}_1 PARTITION OF parted_{TYPE} FOR VALUES IN (1);
    CREATE TABLE parted_{TYPE}_2 PARTITION OF parted_{TYPE} FOR VALUES IN (2);
    CREATE INDEX ON parted_{TYPE} USING neardup ({VALUE});
    SELECT near_dup_protect('parted_{TYPE}', '{VALUE}', {BOUND}, scope => '{tenant}', condition => 'NOT draft'{ACTION});";

/// The types of values that a guard compares: name, definition of the generated column, compared column, and bound.
const TYPES: [[&str; 4]; 4] = [
    ["text", "", "body", "0.8"],
    [
        "signature",
        ", value minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED",
        "value",
        "0.8",
    ],
    [
        "set",
        ", value bigint[] GENERATED ALWAYS AS (shingle_hashes(body)) STORED",
        "value",
        "0.8",
    ],
    [
        "bits",
        ", value bit(64) GENERATED ALWAYS AS (('x' || left(md5(body), 16))::bit(64)) STORED",
        "value",
        "3",
    ],
];

/// The names and arguments of guards that reject near-duplicates, and of guards that note them.
const ACTIONS: [[&str; 2]; 2] = [
    ["", ""],
    ["_noted", ", action => 'note', most => 100, key => 'id'"],
];

/// Creates the guarded tables of every type.
pub fn make_tables(client: &mut Client) -> Result<()> {
    for [name, column, value, bound] in TYPES {
        for [suffix, action] in ACTIONS {
            let tables = TABLES
                .replace("{TYPE}", &format!("{name}{suffix}"))
                .replace("{COLUMN}", column)
                .replace("{VALUE}", value)
                .replace("{BOUND}", bound)
                .replace("{ACTION}", action);
            client.batch_execute(&tables)?;
        }
    }
    client.batch_execute(
        "DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10ms''', current_database());
        END $$;",
    )?;
    Ok(())
}

/// Returns the name of one of the tables.
pub fn any_table(rng: &mut Rng) -> String {
    let shape = ["plain", "parted"][rng.usize(..2)];
    let [type_, ..] = TYPES[rng.usize(..TYPES.len())];
    let [suffix, _] = ACTIONS[rng.usize(..ACTIONS.len())];
    format!("{shape}_{type_}{suffix}")
}

/// The rows before the changes. HELD is a document of row 1; rows of tenants 3 and 4, and draft 8, have it, too.
const ROWS: &str = "INSERT INTO {TABLE} VALUES (1{ID}, 1, 1, {HELD}), (3{ID}, 3, 1, {HELD}), (4{ID}, 4, 2, {HELD}),
    (5{ID}, 1, 1, 'the first other of {ID}'), (6{ID}, 1, 2, 'the second other of {ID}');
    INSERT INTO {TABLE} VALUES (8{ID}, 1, 2, {HELD}, true)";

/// Changes that session N, 0 or 1, makes. FREE and OTHER are documents that no row has; both sessions insert them.
const CHANGES: &[(&str, &[&str])] = &[
    (
        "insert free",
        &["INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1 + {N}, {FREE})"],
    ),
    (
        "insert held",
        &["INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1 + {N}, {HELD})"],
    ),
    (
        "insert both",
        &[
            "INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1 + {N}, {FREE}), (2{N}{ID}, 1, 2 - {N}, {OTHER})",
        ],
    ),
    (
        "insert both the other way round",
        &[
            "INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1 + {N}, {OTHER}), (2{N}{ID}, 1, 2 - {N}, {FREE})",
        ],
    ),
    (
        "copy both",
        &["COPY {TABLE} (id, tenant, part, body) FROM PROGRAM
            'echo 1{N}{ID},1,1,{COPIED_OTHER}; echo 2{N}{ID},1,2,{COPIED_FREE}' (FORMAT csv)"],
    ),
    (
        "insert free, change the key",
        &[
            "INSERT INTO {TABLE} VALUES (2{ID}, 1, 1, {FREE}) ON CONFLICT DO NOTHING",
            "UPDATE {TABLE} SET id = 1{N}{ID} WHERE id = 2{ID}",
        ],
    ),
    (
        "insert free, roll back",
        &[
            "SAVEPOINT s; INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1, {FREE})",
            "ROLLBACK TO s",
        ],
    ),
    (
        "insert free in a savepoint",
        &["SAVEPOINT s; INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1, {FREE}); RELEASE s"],
    ),
    (
        "signature to free",
        &["UPDATE {TABLE} SET body = {FREE} WHERE id = 5{ID} + {N} * 1000000"],
    ),
    (
        "signature to held",
        &["UPDATE {TABLE} SET body = {HELD} WHERE id = 5{ID} + {N} * 1000000"],
    ),
    (
        "scope",
        &["UPDATE {TABLE} SET tenant = 1 WHERE id = 3{ID} + {N} * 1000000"],
    ),
    ("key", &["UPDATE {TABLE} SET id = 7{ID} WHERE id = 1{ID}"]),
    (
        "partition",
        &["UPDATE {TABLE} SET part = 3 - part WHERE id = 1{ID}"],
    ),
    (
        "draft free, publish it",
        &[
            "INSERT INTO {TABLE} VALUES (1{N}{ID}, 1, 1 + {N}, {FREE}, true)",
            "UPDATE {TABLE} SET draft = false WHERE id = 1{N}{ID}",
        ],
    ),
    (
        "publish held",
        &["UPDATE {TABLE} SET draft = false WHERE id = 8{ID}"],
    ),
    (
        "withdraw held",
        &["UPDATE {TABLE} SET draft = true WHERE id = 1{ID}"],
    ),
    (
        "held to another",
        &["UPDATE {TABLE} SET body = 'unlike all, {ID} {N}' WHERE id = 1{ID}"],
    ),
    ("delete", &["DELETE FROM {TABLE} WHERE id = 1{ID}"]),
];

pub const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// How the transactions end: the first session's, then the second's.
const ENDS: [[&str; 2]; 4] = [
    ["COMMIT", "COMMIT"],
    ["COMMIT", "PREPARE"],
    ["ROLLBACK", "COMMIT"],
    ["PREPARE", "ROLLBACK"],
];

/// Counts the copies in the table, and the copies of the free document.
const COPIES: &str = "SELECT
    (SELECT count(*) FROM (SELECT FROM {TABLE} WHERE id % 1000000 = {ID} AND NOT draft
        GROUP BY tenant, body HAVING count(*) > 1) copies),
    (SELECT count(*) FROM {TABLE} WHERE body = {FREE} AND NOT draft)";

/// Tries all pairs of changes, each in all orders of its steps, at the isolation levels in turn.
pub fn every_order(server: &Server) -> Result<Outcome> {
    let cluster = prepared_cluster(server, "guard_orders")?;
    let database = Database::with_extension(&cluster, "guard_orders")?;
    let mut client = database.connect()?;
    make_tables(&mut client)?;
    let mut sessions = Sessions::open(|| database.connect(), 2)?;
    let mut total = Seen::default();
    let mut rng = Rng::with_seed(1);
    let start = Instant::now();
    for (place, first) in CHANGES.iter().enumerate() {
        for second in &CHANGES[place..] {
            for order in orders(first.1.len() + 1, second.1.len() + 1) {
                // The library is loaded by the first statement, whatever it is.
                if rng.bool() {
                    sessions = Sessions::open(|| database.connect(), 2)?;
                }
                let run = Run {
                    number: total.runs,
                    table: any_table(&mut rng),
                    level: LEVELS[rng.usize(..LEVELS.len())],
                    ends: ENDS[rng.usize(..ENDS.len())],
                    changes: [first.1, second.1],
                };
                let seen = run.play(&mut client, &mut sessions, &order);
                let label = || format!("{} and {}, {order:?}, {run:?}", first.0, second.0);
                total.add(&seen.with_context(label)?);
            }
        }
    }
    let Seen {
        runs,
        waits,
        rejections,
        notes,
        victims,
    } = total;
    ensure!(
        waits > 0 && rejections > 0 && notes > 0 && victims > 0,
        "{waits} waits, {rejections} rejections, {notes} notes, {victims} victims: nothing was tested"
    );
    figure!(
        "{runs} interleavings, no copy but {notes} that are noted: {waits} waits, {rejections} rejections, {victims} deadlocks and serialization failures, {:.1?}",
        start.elapsed()
    );
    Ok(Outcome::Passed)
}

fn free(run: u32) -> String {
    format!("document {run} free for all")
}

fn other(run: u32) -> String {
    format!("another of run {run} wanted by both")
}

/// Two transactions.
#[derive(Debug)]
struct Run {
    number: u32,
    table: String,
    level: &'static str,
    ends: [&'static str; 2],
    changes: [&'static [&'static str]; 2],
}

/// Counts of the events in all runs.
#[derive(Default)]
pub struct Seen {
    pub runs: u32,
    pub waits: u32,
    pub rejections: u32,
    pub notes: u32,
    pub victims: u32,
}

impl Run {
    /// Fills in a statement; rows have ids of their own in every run.
    fn fill(&self, statement: &str, session: usize) -> String {
        statement
            .replace("{TABLE}", &self.table)
            .replace("{HELD}", &format!("'document {} held by one'", self.number))
            .replace("{FREE}", &format!("'{}'", free(self.number)))
            .replace("{OTHER}", &format!("'{}'", other(self.number)))
            .replace("{COPIED_FREE}", &free(self.number))
            .replace("{COPIED_OTHER}", &other(self.number))
            .replace("{ID}", &format!("{:06}", self.number))
            .replace("{N}", &session.to_string())
    }

    /// Returns whether a transaction that is to be committed inserts the free document.
    fn brings_free(&self) -> bool {
        let is_brought = |session: usize| {
            let change = self.changes[session].concat();
            self.ends[session] != "ROLLBACK"
                && ["{FREE}", "_FREE}"]
                    .iter()
                    .any(|free| change.contains(free))
                && !change.contains("ROLLBACK")
        };
        is_brought(0) || is_brought(1)
    }

    /// Returns whether the two transactions are of the kind that never deadlocks.
    fn inserts_once(&self) -> bool {
        let inserts = |change: &&[&str]| match change {
            [only] => ["INSERT", "COPY"].iter().any(|word| only.starts_with(word)),
            _ => false,
        };
        self.changes.iter().all(inserts)
    }

    fn play(&self, client: &mut Client, sessions: &mut Sessions, order: &[usize]) -> Result<Seen> {
        client.batch_execute(&self.fill(ROWS, 0))?;
        let mut taken = [0, 0];
        let mut waits = 0;
        for &session in order {
            let statement = match self.changes[session].get(taken[session]) {
                Some(statement) => self.fill(statement, session),
                None if self.ends[session] == "PREPARE" => {
                    format!("PREPARE TRANSACTION 'p{session}'")
                }
                None => self.ends[session].to_string(),
            };
            if taken[session] == 0 {
                sessions.step(session, &format!("BEGIN ISOLATION LEVEL {}", self.level))?;
            }
            taken[session] += 1;
            waits += u32::from(sessions.step(session, &statement)? == Step::Waits);
            // A session that waits for a prepared transaction continues when that is committed.
            if self.ends[session] == "PREPARE" && taken[session] > self.changes[session].len() {
                sessions.step(session, &format!("COMMIT PREPARED 'p{session}'"))?;
            }
        }
        sessions.finish()?;
        let mut seen = Seen::of(waits, &sessions.take_failures())?;
        ensure!(
            seen.victims == 0 || !self.inserts_once(),
            "{} deadlocks and serialization failures",
            seen.victims
        );
        let row = client.query_one(&self.fill(COPIES, 0), &[])?;
        let (copies, free): (i64, i64) = (row.get(0), row.get(1));
        if is_noted(&self.table) {
            let condition = format!("{{ID}} % 1000000 = {}", self.number);
            seen.notes = ensure_noted(client, &self.table, &condition)?;
        } else {
            ensure!(copies == 0, "{copies} copies");
            ensure!(free <= 1, "{free} rows with the free document");
        }
        let is_lost = free == 0 && seen.victims == 0 && self.brings_free();
        ensure!(!is_lost, "nobody has brought the free document");
        Ok(seen)
    }
}

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        self.runs += other.runs;
        self.waits += other.waits;
        self.rejections += other.rejections;
        self.notes += other.notes;
        self.victims += other.victims;
    }

    pub fn of(waits: u32, failures: &[SqlState]) -> Result<Seen> {
        let mut seen = Seen {
            runs: 1,
            waits,
            ..Seen::default()
        };
        for code in failures {
            match *code {
                SqlState::EXCLUSION_VIOLATION => seen.rejections += 1,
                SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => {
                    seen.victims += 1;
                }
                // Errors of statements after a failure, and of a transaction that was not prepared because of it.
                SqlState::IN_FAILED_SQL_TRANSACTION | SqlState::UNDEFINED_OBJECT => {}
                _ => anyhow::bail!("{code:?}"),
            }
        }
        Ok(seen)
    }
}
