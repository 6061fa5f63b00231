//! Threads of andweorc's own. They take none of the program's signals: a signal that all of the
//! program's threads block, since one of them waits for it by sigwait(3) or reads it from a
//! signalfd(2), would else be taken by a thread that the program does not know of.

use crate::allocations::number::leave_out_here;
#[cfg(test)]
use crate::process;
use crate::program_clock;
use andweorc_sampling::signal::signals_of_others;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that blocks the [signals of others](signals_of_others) from its first
/// instruction on. That includes SIGPIPE and SIGXFSZ, so that what it writes can fail, and not end
/// the program. What the thread allocates is not counted.
///
/// # Errors
///
/// As [`Builder::spawn`].
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _blocked = Blocked::begin()?;
    #[cfg(test)]
    let run = process::tests::Own::hand_on(run);
    Builder::new().name(name.to_owned()).spawn(|| {
        program_clock::read_real_here();
        leave_out_here();
        run()
    })
}

/// While this lives the calling thread blocks the signals of others: a new thread begins with the
/// mask of the one that starts it.
struct Blocked {
    before: SigSet,
}

impl Blocked {
    fn begin() -> io::Result<Blocked> {
        let before = signals_of_others().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Blocked { before })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.before.thread_set_mask().expect("a mask that was set before can be set again");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use nix::sys::signal::Signal;
    use std::path::Path;
    use std::{fs, thread};

    #[test]
    fn a_thread_of_ours_blocks_all_signals_but_its_own_and_its_parent_is_as_before() {
        thread::spawn(|| {
            let before = SigSet::from(Signal::SIGUSR1);
            before.thread_set_mask().unwrap();
            let own = spawn("masked", || SigSet::thread_get_mask().unwrap()).unwrap();
            let own = own.join().unwrap();
            for signal in Signal::iterator() {
                let blockable = !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
                let blocked = blockable && signals_of_others().contains(signal);
                assert_eq!(own.contains(signal), blocked, "{signal}");
            }
            assert_eq!(SigSet::thread_get_mask().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    /// Calls `each` with every Rust file below `folder`.
    fn each_source(folder: &Path, each: &mut impl FnMut(&Path, &str)) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                each_source(&entry, each);
            } else if entry.extension().is_some_and(|it| it == "rs") {
                each(&entry, &fs::read_to_string(&entry).unwrap());
            }
        }
    }

    #[test]
    fn no_library_crate_starts_a_thread_elsewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let crates = [".", "andweorc-sampling", "andweorc-core", "andweorc-tokio"];
        let crates = crates.iter().chain(&[
            "andweorc-tracing",
            "andweorc-threads",
            "andweorc-clock",
            "andweorc-macros",
            "andweorc-profile",
        ]);
        let (mut seen, mut starts) = (0, Vec::new());
        for folder in crates.map(|it| root.join(it).join("src")) {
            each_source(&folder, &mut |path, text| {
                // Tests are at the end of a file, or in one of their own.
                let name = path.file_name().unwrap().to_str().unwrap();
                let shipped = match (name, text.find("mod tests {")) {
                    ("own_thread.rs" | "tests.rs" | "model.rs" | "ring_model.rs", _) => return,
                    (_, end) => &text[..end.unwrap_or(text.len())],
                };
                seen += 1;
                let code = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
                let starts_one = |line: &&str| {
                    let line = line.replace("own_thread::spawn", "");
                    ["thread::spawn(", "thread::Builder", "thread::{Builder", "scope.spawn("]
                        .iter()
                        .any(|call| line.contains(call))
                };
                starts.extend(code.filter(starts_one).map(|line| format!("{path:?}: {line}")));
            });
        }
        assert!(seen > 100, "only {seen} files");
        assert!(starts.is_empty(), "use own_thread::spawn: {starts:#?}");
    }
}
