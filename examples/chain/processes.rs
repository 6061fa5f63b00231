//! The three services, and the load on them, as processes of this program.

use crate::parts::{Case, GATEWAY, INVENTORY, PAYMENTS, Service};
use crate::places::Places;
use crate::{Result, costs};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The services, which are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Processes {
    services: Vec<Child>,
    pub(crate) gateway: SocketAddr,
}

impl Processes {
    /// Starts all three, the gateway last, with the settings of andweorc that the environment has.
    /// To be called by a thread that lives as long as they.
    pub(crate) fn start(places: &Places) -> Result<Processes> {
        let pace = costs::pace()?.rounds_per_ms().to_string();
        Processes::start_each(places, &env::current_exe()?, |service, command| {
            command.env("CHAIN_PACE", &pace);
            command.env("ANDWEORC_OUT", format!("target/andweorc/chain-{}.jsonl", service.name));
        })
    }

    /// Starts all three from `program`, not profiled, with the part of `case` really cheaper. To be
    /// called by a thread that lives as long as they.
    pub(crate) fn start_unprofiled(
        places: &Places,
        program: &Path,
        pace: u32,
        case: Option<&Case>,
    ) -> Result<Processes> {
        Processes::start_each(places, program, |_, command| {
            command.env("CHAIN_PACE", pace.to_string()).env_remove("ANDWEORC_ENABLED");
            command.envs(case.map(Case::dial));
        })
    }

    fn start_each(
        places: &Places,
        program: &Path,
        set: impl Fn(&Service, &mut Command),
    ) -> Result<Processes> {
        let mut services = Vec::new();
        let mut start = |service: &Service, calls: &[(&str, SocketAddr)]| {
            let mut command = places.command(service, program);
            command.arg(service.name).env_remove("CHAIN_LISTEN");
            command.envs(calls.iter().map(|(variable, to)| (variable, to.to_string())));
            let listen = places.address(service).map(|at| ("CHAIN_LISTEN", at.to_string()));
            command.envs(listen);
            set(service, &mut command);
            end_with_this(&mut command, Signal::SIGKILL);
            services.push(command.stdout(Stdio::piped()).spawn()?);
            address(services.last_mut().expect("it has just been pushed"))
                .ok_or_else(|| format!("the {} did not come up", service.name).into())
        };
        let started = (|| {
            let calls = [
                ("CHAIN_INVENTORY", start(&INVENTORY, &[])?),
                ("CHAIN_PAYMENTS", start(&PAYMENTS, &[])?),
            ];
            start(&GATEWAY, &calls)
        })();
        let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
        let gateway: Result<SocketAddr> = started;
        let processes = Processes { services, gateway: *gateway.as_ref().unwrap_or(&unspecified) };
        gateway.map(|_| processes)
    }

    /// Ends the services, which write their profiles first.
    pub(crate) fn end(mut self) -> Result<()> {
        for service in &self.services {
            kill(Pid::from_raw(service.id() as i32), Signal::SIGINT)?;
        }
        for service in &mut self.services {
            service.wait()?;
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for service in &mut self.services {
            // One that has ended already is not there to be killed.
            service.kill().ok();
            service.wait().ok();
        }
    }
}

/// The load on a gateway, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Load(Child);

impl Load {
    /// Sends so many customers to the gateway. To be called by a thread that lives as long as they.
    pub(crate) fn start(gateway: SocketAddr, connections: usize) -> Result<Load> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["load", &gateway.to_string(), "--connections", &connections.to_string()]);
        end_with_this(&mut command, Signal::SIGKILL);
        Ok(Load(command.spawn()?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // One that has ended already is not there to be killed.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Has the process that `command` starts get `signal` when the thread that starts it ends.
pub(crate) fn end_with_this(command: &mut Command, signal: Signal) {
    // SAFETY: the call is made in the child before it becomes another program, and takes no lock.
    unsafe { command.pre_exec(move || Ok(nix::sys::prctl::set_pdeathsig(signal)?)) };
}

/// The address that a service prints first.
fn address(service: &mut Child) -> Option<SocketAddr> {
    let mut line = String::new();
    BufReader::new(service.stdout.as_mut()?).read_line(&mut line).ok()?;
    line.trim().parse().ok()
}
