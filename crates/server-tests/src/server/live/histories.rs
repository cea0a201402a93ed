//! Random histories of several sessions whose transactions overlap.

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};
use crate::live::{Compared, Kept, TYPES};

const TABLES: &str = "
    CREATE PROCEDURE enable_always(docs regclass) LANGUAGE plpgsql AS $$
    DECLARE noting name;
    BEGIN
        FOR noting IN SELECT tgname FROM pg_trigger WHERE tgrelid = docs AND NOT tgisinternal LOOP
            EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', docs, noting);
        END LOOP;
    END $$;
    CREATE TABLE plain (id int PRIMARY KEY, place int, body text{definition});
    CREATE INDEX ON plain USING neardup ({column} {class});
    SELECT near_dup_track('plain', '{column}', {threshold 0.8}{arguments}),
           near_dup_track('plain', '{column}', {threshold 0.5}, 'place DESC NULLS LAST', 'by_place'{arguments}),
           near_dup_track('plain', '{column}', {threshold 0.7}, 'body COLLATE \"C\" DESC', 'by body'{arguments}),
           near_dup_track('plain', '{column}', {threshold 0.6}, 'abs(id - 20) DESC', 'by number'{arguments});
    CREATE TABLE distinct_docs (a int, b int, why text, PRIMARY KEY (a, b));
    INSERT INTO distinct_docs VALUES (1, 2), (7, 6), (100, 101);
    SELECT near_dup_track('plain', '{column}', {threshold 0.7}, 'place', 'excepting', condition => 'place > 1',
        exceptions => 'distinct_docs'{arguments});
    CREATE TABLE parted (id int, place int, body text, tenant text{definition},
        code int GENERATED ALWAYS AS (id * 10 + place) STORED, PRIMARY KEY (id, place)) PARTITION BY RANGE (place);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (3);
    CREATE TABLE parted_2 (gone int, tenant text, place int NOT NULL, body text, id int NOT NULL{definition},
        code int GENERATED ALWAYS AS (id * 10 + place) STORED);
    ALTER TABLE parted_2 DROP gone;
    ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (3) TO (7);
    CREATE INDEX ON parted USING neardup (tenant scope_ops, {column} {class});
    CREATE INDEX ON parted (code);
    SELECT near_dup_track('parted', '{column}', {threshold 0.8}, 'place DESC', 'tenants', '{tenant}', 'code'{arguments}),
           near_dup_track('parted', '{column}', {threshold 0.85}, 'id', 'tenants by id', '{tenant}', 'code'{arguments})";

const KEPT: &[Kept] = &[
    Kept {
        table: "plain",
        key: "id",
        scope: None,
        clusters: "plain_clusters",
        threshold: 0.8,
        keep: "id",
        condition: "true",
        exceptions: None,
    },
    Kept {
        table: "plain",
        key: "id",
        scope: None,
        clusters: "by_place",
        threshold: 0.5,
        keep: "place DESC NULLS LAST, id",
        condition: "true",
        exceptions: None,
    },
    Kept {
        table: "plain",
        key: "id",
        scope: None,
        clusters: "\"by body\"",
        threshold: 0.7,
        keep: "body COLLATE \"C\" DESC, id",
        condition: "true",
        exceptions: None,
    },
    Kept {
        table: "plain",
        key: "id",
        scope: None,
        clusters: "\"by number\"",
        threshold: 0.6,
        keep: "abs(id - 20) DESC, id",
        condition: "true",
        exceptions: None,
    },
    Kept {
        table: "plain",
        key: "id",
        scope: None,
        clusters: "excepting",
        threshold: 0.7,
        keep: "place, id",
        condition: "place > 1",
        exceptions: Some("distinct_docs"),
    },
    Kept {
        table: "parted",
        key: "code",
        scope: Some("tenant"),
        clusters: "tenants",
        threshold: 0.8,
        keep: "place DESC, code",
        condition: "true",
        exceptions: None,
    },
    Kept {
        table: "parted",
        key: "code",
        scope: Some("tenant"),
        clusters: "\"tenants by id\"",
        threshold: 0.85,
        keep: "id, code",
        condition: "true",
        exceptions: None,
    },
];

