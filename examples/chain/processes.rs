//! The three services as processes of this program.

use crate::{Result, part};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The services, which are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Processes {
    services: Vec<Child>,
    pub(crate) gateway: SocketAddr,
}

impl Processes {
    /// Starts all three, the gateway last. To be called by a thread that lives as long as they.
    pub(crate) fn start() -> Result<Processes> {
        let pace = part::pace()?.rounds_per_ms().to_string();
        let mut services = Vec::new();
        let mut start = |name: &str, calls: &[(&str, String)]| {
            let mut command = Command::new(env::current_exe()?);
            command.arg(name).env("CHAIN_PACE", &pace).env_remove("CHAIN_LISTEN");
            command.env("ANDWEORC_OUT", format!("target/andweorc/chain-{name}.jsonl"));
            command.envs(calls.iter().map(|(variable, address)| (variable, address)));
            // SAFETY: the call is made in the child before it becomes the service, and takes no
            // lock.
            unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
            services.push(command.stdout(Stdio::piped()).spawn()?);
            address(services.last_mut().expect("it has just been pushed"))
                .ok_or_else(|| format!("the {name} did not come up").into())
        };
        let started = (|| {
            let (inventory, payments) = (start("inventory", &[])?, start("payments", &[])?);
            let calls = [
                ("CHAIN_INVENTORY", inventory.to_string()),
                ("CHAIN_PAYMENTS", payments.to_string()),
            ];
            start("gateway", &calls)
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

/// The address that a service prints first.
fn address(service: &mut Child) -> Option<SocketAddr> {
    let mut line = String::new();
    BufReader::new(service.stdout.as_mut()?).read_line(&mut line).ok()?;
    line.trim().parse().ok()
}
