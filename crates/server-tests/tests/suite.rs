//! Every test that needs a server, on libtest-mimic.

use std::process::ExitCode;

fn main() -> ExitCode {
    server_tests::main()
}