/// Statements with a random row `{id}`, place, document, edits and tenant.
const STATEMENTS: &[&str] = &[
    "INSERT INTO plain VALUES ({id}, {place}, {text}) ON CONFLICT DO NOTHING",
    "INSERT INTO plain SELECT i, i % 5, make_text(i % 3, i % 9) FROM generate_series({id}, {id} + 5) i ON CONFLICT DO NOTHING",
    "INSERT INTO plain VALUES ({id}, NULL, {text}) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    "UPDATE plain SET body = {text} WHERE id = {id}",
    "UPDATE plain SET body = {text} WHERE id BETWEEN {id} AND {id} + 2",
    "UPDATE plain SET place = {place} WHERE id = {id}",
    "UPDATE plain SET id = id + 50 WHERE id = {id} AND NOT EXISTS (SELECT FROM plain p WHERE p.id = plain.id + 50)",
    "UPDATE plain SET body = (ARRAY['', NULL])[1 + {id} % 2] WHERE id = {id}",
    "DELETE FROM plain WHERE id = {id}",
    "DELETE FROM plain WHERE id >= 50",
    "INSERT INTO distinct_docs VALUES ({id}, {id} + 1 + {place}) ON CONFLICT DO NOTHING",
    "INSERT INTO distinct_docs SELECT i + {id}, i FROM generate_series({id}, {id} + {place}) i ON CONFLICT DO NOTHING",
    "DELETE FROM distinct_docs WHERE a BETWEEN {id} AND {id} + 3 OR b = {id}",
    "UPDATE distinct_docs SET b = b + 1 WHERE a = {id} AND NOT EXISTS (
         SELECT FROM distinct_docs d WHERE d.a = distinct_docs.a AND d.b = distinct_docs.b + 1)",
    "MERGE INTO plain USING (SELECT {id} AS id, {text} AS body) v ON v.id = plain.id
         WHEN MATCHED AND plain.place > 2 THEN DELETE
         WHEN MATCHED THEN UPDATE SET body = v.body, place = {place}
         WHEN NOT MATCHED THEN INSERT VALUES (v.id, {place}, v.body)",
    "INSERT INTO parted VALUES ({id}, abs({place}), {text}, {tenant}) ON CONFLICT DO NOTHING",
    "INSERT INTO parted SELECT i, i % 7, make_text(i % 3, i % 9), {tenant} FROM generate_series({id}, {id} + 5) i ON CONFLICT DO NOTHING",
    "UPDATE parted SET body = {text} WHERE id = {id}",
    "UPDATE parted p SET place = (place + 3) % 7 WHERE id = {id}
         AND NOT EXISTS (SELECT FROM parted o WHERE o.id = p.id AND o.place <> p.place)",
    "UPDATE parted SET tenant = {tenant} WHERE id BETWEEN {id} AND {id} + 3",
    "DELETE FROM parted WHERE id = {id}",
    "DELETE FROM parted_1 WHERE id > {id} + 20",
    "UPDATE parted_1 SET body = {text}, tenant = {tenant} WHERE id = {id}",
    // As many rows as are searched together.
    "INSERT INTO plain SELECT i, i % 5, make_text(i % 40, i % 9) FROM generate_series(200, 330) i ON CONFLICT DO NOTHING",
    "INSERT INTO parted SELECT i, i % 7, make_text(i % 40, i % 9), {tenant} FROM generate_series(200, 330) i ON CONFLICT DO NOTHING",
    "UPDATE parted SET body = make_text(id % 40, (id + {place}) % 9) WHERE id >= 200",
    // Half of the table follows one template.
    "INSERT INTO plain SELECT i, i % 5, make_text(0, i % 3) FROM generate_series(400, 460) i ON CONFLICT DO NOTHING",
    "UPDATE plain SET body = make_text(0, id % 3) WHERE id % 2 = 0",
    "UPDATE parted SET body = make_text(0, id % 3), tenant = 'a' WHERE id % 2 = 0",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
];

