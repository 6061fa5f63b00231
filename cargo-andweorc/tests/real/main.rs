//! The command from one end to the other: every sub-command on a real program, with profiles that
//! it makes here.
//!
//! What is asserted is what comes out, not how large an effect is: the machine may be busy.

mod chains;
mod commands;
#[path = "../common/process.rs"]
mod common;
mod faults;
mod pairs;
mod together;

use andweorc_profile::Profile;
use common::{command, stderr};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cargo project around `program.rs`, alone on the machine as far as these tests go.
struct Shop {
    folder: PathBuf,
    port: u16,
    _alone: MutexGuard<'static, ()>,
}

impl Shop {
    /// In a folder that stays from test run to test run, and with it what was built.
    fn new(name: &str) -> Shop {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real").join(name);
        fs::create_dir_all(folder.join("src")).unwrap();
        // What was measured before is not meant.
        let profiles = folder.join("target/andweorc");
        for one in ["baselines", "runs"] {
            fs::remove_dir_all(profiles.join(one)).ok();
        }
        for one in fs::read_dir(&profiles).into_iter().flatten().flatten() {
            fs::remove_file(one.path()).ok();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // The versions that this workspace was tested with, and has fetched.
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let manifest = include_str!("manifest.toml").replace("ROOT", root.to_str().unwrap());
        for (file, text) in
            [("Cargo.toml", &*manifest), ("src/main.rs", include_str!("program.rs"))]
        {
            let file = folder.join(file);
            // What is as it was need not be built again.
            if fs::read_to_string(&file).unwrap_or_default() != text {
                fs::write(file, text).unwrap();
            }
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        Shop { folder, port: free.local_addr().unwrap().port(), _alone: alone }
    }

    /// The folder of its profiles.
    fn profiles(&self) -> PathBuf {
        self.folder.join("target/andweorc")
    }

    /// `cargo andweorc` in its folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC_WRAPPER"] {
            command.env_remove(name);
        }
        command.current_dir(&self.folder).args(arguments);
        command
    }

    /// Runs `cargo andweorc` and returns what it prints; panics unless it succeeds.
    fn ok(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output
    }

    /// Returns what `run` prints, run again while the machine was so busy that `profiles`, below
    /// the folder of profiles, tell nothing.
    fn run_usable(&self, profiles: &[&str], run: impl Fn() -> Output) -> Output {
        let tells = |file: &&str| {
            let profile = Profile::read(&self.profiles().join(file)).unwrap();
            profile.runs.iter().all(|run| {
                let usable = || run.experiments.iter().filter(|it| it.discarded.is_none());
                let [targets, baselines] =
                    [true, false].map(|is| usable().filter(|it| it.target.is_some() == is).count());
                targets >= 1 && baselines >= 2
            })
        };
        let runs = (0..5).map(|_| run());
        let mut usable = runs.filter(|_| profiles.iter().all(tells));
        usable.next().expect("the machine disturbed nearly all experiments, five times")
    }

    /// `run` under load for so long, with these options and arguments of the program.
    fn run(&self, seconds: &str, profile: &str, options: &[&str], slower: &[&str]) -> Output {
        let port = self.port.to_string();
        let built = if profile == "release" { "release" } else { "debug" };
        let load = format!("target/andweorc/build/{built}/shop load {port}");
        let profile = if profile == "release" { "--release" } else { "--dev" };
        let mut all = vec!["run", profile, "--duration", seconds, "--speedups", "0.5"];
        all.extend(["--targets", "price,stock", "--points", "sold", "--load", &load]);
        all.extend(options);
        all.extend(["--", "serve", &port]);
        all.extend(slower);
        self.ok(&all)
    }
}
