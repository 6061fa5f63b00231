//! Predictions: the services are profiled as one, as a user would do it, by `cargo andweorc run`.

use crate::Result;
use crate::change::{Change, Changes};
use crate::parts::{Case, GATEWAY, INVENTORY, PAYMENTS, Service};
use crate::processes::end_with_this;
use crate::truth::Setup;
use andweorc_profile::Profile;
use andweorc_profile::estimate::{Analysis, Metric, analyse};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Speedups are fractions, written with fewer digits than this tells apart.
const ALIKE: f64 = 1e-6;

/// The program that `cargo andweorc run` builds, of which all services are.
#[derive(Debug)]
pub(crate) struct Built {
    /// Cargo's target folder.
    target: PathBuf,
    is_release: bool,
    pub(crate) program: PathBuf,
}

impl Built {
    /// Beside this program, and with the profile that it was built with.
    pub(crate) fn beside_this() -> Result<Built> {
        let this = env::current_exe()?;
        // TARGET/release/examples/chain
        let profile = this.ancestors().nth(2).ok_or("this program is not in a target folder")?;
        let name = profile.file_name().and_then(OsStr::to_str);
        let (Some(name @ ("release" | "debug")), Some(target)) = (name, profile.parent()) else {
            return Err("start it by `cargo run --release --example chain`".into());
        };
        let program = target.join("andweorc/build-stable").join(name).join("examples/chain");
        Ok(Built { target: target.to_owned(), is_release: name == "release", program })
    }

    fn profile(&self) -> PathBuf {
        self.target.join("andweorc/chain.jsonl")
    }
}

/// Profiles the services under the load, and analyses what the gateway's profile tells of them all.
pub(crate) fn run(setup: &Setup, built: &Built, cases: &[Case]) -> Result<Analysis> {
    let mut command = command(setup, built, cases)?;
    end_with_this(&mut command, Signal::SIGTERM);
    let status = command.status()?;
    if !status.success() {
        return Err(format!("`cargo andweorc run` failed ({status}), see above").into());
    }
    Ok(analyse(&Profile::read(&built.profile())?.runs))
}

/// The changes that the gateway's profile predicts; `None` where the part was not tested often
/// enough.
pub(crate) fn of(case: &Case, analysis: &Analysis) -> Option<Changes> {
    let (kind, name) = case.in_the_gateway();
    let target = analysis.targets.iter().find(|it| it.kind == kind && it.name == name)?;
    let change = |metric| {
        let mut effects = target.effects_on(GATEWAY.point, metric);
        Change::predicted(effects.find(|it| (it.speedup - case.speedup()).abs() < ALIKE)?)
    };
    Some(Changes {
        throughput: change(Metric::Throughput)?,
        p50: change(Metric::P50)?,
        p99: change(Metric::P99)?,
    })
}

fn command(setup: &Setup, built: &Built, cases: &[Case]) -> Result<Command> {
    let at = |service| setup.places.address_or_free(service);
    let (gateway, inventory, payments) = (at(&GATEWAY)?, at(&INVENTORY)?, at(&PAYMENTS)?);
    let seconds = format!("{}s", setup.duration.as_secs());
    let speedups: BTreeSet<String> = cases.iter().map(|case| case.speedup().to_string()).collect();
    let speedups = speedups.into_iter().collect::<Vec<_>>().join(",");
    let load = format!(
        "exec {} load {gateway} --connections {}",
        quoted(&env::current_exe()?)?,
        setup.connections
    );

    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_release = built.is_release.then_some("--release");
    command.args(["run", "--quiet"]).args(is_release).args(["-p", "cargo-andweorc", "--"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Connections to participants must not be profiled tasks, which they are where all are seen.
    command.args(["andweorc", "run", "--stable", "--example", "chain"]);
    command.args([
        "--features",
        "axum,remote",
        if built.is_release { "--release" } else { "--dev" },
    ]);
    command.arg("--target-dir").arg(&built.target).arg("--out").arg(built.profile());
    command.args(["--duration", &seconds, "--speedups", &speedups]);
    command.args(["--targets", &GATEWAY.targets(cases), "--points", GATEWAY.point]);
    for (service, at) in [(&INVENTORY, inventory), (&PAYMENTS, payments)] {
        command.arg("--with").arg(with(setup, built, service, at, cases)?);
    }
    if let Some(listen) = setup.listen {
        command.args(["--listen", &listen.to_string()]);
    }
    command.args(["--load", &load, "--ready-port", &gateway.port().to_string(), "--", "gateway"]);
    command.env("CHAIN_PACE", setup.pace.to_string());
    command.env("CHAIN_LISTEN", gateway.to_string());
    command.env("CHAIN_INVENTORY", inventory.to_string());
    command.env("CHAIN_PAYMENTS", payments.to_string());
    Ok(command)
}

/// An argument of `--with`.
fn with(
    setup: &Setup,
    built: &Built,
    service: &Service,
    at: SocketAddr,
    cases: &[Case],
) -> Result<String> {
    Ok(format!(
        "{name}=CHAIN_LISTEN={at} ANDWEORC_TARGETS={} ANDWEORC_POINTS={} exec {} {} {name}",
        service.targets(cases),
        service.point,
        setup.places.words(service),
        quoted(&built.program)?,
        name = service.name,
    ))
}

/// A path as a shell wants it.
fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains('\''));
    let text = text.ok_or_else(|| format!("{}: a shell can't be told this", path.display()))?;
    Ok(format!("'{text}'"))
}
