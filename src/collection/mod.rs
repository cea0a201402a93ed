//! Jobs over all rows of a query: pairs, joins, clusters, components, passages, calibration, report.

mod batch;
mod bit_strings;
pub mod calibrate;
pub mod clusters;
pub mod compare;
mod containment;
pub mod distinct;
pub mod documents;
mod exceptions;
mod form;
pub mod items;
pub mod matches;
mod members;
mod outlines;
pub mod pairs;
mod partners;
pub mod passages;
pub mod reading;
pub mod report;
mod rows;
pub mod sample_pairs;
pub mod search;
pub mod stars;
pub mod sweep;
pub mod verify;
