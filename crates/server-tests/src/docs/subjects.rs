//! The subjects of the reference, and the objects of the extension that belong to each.

/// One object, or all objects of one name.
#[derive(Debug, PartialEq)]
pub enum Entry {
    Function(&'static str),
    Operator(&'static str),
    Type(&'static str),
    OperatorClass(&'static str),
    AccessMethod(&'static str),
    Casts,
    View(&'static str),
    Setting(&'static str),
}

use Entry::{
    AccessMethod, Casts, Function as F, Operator as Op, OperatorClass, Setting, Type, View,
};

impl Entry {
    /// Returns the heading.
    pub fn title(&self) -> &'static str {
        match self {
            F(name) | Op(name) | Type(name) | OperatorClass(name) | AccessMethod(name)
            | View(name) | Setting(name) => name,
            Casts => "CAST",
        }
    }
}

/// A chapter of the reference, and the page that explains it.
pub struct Subject {
    pub title: &'static str,
    pub page: &'static str,
    pub entries: &'static [Entry],
}

/// All subjects. A function in none of them must be a support function.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        title: "Text and shingles",
        page: "text.md",
        entries: &[
            F("shingles"),
            F("shingle_hashes"),
            F("resemblance"),
            F("jaccard"),
            F("shingle_sample"),
            F("bucket_sketch"),
            F("supershingles"),
            F("winnow"),
            F("common_shingles"),
        ],
    },
    Subject {
        title: "Containment",
        page: "containment.md",
        entries: &[
            F("containment"),
            F("near_contained"),
            OperatorClass("set_ops"),
            Op("%>"),
            Op("<%"),
            Op("<%>"),
        ],
    },
    Subject {
        title: "MinHash signatures",
        page: "minhash.md",
        entries: &[
            Type("minhash_signature"),
            F("minhash"),
            F("minhash_agg"),
            F("minhash_union"),
            Op("||"),
            F("minhash_sim"),
            F("minhash_distance"),
            Op("<=>"),
            F("minhash_interval"),
            F("minhash_containment"),
            F("minhash_cardinality"),
            F("minhash_pack"),
            F("minhash_describe"),
            F("minhash_import"),
            Casts,
            Op("="),
            Op("<>"),
            Op("<"),
            Op("<="),
            Op(">"),
            Op(">="),
        ],
    },
    Subject {
        title: "SimHash and Hamming distance",
        page: "simhash.md",
        entries: &[
            F("simhash"),
            F("simhash_agg"),
            F("bit_hamming"),
            Op("<->"),
            F("hamming_bands"),
            F("hamming_probe"),
        ],
    },
    Subject {
        title: "Lookup",
        page: "lookup.md",
        entries: &[
            F("near_dup"),
            F("hamming_within"),
            AccessMethod("neardup"),
            OperatorClass("text_ops"),
            OperatorClass("minhash_ops"),
            OperatorClass("hamming_ops"),
            OperatorClass("scope_ops"),
            Op("<@"),
            Op("@>"),
            F("minhash_bands"),
            F("minhash_probe"),
            F("minhash_shared_band"),
            F("near_dup_index_check"),
            F("near_dup_index_stats"),
        ],
    },
    Subject {
        title: "Classic bands",
        page: "lsh.md",
        entries: &[F("lsh_probability"), F("lsh_params")],
    },
    Subject {
        title: "Pairs and clusters",
        page: "collections.md",
        entries: &[
            F("near_dup_pairs"),
            F("near_dup_join"),
            F("near_dup_clusters"),
            F("connected_components"),
            F("star_clusters"),
            F("near_dup_distinct"),
            F("near_dup_sample_pairs"),
            Setting("neardup.progress"),
        ],
    },
    Subject {
        title: "Keeping near-duplicates out",
        page: "guarding.md",
        entries: &[
            F("near_dup_key"),
            Type("near_dup_key"),
            Op("%"),
            OperatorClass("near_dup_key_ops"),
            F("near_dup_guard"),
            F("near_dup_protect"),
            F("near_dup_unprotect"),
        ],
    },
    Subject {
        title: "Kept clusters",
        page: "tracking.md",
        entries: &[
            F("near_dup_track"),
            F("near_dup_refresh"),
            F("near_dup_untrack"),
            View("near_dup_tracked"),
        ],
    },
    Subject {
        title: "Passages",
        page: "passages.md",
        entries: &[
            F("copied_passages"),
            F("cut_passages"),
            F("frequent_passages"),
            F("split_text"),
        ],
    },
    Subject {
        title: "Looking at a pair",
        page: "pairs.md",
        entries: &[
            F("near_dup_explain"),
            F("common_chunks"),
            F("chunk_similarity"),
            F("longest_common_substring"),
            F("edit_distance"),
        ],
    },
    Subject {
        title: "Operations",
        page: "operations.md",
        entries: &[F("pg_neardup_version")],
    },
];