/// Transactions of several statements, some of them random (`{statement}`).
const TRANSACTIONS: &[&str] = &[
    "{statement}; SAVEPOINT s; SELECT near_dup_refresh('by_place'); ROLLBACK TO s",
    "{statement}; SAVEPOINT s; SELECT near_dup_refresh('by_place'); {statement}; RELEASE s",
    "SELECT near_dup_refresh('by_place'); SELECT near_dup_refresh('\"by body\"'); {statement}",
    "ALTER TABLE parted DETACH PARTITION parted_1; DELETE FROM parted_1 WHERE id % 2 = 0;
     ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES FROM (0) TO (3)",
    "TRUNCATE parted_1; SELECT near_dup_refresh('tenants');
     {statement}; SELECT near_dup_refresh('tenants'); TRUNCATE parted_1",
];

/// Statements that are rarely run, outside transactions.
const RARE: &[&str] = &[
    "TRUNCATE plain",
    "TRUNCATE parted",
    "TRUNCATE distinct_docs",
    "TRUNCATE parted_1",
    "ALTER TABLE parted DETACH PARTITION parted_1",
    "ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES FROM (0) TO (3)",
    "ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES FROM (0) TO (3)",
    "DROP TABLE parted_2; CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (3) TO (7)",
    "VACUUM FULL parted_2",
    "VACUUM FULL plain",
    "VACUUM plain, plain_clusters_canonical",
    "ALTER TABLE plain DISABLE TRIGGER USER; UPDATE plain SET body = make_text(2, id % 9) WHERE id % 5 = 0;
     DELETE FROM plain WHERE id % 7 = 0; CALL enable_always('plain')",
    "ALTER TABLE parted DISABLE TRIGGER ALL; UPDATE parted SET body = make_text(1, id % 9) WHERE id % 5 = 0;
     CALL enable_always('parted')",
];

const SESSIONS: usize = 3;
const STEPS: usize = 1500;

/// Checks that the clusters equal those computed from scratch after every refresh, and those that the log describes,
/// for a column of any type that trackers compare.
pub fn random(server: &Server) -> Result<Outcome> {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    let compared = rng.choice(TYPES).context("there are some")?;
    let history = run(server, compared, rng);
    history.with_context(|| format!("column {}, seed {seed}", compared.column))
}

fn run(server: &Server, compared: &Compared, rng: Rng) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "live_histories")?;
    let mut client = database.connect()?;
    client.batch_execute(&compared.texts())?;
    client.batch_execute(&compared.fill(TABLES))?;
    let mut history = History {
        rng,
        sessions: (0..SESSIONS)
            .map(|_| Session::open(&database))
            .collect::<Result<_>>()?,
        replays: KEPT.iter().map(|_| Replay::default()).collect(),
        observer: client,
        refreshes: 0,
    };
    for step in 0..STEPS {
        history.step().with_context(|| format!("step {step}"))?;
    }
    ensure!(history.refreshes > 50, "hardly anything was refreshed");
    figure!(
        "{STEPS} steps, {} refreshes of column {}, 0 differences",
        history.refreshes,
        compared.column
    );
    Ok(Outcome::Passed)
}

struct History {
    rng: Rng,
    sessions: Vec<Session>,
    replays: Vec<Replay>,
    observer: Client,
    refreshes: usize,
}

