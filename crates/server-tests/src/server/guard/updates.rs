//! An UPDATE may keep a near pair, but never create one.

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

/// The steps of sessions, with their expected results; and the rows whose body is 'new' or ends with 'q' in the end.
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
    // If both old copies change to another text, they make a new pair.
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
    // The snapshot of the second session shows the first copy in its old state.
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
    // If one of them is edited, the pair remains one, in any order.
    &[
        (1, "SELECT FROM docs", Done),
        (0, "UPDATE docs SET body = body || ' g' WHERE id = 1", Done),
        (0, "COMMIT", Done),
        (1, "UPDATE docs SET body = body || ' g' WHERE id = 2", Done),
        (1, "COMMIT", Done),
    ],
    // Both by one statement.
    &[(0, "UPDATE docs SET body = 'g h i j k l' WHERE id < 3", Done)],
    // One statement that makes a pair of two rows that were not one.
    &[(
        0,
        "UPDATE docs SET body = 'k l m n o p' WHERE id > 2",
        Rejected,
    )],
    // An UPDATE that changes nothing that the guard reads is not checked, whatever else there is.
    &[
        (0, "UPDATE docs SET tenant = 1, body = body || ''", Done),
        (0, "UPDATE docs SET id = -id", Done),
        (0, "UPDATE docs SET tenant = 2", Done),
        (0, "UPDATE docs SET tenant = 3 WHERE id = -1", Done),
        (0, "UPDATE docs SET tenant = 3 WHERE id = -2", Rejected),
    ],
];

/// Histories under a deferred guard, in which each row is compared with the final state of the others.
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

/// Runs the histories at two isolation levels.
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
                        "" => play.ensure_state(session, expected),
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
