//! `cargo andweorc run` around the program: readiness, load, the live view, repeated runs, and the
//! end.

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod load;
mod ready;
mod repeated;
mod view;

use common::{command, profile};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with the program in it, as `shop`, `benches/bench.rs` and `tests/test.rs`.
struct Project(TempDir);

impl Project {
    fn new() -> Project {
        let project = Project(tempfile::tempdir().unwrap());
        let program = include_str!("program.rs");
        for (file, text) in [
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nedition = \"2024\"\n[[bench]]\nname = \"bench\"\nharness = false\n\
                 [[test]]\nname = \"test\"\nharness = false\n[workspace]\n",
            ),
            ("src/main.rs", program),
            ("src/profile.jsonl", &profile()),
            ("benches/bench.rs", ARGUMENTS),
            ("tests/test.rs", ARGUMENTS),
        ] {
            let path = project.at().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        project
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command
            .current_dir(self.at())
            .args(["run", "--dev"])
            .args(arguments)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC_WRAPPER");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.at().join(file)).unwrap_or_default()
    }

    fn out(&self) -> PathBuf {
        self.at().join("target/andweorc/shop.jsonl")
    }

    /// Whether the process whose id this file has is there.
    fn runs(&self, file: &str) -> bool {
        let pid = self.read(file).trim().parse().expect("an id was written");
        kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
    }
}

/// Writes a profile, and prints its arguments and whether its folder is that of the package.
const ARGUMENTS: &str = r#"
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    println!("args={args:?} here={}", std::path::Path::new("Cargo.toml").exists());
    std::fs::write(std::env::var("ANDWEORC_OUT").unwrap(), include_str!("../src/profile.jsonl")).unwrap();
}
"#;
