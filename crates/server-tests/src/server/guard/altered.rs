//! Guards whose tables, keys, triggers and indexes were altered, renamed, dropped or forged by their owner or a
//! stranger.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};

const RUNS: u32 = 60;

/// Number of changes of one history.
const CHANGES: usize = 10;

/// The guards of an owner, and a guard of another owner that must not be affected.
const TABLES: &str = "
    CREATE ROLE guard_owner;
    CREATE ROLE guard_stranger;
    GRANT CREATE ON SCHEMA public TO guard_owner, guard_stranger;
    CREATE TABLE bystander (id int PRIMARY KEY, body text);
    CREATE INDEX ON bystander USING neardup (body);
    SELECT near_dup_protect('bystander', 'body', 0.8, action => 'note');
    SET ROLE guard_stranger;
    CREATE TABLE forged (id int PRIMARY KEY, other int, body text);
    CREATE INDEX ON forged USING neardup (body);
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    SET ROLE guard_owner;
    CREATE TABLE docs (id int PRIMARY KEY, other int NOT NULL DEFAULT 0, tenant int, body text);
    CREATE INDEX docs_body ON docs USING neardup (body);
    SELECT near_dup_protect('docs', 'body', 0.8, scope => '{tenant}', action => 'note');
    SELECT near_dup_protect('docs', 'body', 0.8, scope => '{tenant}', trigger_name => 'rejecting');
    CREATE TABLE parted (id int, part int, body text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
    CREATE INDEX ON parted USING neardup (body);
    SELECT near_dup_protect('parted', 'body', 0.8, action => 'note', key => 'id');
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    INSERT INTO docs SELECT n, n, 1, 'document ' || n || ' of its own' FROM generate_series(1, 20) n;
    RESET ROLE";

/// Changes that the owner of the table makes.
const BY_OWNER: &[&str] = &[
    "ALTER TABLE docs_near_dups ALTER key TYPE text USING 'a'",
    "ALTER TABLE docs_near_dups ALTER key TYPE bigint",
    "ALTER TABLE docs_near_dups ALTER near_key TYPE text",
    "ALTER TABLE docs_near_dups ALTER similarity TYPE text",
    "ALTER TABLE docs_near_dups RENAME key TO near",
    "ALTER TABLE docs_near_dups DROP noted_at",
    "ALTER TABLE docs_near_dups DROP similarity, ADD similarity float8 NOT NULL DEFAULT 0",
    "ALTER TABLE docs_near_dups ADD more text",
    "ALTER TABLE docs_near_dups DROP CONSTRAINT docs_near_dups_pkey",
    "ALTER TABLE docs_near_dups RENAME TO notes",
    "ALTER TABLE docs_near_dups SET UNLOGGED",
    "ALTER TABLE docs_near_dups FORCE ROW LEVEL SECURITY",
    "CREATE RULE r AS ON INSERT TO docs_near_dups DO INSTEAD NOTHING",
    "CREATE TRIGGER t BEFORE INSERT ON docs_near_dups FOR EACH ROW EXECUTE FUNCTION nothing()",
    "DROP INDEX docs_near_dups_near_key_idx",
    "DROP TABLE docs_near_dups CASCADE",
    "COMMENT ON TABLE docs_near_dups IS 'anything'",
    "ALTER TABLE parted_near_dups ALTER key TYPE bigint, ALTER near_key TYPE bigint",
    "ALTER TABLE parted_near_dups DROP near_key CASCADE",
    "ALTER TABLE docs DROP CONSTRAINT docs_pkey",
    "ALTER TABLE docs ADD PRIMARY KEY (other)",
    "ALTER TABLE docs ALTER id DROP NOT NULL",
    "ALTER TABLE docs RENAME id TO number",
    "ALTER TABLE docs RENAME other TO id",
    "ALTER TABLE docs RENAME body TO content",
    "ALTER TABLE docs RENAME tenant TO customer",
    "ALTER TABLE docs ALTER other TYPE text",
    "ALTER TABLE docs DROP other CASCADE",
    "ALTER TABLE docs DROP tenant CASCADE",
    "ALTER TABLE docs ALTER body TYPE varchar",
    "ALTER TABLE docs RENAME TO papers",
    "ALTER TABLE docs SET UNLOGGED",
    "DROP INDEX docs_body",
    "CREATE INDEX ON docs USING neardup (tenant scope_ops, body)",
    "ALTER TRIGGER docs_guard ON docs RENAME TO first",
    "ALTER TRIGGER docs_guard_delete ON docs RENAME TO docs_guard",
    "ALTER TABLE docs DISABLE TRIGGER docs_guard",
    "DROP TRIGGER docs_guard ON docs",
    "DROP TRIGGER docs_guard_truncate ON docs",
    "DROP TRIGGER rejecting_before ON docs",
    "CREATE TRIGGER more AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=3')",
    "CREATE TRIGGER many AFTER UPDATE ON docs FOR EACH ROW WHEN (ROW('docs'::regclass) IS NOT NULL)
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=3')",
    "CREATE TRIGGER last AFTER DELETE ON docs FOR EACH ROW WHEN (ROW('parted_near_dups'::regclass) IS NOT NULL)
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=body', 'most=3')",
    "CREATE TRIGGER odd AFTER INSERT ON docs FOR EACH ROW WHEN (ROW(1::oid, NEW.id) IS NOT NULL AND (ROW(NEW.tenant) IS NULL OR true))
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=3')",
    "ALTER TABLE parted DETACH PARTITION parted_1",
    "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2)",
    "ALTER TABLE parted DROP CONSTRAINT parted_pkey",
    "SELECT near_dup_protect('docs', 'body', 0.8, action => 'note', trigger_name => 'again', notes => 'again')",
    "SELECT near_dup_unprotect('docs', 'docs_guard')",
    "GRANT guard_owner TO guard_stranger; ALTER TABLE docs OWNER TO guard_stranger; REVOKE guard_owner FROM guard_stranger",
    "TRUNCATE docs_near_dups",
];

/// Changes by a stranger, who can read all names.
const BY_STRANGER: &[&str] = &[
    "CREATE TRIGGER forging AFTER INSERT OR UPDATE ON forged FOR EACH ROW
         WHEN (ROW('{VICTIM}_near_dups'::regclass) IS NOT NULL AND (ROW(NEW.body, NEW.id) IS NULL OR true))
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=10')",
    "CREATE TRIGGER forging_too AFTER DELETE ON forged FOR EACH ROW
         WHEN (ROW('{VICTIM}_near_dups'::regclass) IS NOT NULL AND (ROW(OLD.body, OLD.id) IS NULL OR true))
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=10')",
    "CREATE TRIGGER emptying AFTER TRUNCATE ON forged
         WHEN (ROW('{VICTIM}_near_dups'::regclass) IS NOT NULL) EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=id', 'most=10')",
    "CREATE TRIGGER announcing BEFORE INSERT ON forged FOR EACH ROW EXECUTE FUNCTION near_dup_guard()",
    "CREATE TRIGGER other AFTER UPDATE ON forged FOR EACH ROW
         WHEN (ROW('{VICTIM}_near_dups'::regclass) IS NOT NULL AND (ROW(NEW.body, NEW.other) IS NULL OR true))
         EXECUTE FUNCTION near_dup_guard('body', '0.8', 'key=other', 'most=1')",
    "SELECT near_dup_unprotect('{VICTIM}')",
    "ALTER TABLE forged RENAME id TO number",
    "ALTER TABLE forged ALTER other TYPE mood USING 'sad'",
    "SELECT near_dup_protect('forged', 'body', 0.8, action => 'note', notes => '{VICTIM}_near_dups')",
    "SELECT near_dup_protect('forged', 'body', 0.8, action => 'note')",
    "SELECT near_dup_unprotect('forged')",
    "DROP TRIGGER forging ON forged",
];

/// Writes after each change, some of which fail.
const WRITES: &[(&str, &str)] = &[
    (
        "guard_owner",
        "INSERT INTO docs VALUES ({N}, {N}, 1, 'document 3 of its own')",
    ),
    (
        "guard_owner",
        "UPDATE docs SET body = 'document {N} of others' WHERE other % 3 = 1",
    ),
    ("guard_owner", "DELETE FROM docs WHERE other % 5 = 2"),
    (
        "guard_owner",
        "INSERT INTO parted VALUES ({N}, 1, 'one text'), ({N} + 1, 1, 'one text')",
    ),
    ("guard_owner", "DELETE FROM parted WHERE id < {N}"),
    (
        "guard_stranger",
        "INSERT INTO forged SELECT n, n, 'one text' FROM generate_series({N}, {N} + 2) n",
    ),
    ("guard_stranger", "UPDATE forged SET body = 'another text'"),
    ("guard_stranger", "DELETE FROM forged"),
    ("guard_stranger", "TRUNCATE forged"),
];

/// Checks that after any mixture of changes the server is running, each failure has a clear error, and the guard of the
/// other owner works as before.
pub fn altered(server: &Server) -> Result<Outcome> {
    let mut rng = Rng::with_seed(55);
    let [mut done, mut failed] = [0, 0];
    for run in 0..RUNS {
        let database = Database::with_extension(&server.main, "guard_altered")?;
        let mut client = database.connect()?;
        client.batch_execute(
            "SET client_min_messages = warning; DROP ROLE IF EXISTS guard_owner, guard_stranger",
        )?;
        client.batch_execute(TABLES)?;
        let mut history = Vec::new();
        let played = play(
            &mut client,
            &mut rng,
            &mut history,
            [&mut done, &mut failed],
        );
        played.with_context(|| format!("history {run}: {history:#?}"))?;
        client.batch_execute("RESET ROLE; DROP OWNED BY guard_owner, guard_stranger CASCADE")?;
    }
    database_roles_go(server)?;
    ensure!(
        done > 100 && failed > 50,
        "{done} writes and {failed} errors"
    );
    figure!("{RUNS} histories of {CHANGES} changes: {done} writes done, {failed} clear errors");
    Ok(Outcome::Passed)
}

fn database_roles_go(server: &Server) -> Result<()> {
    let mut client = server.main.connect("postgres")?;
    client.batch_execute("DROP ROLE guard_owner, guard_stranger")?;
    Ok(())
}

fn play(
    client: &mut Client,
    rng: &mut Rng,
    history: &mut Vec<String>,
    [done, failed]: [&mut u32; 2],
) -> Result<()> {
    for number in 0..CHANGES {
        let victim = ["docs", "bystander"][rng.usize(..2)];
        let (role, changes) = match rng.u32(..3) {
            0 => ("guard_stranger", BY_STRANGER),
            _ => ("guard_owner", BY_OWNER),
        };
        let change = changes[rng.usize(..changes.len())].replace("{VICTIM}", victim);
        let n = 1000 + 10 * number;
        let writes = WRITES
            .iter()
            .map(|(role, write)| (*role, write.replace("{N}", &n.to_string())));
        for (role, statement) in [(role, change)].into_iter().chain(writes) {
            history.push(statement.clone());
            client.batch_execute(&format!("SET ROLE {role}"))?;
            match client.batch_execute(&statement) {
                Ok(()) => *done += 1,
                Err(error) => {
                    let refused = error.as_db_error().context("the server is gone")?;
                    ensure!(
                        *refused.code() != SqlState::INTERNAL_ERROR,
                        "{statement}: {error:?}"
                    );
                    *failed += 1;
                }
            }
        }
        client.batch_execute(&format!(
            "RESET ROLE; INSERT INTO bystander VALUES (2 * {n}, 'the text {n}'), (2 * {n} + 1, 'the text {n}');
             UPDATE bystander SET body = body || '!' WHERE id = 2 * {n}"
        ))?;
        let notes =
            "SELECT count(*), count(*) FILTER (WHERE key / 2 = near_key / 2 AND key < near_key)
            FROM bystander_near_dups";
        let row = client.query_one(notes, &[])?;
        let [notes, right] = [0, 1].map(|column| row.get::<_, i64>(column));
        let expected = number as i64 + 1;
        ensure!(
            notes == expected && right == expected,
            "{notes} notes, {right} of them right"
        );
    }
    Ok(())
}