impl History {
    fn step(&mut self) -> Result<()> {
        let number = self.rng.usize(..SESSIONS);
        match self.rng.u32(0..100) {
            0..8 => self.refresh(),
            8 => self.copy(),
            9 => self.transaction(number),
            10 => {
                let statement = *self.rng.choice(RARE).context("there are some")?;
                self.end_all()?;
                self.sessions[number].run(statement)
            }
            11 => {
                let statement = self.statement();
                let session = &mut self.sessions[number];
                session.end("COMMIT")?;
                session.run("SET session_replication_role = replica")?;
                session.run(&statement)?;
                session.run("RESET session_replication_role")
            }
            12..20 => self.sessions[number].end("COMMIT"),
            20..23 => self.sessions[number].end("ROLLBACK"),
            23..30 => self.sessions[number].begin(),
            _ => {
                let statement = self.statement();
                self.sessions[number].run(&statement)
            }
        }
    }

    fn statement(&mut self) -> String {
        let statement = *self.rng.choice(STATEMENTS).unwrap_or(&STATEMENTS[0]);
        let text = format!("make_text({}, {})", self.rng.u32(0..3), self.rng.u32(0..10));
        let tenants = ["'a'", "'b'", "NULL"];
        statement
            .replace("{id}", &self.rng.u32(0..40).to_string())
            .replace("{place}", &self.rng.u32(0..7).to_string())
            .replace("{text}", &text)
            .replace("{tenant}", tenants[self.rng.usize(..3)])
    }

    /// Loads rows by COPY.
    fn copy(&mut self) -> Result<()> {
        let first = 1000 + self.refreshes * 10;
        self.sessions[0].end("COMMIT")?;
        let client = &mut self.sessions[0].client;
        let mut writer = client.copy_in("COPY plain (id, place, body) FROM STDIN")?;
        for id in first..first + 3 {
            writeln!(writer, "{id}\t1\tw1x1 w1x2 w1x3 copied {}", id % 2)?;
        }
        let copied = writer.finish();
        tolerate("COPY", copied.map(|_| ()))?;
        Ok(())
    }

    /// Runs a transaction while no other transaction is open.
    fn transaction(&mut self, number: usize) -> Result<()> {
        let transaction = *self.rng.choice(TRANSACTIONS).context("there are some")?;
        let mut statements = transaction.to_string();
        while statements.contains("{statement}") {
            statements = statements.replacen("{statement}", &self.statement(), 1);
        }
        self.end_all()?;
        let session = &mut self.sessions[number];
        session.begin()?;
        session.run(&statements)?;
        session.end("COMMIT")
    }

    fn end_all(&mut self) -> Result<()> {
        let mut sessions = self.sessions.iter_mut();
        sessions.try_for_each(|session| session.end("COMMIT"))
    }

    fn refresh(&mut self) -> Result<()> {
        let rebuild = self.rng.u32(0..20) == 0;
        for (kept, replay) in KEPT.iter().zip(&mut self.replays) {
            kept.ensure_law(&mut self.observer, rebuild)?;
            replay.play(&mut self.observer, kept.clusters)?;
        }
        self.refreshes += 1;
        Ok(())
    }
}

struct Session {
    client: Client,
    is_open: bool,
}

impl Session {
    fn open(database: &Database<'_>) -> Result<Session> {
        let mut client = database.connect()?;
        // Sessions take turns: a session that waits for another one would wait forever.
        client.batch_execute("SET lock_timeout = '20ms'; SET client_min_messages = error")?;
        Ok(Session {
            client,
            is_open: false,
        })
    }

    fn begin(&mut self) -> Result<()> {
        if !self.is_open {
            self.client.batch_execute("BEGIN")?;
            self.is_open = true;
        }
        Ok(())
    }

    fn end(&mut self, how: &str) -> Result<()> {
        if std::mem::take(&mut self.is_open) {
            self.tolerate(how)?;
        }
        Ok(())
    }

    fn run(&mut self, statement: &str) -> Result<()> {
        if !self.tolerate(statement)? && self.is_open {
            self.end("ROLLBACK")?;
        }
        Ok(())
    }

