//! The native part of the Python package `pg-neardup`: computes the results of the server's functions from Python
//! columns, on all processors.

mod arrow;
mod column;
mod documents;
mod error;
mod meeting;
mod pairs;
mod parallel;
mod signatures;

/// With this allocator, threads do not wait for each other when one frees what another allocated.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Module `neardup._native`. Its functions are documented in `python/neardup`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::documents::{
        set_signature, shingle_hashes, shingles, signatures, simhashes, winnow,
    };
    #[pymodule_export]
    use crate::meeting::{Meetings, frequencies, members, set_resemblances, sets};
    #[pymodule_export]
    use crate::pairs::{containments, edit_distances, explanations, resemblances};
    #[pymodule_export]
    use crate::signatures::{
        bands, cardinality, check, classic_bands, containment, describe, distances, interval,
        near_dup, pack, parse, sim, text, union,
    };

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
