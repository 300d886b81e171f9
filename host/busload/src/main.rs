//! The program `busload`: `busload --help` lists its commands.

fn main() -> std::process::ExitCode {
    busload::cli::main(&busload::suite::BUSLOAD)
}
