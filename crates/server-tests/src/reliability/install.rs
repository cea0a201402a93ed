//! Installation into a database with hostile objects, and along with other extensions.

use anyhow::{Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

/// Objects that would be found instead of the right ones if the install script or a function trusted the search path.
const HOSTILE: &str = "
    CREATE TABLE trap (who text);
    CREATE FUNCTION spring(what text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO trap VALUES (current_user || ' ' || what); RETURN what; END $$;
    CREATE FUNCTION eqsel(text) RETURNS float8 LANGUAGE sql AS $$ SELECT spring('eqsel')::float8 $$;
    CREATE FUNCTION int4(text) RETURNS int LANGUAGE sql AS $$ SELECT length(spring('int4')) $$;
    CREATE FUNCTION hashtext(text) RETURNS int LANGUAGE sql AS $$ SELECT length(spring('hash')) $$;
    CREATE FUNCTION minhash(varchar) RETURNS text LANGUAGE sql AS $$ SELECT spring('minhash') $$;
    CREATE FUNCTION jaccard(anyarray, anyarray) RETURNS float8 LANGUAGE sql AS
        $$ SELECT length(spring('jaccard'))::float8 $$;
    CREATE FUNCTION caught(bytea, bytea) RETURNS bool LANGUAGE sql AS
        $$ SELECT spring('operator') IS NULL $$;
    CREATE OPERATOR = (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = caught);
    CREATE OPERATOR < (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = caught);
    CREATE DOMAIN int8 AS text";

const USE: &str = "
    CREATE TABLE docs (id int, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX ON docs (sig);
    CREATE INDEX ON docs USING neardup (sig);
    INSERT INTO docs SELECT i, 'some words of document ' || i % 10 FROM generate_series(1, 200) i;
    ANALYZE docs;
    SELECT count(DISTINCT sig) FROM docs";

/// Checks that a user who is not a superuser can install the trusted extension into a schema full of hostile objects,
/// and use it with a hostile search_path: none of the objects is called.
pub fn hostile_objects(server: &Server, _: Scale) -> Result<Outcome> {
    let database = Database::create(&server.main, "hostile", "")?;
    let role = format!("{}_owner", database.name);
    let mut client = database.connect()?;
    client.batch_execute(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role};
         GRANT CREATE ON DATABASE {} TO {role}; CREATE SCHEMA target AUTHORIZATION {role};
         SET search_path = target; {HOSTILE}; GRANT ALL ON trap TO PUBLIC;
         SET ROLE {role}; CREATE EXTENSION pg_neardup SCHEMA target;
         SET search_path = target, pg_catalog; {USE}",
        database.name
    ))?;
    let rows = client.query("SELECT who FROM target.trap", &[])?;
    let sprung: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    ensure!(sprung.is_empty(), "hostile objects were called: {sprung:?}");
    client.batch_execute(&format!(
        "RESET ROLE; DROP SCHEMA target CASCADE; DROP OWNED BY {role}; DROP ROLE {role}"
    ))?;
    Ok(Outcome::Passed)
}

/// Peers that may be present, each with a script of its own examples.
const PEERS: &[(&str, &str)] = &[
    (
        "pg_trgm",
        "SELECT similarity('word', 'two words'), word_similarity('word', 'two words'),
                show_trgm('word'), 'word' % 'words', 'word' <-> 'two words';
         CREATE TABLE t_trgm (t text); CREATE INDEX ON t_trgm USING gin (t gin_trgm_ops);
         INSERT INTO t_trgm VALUES ('some words'), ('other'); SELECT * FROM t_trgm WHERE t % 'some word'",
    ),
    (
        "btree_gin",
        "CREATE TABLE t_gin (a int, b bit(4)); CREATE INDEX ON t_gin USING gin (a, b);
         INSERT INTO t_gin VALUES (1, B'0101'); SET enable_seqscan = off;
         SELECT * FROM t_gin WHERE a < 10 AND b = B'0101'; RESET enable_seqscan",
    ),
    (
        "intarray",
        "SELECT ARRAY[1,2,3] && ARRAY[3,4], ARRAY[1,2] <@ ARRAY[1,2,3], ARRAY[1,2,3] @> ARRAY[2],
                idx(ARRAY[11,22,33], 22), ARRAY[1,2] | ARRAY[2,3]",
    ),
    (
        "cube",
        "SELECT cube(1, 2) <@ cube(0, 3), '(0,0),(1,1)'::cube @> '(0.5,0.5)'::cube",
    ),
    ("fuzzystrmatch", "SELECT levenshtein('GUMBO', 'GAMBOL'), soundex('hello'), metaphone('GUMBO', 4)"),
    (
        "vector",
        "SELECT '[1,2,3]'::vector <-> '[3,2,1]', B'101' <~> B'110', B'101' <%> B'110',
                '[1,2,3]'::vector <=> '[3,2,1]', hamming_distance(B'101', B'110'),
                jaccard_distance(B'101', B'110');
         CREATE TABLE t_vector (v vector(3), b bit(3));
         INSERT INTO t_vector VALUES ('[1,2,3]', B'101'), ('[4,5,6]', B'110');
         CREATE INDEX ON t_vector USING hnsw (v vector_l2_ops);
         CREATE INDEX ON t_vector USING hnsw (b bit_hamming_ops);
         SET enable_seqscan = off; SELECT * FROM t_vector ORDER BY b <~> B'001' LIMIT 1;
         SELECT * FROM t_vector ORDER BY v <-> '[4,4,4]' LIMIT 1; RESET enable_seqscan",
    ),
    ("pg_similarity", "SELECT jaccard('some words', 'other words'), hamming('101', '110'), hamming(B'101', B'110'),
                lev('euler', 'heuser'), qgram('a b', 'a c'), overlapcoefficient('a b', 'b c'),
                cosine('Euler Taveira de Oliveira', 'Euler T. de Oliveira'), 'abc' ~?? 'abd';
         CREATE TABLE t_similarity (t text); CREATE INDEX ON t_similarity USING gin (t gin_similarity_ops);
         INSERT INTO t_similarity VALUES ('some words'), ('other'); SET enable_seqscan = off;
         SELECT * FROM t_similarity WHERE t ~?? 'some words'"),
];

/// Checks that peers' own examples give the same answers as before, whichever extension is installed first.
pub fn beside_peers(server: &Server, _: Scale) -> Result<Outcome> {
    let mut tried = Vec::new();
    for (peer, examples) in PEERS {
        if !server.main.offers(peer)? {
            figure!("without {peer}, which is not installed");
            continue;
        }
        let answer = |first: &str| -> Result<String> {
            let database = Database::create(&server.main, "peers", "")?;
            database.psql(&format!("{first}; {examples};"))
        };
        let alone = answer(&format!("CREATE EXTENSION {peer}"))?;
        ensure!(!alone.contains("ERROR"), "{peer} alone: {alone}");
        for (one, two) in [(*peer, "pg_neardup"), ("pg_neardup", *peer)] {
            let both = answer(&format!("CREATE EXTENSION {one}; CREATE EXTENSION {two}"))?;
            ensure!(both == alone, "{one}, then {two}:\n{both}\nalone:\n{alone}");
        }
        tried.push(*peer);
    }
    figure!("beside {}", tried.join(", "));
    Ok(Outcome::Passed)
}