    fn tolerate(&mut self, statement: &str) -> Result<bool> {
        tolerate(statement, self.client.batch_execute(statement))
    }
}

/// Returns whether a statement succeeded. Fails for errors that a history must not have.
fn tolerate(statement: &str, result: std::result::Result<(), postgres::Error>) -> Result<bool> {
    let Err(error) = result else {
        return Ok(true);
    };
    const TOLERATED: &[SqlState] = &[
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::UNIQUE_VIOLATION,
        SqlState::S_E_INVALID_SPECIFICATION,
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        SqlState::ACTIVE_SQL_TRANSACTION,
        SqlState::T_R_DEADLOCK_DETECTED,
        // Errors of a partition that is detached, or is not.
        SqlState::CHECK_VIOLATION,
        SqlState::UNDEFINED_TABLE,
        SqlState::WRONG_OBJECT_TYPE,
        SqlState::OBJECT_IN_USE,
    ];
    ensure!(
        error.code().is_some_and(|code| TOLERATED.contains(code)),
        "{statement}: {error:?}"
    );
    Ok(false)
}

/// The clusters according to the log.
#[derive(Default)]
struct Replay {
    last: i64,
    cluster_of: HashMap<String, i64>,
    canonical_of: HashMap<i64, String>,
}

impl Replay {
    /// Replays the new entries of the log, and compares the clusters.
    fn play(&mut self, client: &mut Client, clusters: &str) -> Result<()> {
        let log = format!("\"{}_log\"", clusters.trim_matches('"'));
        let events = format!(
            "SELECT number, event, from_cluster, to_cluster, key::text, replaced::text, similarity IS NOT NULL
             FROM {log} WHERE number > $1 ORDER BY number"
        );
        for row in client.query(&events, &[&self.last])? {
            self.last = row.get(0);
            let (event, key): (String, String) = (row.get(1), row.get(4));
            let (from, to): (Option<i64>, Option<i64>) = (row.get(2), row.get(3));
            let (replaced, has_similarity): (Option<String>, bool) = (row.get(5), row.get(6));
            ensure!(
                has_similarity == (event == "joined")
                    && replaced.is_some() == (event == "new canonical"),
                "{event} of {key} has the evidence of another event"
            );
            self.take(&event, from, to.unwrap_or(0), (key, replaced))?;
        }
        let rows = client.query(
            &format!("SELECT key::text, cluster, canonical::text FROM {clusters}"),
            &[],
        )?;
        ensure!(
            rows.len() == self.cluster_of.len(),
            "{log} tells of other rows"
        );
        for row in rows {
            let (key, cluster, canonical): (String, i64, String) =
                (row.get(0), row.get(1), row.get(2));
            ensure!(
                self.cluster_of.get(&key) == Some(&cluster)
                    && self.canonical_of.get(&cluster) == Some(&canonical),
                "{log} does not tell that {key} is in {cluster} with {canonical}"
            );
        }
        Ok(())
    }

    fn take(
        &mut self,
        event: &str,
        from: Option<i64>,
        to: i64,
        (key, replaced): (String, Option<String>),
    ) -> Result<()> {
        match event {
            "created" | "split" => {
                let before = self.canonical_of.insert(to, key.clone());
                ensure!(before.is_none(), "number {to} was used twice");
                self.cluster_of.insert(key, to);
            }
            "new canonical" => {
                let before = self.canonical_of.insert(to, key);
                ensure!(before == replaced, "{to} had {before:?}, not {replaced:?}");
            }
            "joined" => {
                let before = self.cluster_of.insert(key.clone(), to);
                ensure!(
                    before == from,
                    "{key} joined {to} from {before:?}, not {from:?}"
                );
            }
            "left" => {
                let before = self.cluster_of.remove(&key);
                ensure!(before == from, "{key} left {before:?}, not {from:?}");
            }
            _ => {}
        }
        Ok(())
    }
}
