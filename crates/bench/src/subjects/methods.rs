//! Ways of finding pairs, each with its own similarity: ours, older ones from the literature, and the peers'.

use std::path::Path;

use anyhow::Result;
use testbed::progress::bar;

use super::pairs_peers::{PEERS, scored};
use crate::context::Bench;
use crate::measure::session::Session;
use crate::score::Scored;

/// The least similarity of proposed pairs.
const LEAST: f64 = 0.4;
/// SimHashes of 64 bits that differ in more bits are not considered.
const MOST_BITS: u32 = 8;

/// The pairs that a way found.
pub struct Found {
    pub name: String,
    /// Bytes kept for a document.
    pub bytes: usize,
    /// True if its curve is drawn: too many would hide each other.
    pub on_chart: bool,
    pub pairs: Vec<Scored>,
}

/// Our ways in SQL; FOLD stands for the fold of the text.
const QUERIES: &[(&str, usize, bool, &str)] = &[
    (
        "near_dup_pairs, verified",
        512,
        true,
        "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, minhash(body, fold => ''FOLD''), body FROM docs', 0.4)",
    ),
    (
        "near_dup_pairs, 128 slots of 32 bits",
        512,
        true,
        "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, minhash(body, fold => ''FOLD'') FROM docs', 0.4)",
    ),
    (
        "near_dup_pairs, 512 slots of 8 bits",
        512,
        false,
        "SELECT * FROM near_dup_pairs(NULL::bigint,
             'SELECT id, minhash_pack(minhash(body, fold => ''FOLD'', slots => 512), 8) FROM docs', 0.45)",
    ),
    (
        "near_dup_pairs, 128 slots of 8 bits",
        128,
        false,
        "SELECT * FROM near_dup_pairs(NULL::bigint,
             'SELECT id, minhash_pack(minhash(body, fold => ''FOLD''), 8) FROM docs', 0.4)",
    ),
    (
        "classic bands, 25 of 5 slots",
        200,
        true,
        "WITH bands AS MATERIALIZED (
             SELECT id, unnest(minhash_bands(minhash(body, fold => 'FOLD'), 25, 5)) AS band FROM docs)
         SELECT a.id, b.id, count(*)::float8 / 25 FROM bands a JOIN bands b USING (band) WHERE a.id < b.id GROUP BY 1, 2",
    ),
    (
        "supershingles, 14 of 84 minima",
        568,
        true,
        "WITH super AS MATERIALIZED (
             SELECT id, unnest(supershingles(bucket_sketch(shingle_hashes(body, fold => 'FOLD'), 84), 14)) AS s FROM docs)
         SELECT a.id, b.id, least(count(*)::float8 / 71, 1) FROM super a JOIN super b USING (s)
         WHERE a.id < b.id GROUP BY 1, 2",
    ),
    (
        "MinHash from 0.5, then SimHash of 384 bits",
        560,
        true,
        "WITH sims AS MATERIALIZED (SELECT id, simhash(body, bits => 384, fold => 'FOLD') AS s FROM docs)
         SELECT p.a, p.b, 1 - bit_hamming(x.s, y.s) / 384.0::float8
         FROM near_dup_pairs(NULL::bigint, 'SELECT id, minhash(body, fold => ''FOLD'') FROM docs', 0.5) p
         JOIN sims x ON x.id = p.a JOIN sims y ON y.id = p.b",
    ),
];

/// Lets every way find pairs among the documents of the server's table, which are also in the file.
pub fn find_all(
    bench: &Bench<'_>,
    session: &Session,
    fold: &str,
    file: &Path,
) -> Result<Vec<Found>> {
    let progress = bar((QUERIES.len() + PEERS.len() + 2) as u64, "quality")?;
    let mut all = Vec::new();
    for (name, bytes, on_chart, query) in QUERIES {
        progress.set_message(format!("quality: {name}"));
        let rows = session.client().query(&query.replace("FOLD", fold), &[])?;
        all.push(Found {
            name: name.to_string(),
            bytes: *bytes,
            on_chart: *on_chart,
            pairs: rows.iter().map(scored).collect(),
        });
        progress.inc(1);
    }
    for weighting in ["tf", "log"] {
        progress.set_message("quality: SimHash");
        all.push(simhash(session, fold, weighting)?);
        progress.inc(1);
    }
    for peer in PEERS {
        progress.set_message(format!("quality: {peer}"));
        match bench
            .peers
            .worker(peer)
            .and_then(|mut worker| worker.pairs(peer, file, LEAST))
        {
            Ok((_, pairs)) => all.push(Found {
                name: peer.to_string(),
                bytes: if peer == "ClickHouse" { 16 } else { 512 },
                on_chart: peer == "datasketch",
                pairs,
            }),
            Err(error) => progress.suspend(|| println!("Skipping {peer}: {error:#}")),
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(all)
}

/// Returns all pairs of SimHashes of 64 bits, compared one by one.
fn simhash(session: &Session, fold: &str, weighting: &str) -> Result<Found> {
    let query = format!(
        "SELECT id, s FROM (SELECT id, simhash(body, fold => '{fold}', weighting => '{weighting}')::bigint AS s FROM docs) d
         WHERE s IS NOT NULL ORDER BY id"
    );
    let rows = session.client().query(&query, &[])?;
    let hash = |row: &postgres::Row| (row.get::<_, i64>(0) as u32, row.get::<_, i64>(1));
    let hashes: Vec<(u32, i64)> = rows.iter().map(hash).collect();
    let mut pairs = Vec::new();
    for (place, (b, hash)) in hashes.iter().enumerate() {
        for (a, other) in &hashes[..place] {
            let bits = (hash ^ other).count_ones();
            if bits <= MOST_BITS {
                pairs.push((*a, *b, 1.0 - f64::from(bits) / 64.0));
            }
        }
    }
    Ok(Found {
        name: format!("SimHash, 64 bits, {weighting}"),
        bytes: 8,
        on_chart: weighting == "log",
        pairs,
    })
}
