//! Processors that do not sleep.
//!
//! On a virtual machine an idle processor is given back to the host, and how long it takes to come back goes by how long it was idle. So a part that is
//! really faster makes others wake up sooner, which no virtual speedup does. With something to do at all times, which everybody else takes precedence of, processors
//! are never given back.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::error::Error;
use std::hint;
use std::io;
use std::sync::mpsc;
use std::thread;

/// Keeps each processor that this process may use from sleeping, until the process ends.
pub(crate) fn keep() -> Result<(), Box<dyn Error>> {
    let allowed = sched_getaffinity(Pid::this())?;
    for number in 0..CpuSet::count() {
        if allowed.is_set(number)? {
            let (tell, told) = mpsc::channel();
            thread::spawn(move || {
                let ready = stay_on(number).and_then(|()| stand_back());
                let failed = ready.is_err();
                tell.send(ready).expect("it is waited for");
                if failed {
                    return;
                }
                loop {
                    hint::spin_loop();
                }
            });
            told.recv()?
                .map_err(|error| format!("processor {number} is not kept awake: {error}"))?;
        }
    }
    Ok(())
}

/// Lets the calling thread run on this processor alone.
fn stay_on(number: usize) -> io::Result<()> {
    let mut one = CpuSet::new();
    one.set(number)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}

/// Lets the calling thread run only where nobody else wants to.
fn stand_back() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads `priority`, and sets what belongs to the calling thread (0).
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
