//! Guards after dump and restore, their removal, and strangers who copy their triggers.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const STORIES: &str = "
    CREATE TABLE stories (id int PRIMARY KEY, body text);
    CREATE INDEX ON stories USING neardup (body);
    INSERT INTO stories SELECT -n, 'story ' || n % 40 || ' as it was before' FROM generate_series(1, 80) n;
    SELECT near_dup_protect('stories', 'body', 0.8, action => 'note', most => 2);
    INSERT INTO stories SELECT 1000 - n, 'story ' || n % 40 || ' as it was before' FROM generate_series(1, 400) n;
    UPDATE stories SET body = body || '' WHERE id % 7 = 0;
    DELETE FROM stories WHERE id % 9 = 0;
    CREATE TABLE docs (id int PRIMARY KEY, body text);
    CREATE INDEX ON docs USING neardup (body);
    INSERT INTO docs VALUES (1, 'two old copies'), (2, 'two old copies');
    SELECT near_dup_protect('docs', 'body', 0.8);
    ALTER TABLE docs RENAME body TO content;
    ALTER TABLE stories RENAME id TO number";

/// All objects of a guard in the database.
const STATE: &str = "SELECT concat(
    (SELECT string_agg(concat(number, ' ', md5(body)), ',' ORDER BY number) FROM stories),
    (SELECT string_agg(concat(key, ' ', near_key, ' ', similarity, ' ', noted_at), ',' ORDER BY key, near_key) FROM stories_near_dups),
    (SELECT string_agg(concat(id, ' ', md5(content)), ',' ORDER BY id) FROM docs),
    (SELECT string_agg(pg_get_triggerdef(oid), ';' ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal))";

fn state(client: &mut Client) -> Result<String> {
    Ok(client.query_one(STATE, &[])?.get(0))
}

/// Checks that a complete dump, and a dump of the schema followed by one of the data without triggers, restore
/// everything; that the guard still works; and that it is removed completely.
pub fn restored(server: &Server) -> Result<Outcome> {
    let source = Database::with_extension(&server.main, "guard_dumped")?;
    let mut client = source.connect()?;
    client.batch_execute(STORIES)?;
    let before = state(&mut client)?;
    let dumps: [&[&[&str]]; 2] = [
        &[&[]],
        &[&["--schema-only"], &["--data-only", "--disable-triggers"]],
    ];
    for parts in dumps {
        let target = Database::create(&server.main, "guard_restored", "")?;
        for arguments in parts {
            let dump = server.main.installation.program("pg_dump");
            let mut command: Command = source.cluster.client_program(&dump);
            let script = command
                .args(*arguments)
                .arg(&source.name)
                .stderr(Stdio::inherit())
                .output()?;
            let output = target.psql(&String::from_utf8(script.stdout)?)?;
            ensure!(!output.contains("ERROR"), "{parts:?}: {output}");
        }
        let mut client = target.connect()?;
        let after = state(&mut client)?;
        ensure!(after == before, "{parts:?}: {before} became {after}");
        goes_as_a_whole(&mut client)?;
    }
    goes_as_a_whole(&mut client)?;
    Ok(Outcome::Passed)
}

fn goes_as_a_whole(client: &mut Client) -> Result<()> {
    let copy = client.batch_execute("INSERT INTO docs VALUES (3, 'two old copies')");
    let code = copy.err().and_then(|error| error.code().cloned());
    ensure!(code == Some(SqlState::EXCLUSION_VIOLATION), "{code:?}");
    client.batch_execute(
        "INSERT INTO stories VALUES (5000, 'story 1 as it was before'); DELETE FROM stories WHERE number = 5000;
         UPDATE docs SET content = content || ' to be edited'",
    )?;
    // Without the main triggers, the others have no effect.
    client.batch_execute(
        "BEGIN; DROP TRIGGER docs_guard ON docs; DROP TRIGGER stories_guard ON stories;
         DROP INDEX stories_body_idx, docs_body_idx;
         INSERT INTO docs VALUES (4, 'a copy'), (5, 'a copy'); DELETE FROM stories WHERE number = 1; TRUNCATE stories;
         ROLLBACK;
         SELECT near_dup_unprotect('docs', 'docs_guard'), near_dup_unprotect('stories');
         DROP INDEX stories_body_idx, docs_body_idx;
         INSERT INTO docs VALUES (4, 'a copy'), (5, 'a copy'); DELETE FROM stories WHERE number = 1; TRUNCATE stories;
         DROP EXTENSION pg_neardup",
    )?;
    let notes: i64 = client
        .query_one("SELECT count(*) FROM stories_near_dups", &[])?
        .get(0);
    ensure!(notes > 100, "{notes} notes are left");
    Ok(())
}

/// Checks that a stranger who copies the triggers of another owner's guard onto a table of his own affects neither the
/// guard nor its notes.
pub fn strangers(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_strangers")?;
    let mut owner = database.connect()?;
    owner.batch_execute(STORIES)?;
    let notes: i64 = owner
        .query_one("SELECT count(*) FROM stories_near_dups", &[])?
        .get(0);
    owner.batch_execute(
        "CREATE ROLE guard_stranger; GRANT CREATE ON SCHEMA public TO guard_stranger;
         SET ROLE guard_stranger;
         CREATE TABLE forged (number int PRIMARY KEY, body text);
         CREATE INDEX ON forged USING neardup (body);
         DO $$ DECLARE definition text; BEGIN
             FOR definition IN SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'stories'::regclass LOOP
                 EXECUTE replace(definition, 'ON public.stories', 'ON forged');
             END LOOP;
         END $$;
         RESET ROLE",
    )?;
    let before = state(&mut owner)?;
    let mut stranger = database.connect()?;
    stranger.batch_execute("SET ROLE guard_stranger; INSERT INTO forged VALUES (0, NULL)")?;
    for statement in [
        "INSERT INTO forged SELECT 200, 'a b c d' UNION ALL SELECT 201, 'a b c d'",
        "DELETE FROM forged",
        "UPDATE forged SET number = 700",
        "TRUNCATE forged",
    ] {
        let failed = stranger.batch_execute(statement).err();
        let code = failed.as_ref().and_then(|error| error.code());
        ensure!(
            code == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
            "{statement}: {failed:?}"
        );
    }
    owner.batch_execute(
        "INSERT INTO stories VALUES (6000, 'story 3 as it was before'); DELETE FROM stories WHERE number = 6000",
    )?;
    let left: i64 = owner
        .query_one("SELECT count(*) FROM stories_near_dups", &[])?
        .get(0);
    ensure!(left == notes && notes > 100, "{notes} notes became {left}");
    let forged = "DROP TABLE forged; REVOKE CREATE ON SCHEMA public FROM guard_stranger; DROP ROLE guard_stranger";
    owner.batch_execute(forged)?;
    let after = state(&mut owner)?;
    let count = |state: &str| state.matches("CREATE TRIGGER").count();
    ensure!(count(&after) == 6 && count(&before) == 10, "{after}");
    owner.batch_execute(
        "SELECT near_dup_unprotect('stories'); DROP TABLE stories, stories_near_dups",
    )?;
    Ok(Outcome::Passed)
}
