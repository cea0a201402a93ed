//! An UPDATE may keep a near pair, never make one.

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;

use super::moments::{Play, rejected};
use crate::harness::Outcome;
use crate::sessions::Step;

/// Two old copies and two rows that are not near each other.
const DOCS: &str = "
    CREATE TABLE docs (id int PRIMARY KEY, tenant int DEFAULT 1, body text);
    INSERT INTO docs (id, body) VALUES (1, 'a b c d e f'), (2, 'a b c d e f'),
        (3, 'k l m n o p q r s t'), (4, 'k l m n o p x y z w');
    CREATE INDEX ON docs USING neardup (body)";
const GUARD: &str = "SELECT near_dup_protect('docs', 'body', 0.6, scope => '{tenant}')";
const DEFERRED: &str = "
    CREATE CONSTRAINT TRIGGER docs_guard AFTER INSERT OR UPDATE ON docs DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION near_dup_guard('body', '0.6', 'scope=tenant')";

const LEVELS: [&str; 2] = ["READ COMMITTED", "REPEATABLE READ"];

/// The steps of sessions, with what each must come to; and the rows that have the body 'new' or end with 'q' at last.
type Script = &'static [(usize, &'static str, Outcome_)];

#[derive(Clone, Copy)]
enum Outcome_ {
    Done,
    Waits,
    Rejected,
}
use Outcome_::{Done, Rejected, Waits};

/// Histories under a guard that is not deferred.
const AT_ONCE: &[Script] = &[
    // Two old copies that are both moved to another text make a new pair.
    &[
        (0, "UPDATE docs SET body = 'g h i j k l' WHERE id = 1", Done),
        (
            1,
            "UPDATE docs SET body = 'g h i j k l' WHERE id = 2",
            Waits,
        ),
        (0, "COMMIT", Done),
        (1, "", Rejected),
    ],
    // The snapshot of the second session shows the first copy as it was.
    &[
        (1, "SELECT FROM docs", Done),
        (0, "UPDATE docs SET body = 'g h i j k l' WHERE id = 1", Done),
        (0, "COMMIT", Done),
        (
            1,
            "UPDATE docs SET body = 'g h i j k l' WHERE id = 2",
            Rejected,
        ),
    ],
    // One of them is edited: the pair stays one, in whatever order.
    &[
        (1, "SELECT FROM docs", Done),
        (0, "UPDATE docs SET body = body || ' g' WHERE id = 1", Done),
        (0, "COMMIT", Done),
        (1, "UPDATE docs SET body = body || ' g' WHERE id = 2", Done),
        (1, "COMMIT", Done),
    ],
    // Both by one statement.
    &[(0, "UPDATE docs SET body = 'g h i j k l' WHERE id < 3", Done)],
    // One statement that makes a pair of rows that were none.
    &[(
        0,
        "UPDATE docs SET body = 'k l m n o p' WHERE id > 2",
        Rejected,
    )],
    // An UPDATE that changes nothing that the guard reads is not checked, beside whatever there is.
    &[
        (0, "UPDATE docs SET tenant = 1, body = body || ''", Done),
        (0, "UPDATE docs SET id = -id", Done),
        (0, "UPDATE docs SET tenant = 2", Done),
        (0, "UPDATE docs SET tenant = 3 WHERE id = -1", Done),
        (0, "UPDATE docs SET tenant = 3 WHERE id = -2", Rejected),
    ],
];

/// Histories under a deferred guard, in which each row is compared with the others as they are at the end.
const AT_THE_END: &[Script] = &[
    &[
        (
            0,
            "UPDATE docs SET body = 'k l m n o p q r' WHERE id = 3",
            Done,
        ),
        (
            0,
            "UPDATE docs SET body = 'k l m n o p q' WHERE id = 4",
            Done,
        ),
        (0, "COMMIT", Rejected),
    ],
    &[
        (0, "UPDATE docs SET body = body || ' g' WHERE id = 1", Done),
        (0, "UPDATE docs SET body = body || ' g' WHERE id = 2", Done),
        (0, "COMMIT", Done),
    ],
    &[
        (0, "UPDATE docs SET body = 'g h i j k l' WHERE id = 1", Done),
        (0, "UPDATE docs SET body = 'g h i j k l' WHERE id = 2", Done),
        (0, "COMMIT", Rejected),
    ],
];

/// Plays the histories at two isolation levels.
pub fn keep_pairs(server: &Server) -> Result<Outcome> {
    for (guard, scripts) in [(GUARD, AT_ONCE), (DEFERRED, AT_THE_END)] {
        for (number, script) in scripts.iter().enumerate() {
            for level in LEVELS {
                let database = Database::with_extension(&server.main, "guard_updates")?;
                let mut play = Play::new(&database, &format!("{DOCS}; {guard}"), 2)?;
                for session in 0..2 {
                    play.step(
                        session,
                        &format!("BEGIN ISOLATION LEVEL {level}"),
                        Step::Done,
                    )?;
                }
                for &(session, statement, outcome) in *script {
                    let expected = match outcome {
                        Done => Step::Done,
                        Waits => Step::Waits,
                        Rejected => rejected(),
                    };
                    match statement {
                        "" => play.stands(session, expected),
                        _ => play.step(session, statement, expected),
                    }
                    .with_context(|| format!("{level}, history {number}"))?;
                }
                let pairs =
                    "SELECT count(*) FROM docs a JOIN docs b ON a.id < b.id AND a.tenant = b.tenant
                    AND resemblance(a.body, b.body) >= 0.6";
                let pairs: i64 = database.connect()?.query_one(pairs, &[])?.get(0);
                ensure!(pairs <= 1, "{level}, history {number}: {pairs} pairs");
            }
        }
    }
    Ok(Outcome::Passed)
}
