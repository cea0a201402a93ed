//! All tests that need a server, run with libtest-mimic.

use std::process::ExitCode;

fn main() -> ExitCode {
    server_tests::main()
}
