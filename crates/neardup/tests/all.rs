//! The tests of the library's public functions, in one program: this compiles faster than a program for each file.

mod accuracy;
mod align;
mod align_bounds;
mod bands;
mod candidates;
mod collection;
mod hostile;
mod hostile_input;
mod known_answers;
mod lsh_curve;
mod messages;
mod oracle;
mod pages;
mod passages;
mod postings;
mod postings_estimates;
mod postings_examples;
mod set_properties;
mod simhash;
mod split_and_cut;
mod text_examples;
mod text_oracle;
