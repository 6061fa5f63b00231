//! Locks and channels at which tasks wait for each other, as a run names them while it observes the
//! program: by a program whose waits are known.
//!
//! Call chains are whole in a build with frame pointers, as `cargo andweorc run` makes it. Without
//! them no site has a name, and nothing else is told.

use andweorc::task;
use andweorc_core::experiment::Experimenter;
use andweorc_core::symbols::Symbols;
use andweorc_core::target::targets;
use andweorc_core::wall;
use andweorc_profile::{WaitSite, WaitSites};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Whether this program was built as `cargo andweorc run` does, so that call chains are whole.
fn has_frame_pointers() -> bool {
    option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("force-frame-pointers"))
}

/// Length of each wait.
const WAIT: Duration = Duration::from_millis(20);

/// Runs these tasks, one after the other until each waits, and returns where they waited.
fn record(spawn: impl FnOnce() -> Vec<JoinHandle<()>>) -> WaitSites {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    wall::begin_stretch();
    runtime.block_on(async {
        for task in spawn() {
            task.await.unwrap();
        }
    });
    let (record, _) = wall::end();
    assert!(record.stacks.iter().any(|stack| stack.total_ns() > 0), "{record:#?}");
    wall::take_wait_sites(|| Symbols::of_this_program().ok())
}

fn spawn(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    task::Builder::new().name(name).spawn(work)
}

/// The sites of the waits of tasks of this name.
fn of<'a>(sites: &'a WaitSites, waiter: &str) -> Vec<&'a WaitSite> {
    sites.sites.iter().filter(|site| name(site.waiter) == waiter).collect()
}

fn name(id: Option<u32>) -> String {
    let found = targets().into_iter().find(|target| Some(target.id()) == id);
    found.map_or_else(String::new, |target| target.name().to_owned())
}

/// The waiter has one site: this function of a primitive, called in this file at that line, where
/// the holder ended the wait.
fn check(sites: &WaitSites, [waiter, holder]: [&str; 2], call: &str, line: &AtomicU32) {
    let found = of(sites, waiter);
    let [site] = &found[..] else { panic!("{sites:#?}") };
    assert_eq!((name(site.by), site.samples), (holder.to_owned(), 1), "{site:?}");
    assert!(site.ns >= WAIT.as_nanos() as u64 / 2, "{site:?}");
    if !has_frame_pointers() {
        return;
    }
    assert_eq!(site.call.as_deref(), Some(call), "{site:?}");
    assert_eq!(site.file.as_deref(), Some(file!()), "{site:?}");
    assert_eq!(site.line, Some(line.load(Ordering::SeqCst)), "{site:?}");
}

/// A place for the line that waits.
fn line() -> (Arc<AtomicU32>, Arc<AtomicU32>) {
    let line = Arc::new(AtomicU32::new(0));
    (Arc::clone(&line), line)
}

#[test]
fn locks_and_channels_are_named_by_primitive_and_line_and_timers_and_sockets_are_none() {
    let _on = Experimenter::new().expect("the only one in this process");

    let ((of_lock, to_lock), (of_late, to_late)) = (line(), line());
    let sites = record(|| {
        let lock = Arc::new(Mutex::new(()));
        let (held, late) = (Arc::clone(&lock), Arc::clone(&lock));
        let holds = async move {
            let guard = held.lock().await;
            sleep(WAIT).await;
            drop(guard);
        };
        let locks = async move {
            to_lock.store(line!() + 1, Ordering::SeqCst);
            let guard = lock.lock().await;
            sleep(WAIT).await;
            drop(guard);
        };
        // The timer beside the lock is not what ends the wait.
        let locks_in_time = async move {
            to_late.store(line!() + 1, Ordering::SeqCst);
            let guard = timeout(Duration::from_secs(3600), late.lock()).await;
            drop(guard.unwrap());
        };
        vec![spawn("holds", holds), spawn("locks", locks), spawn("in time", locks_in_time)]
    });
    let lock = "tokio::sync::mutex::Mutex::lock";
    check(&sites, ["locks", "holds"], lock, &of_lock);
    check(&sites, ["in time", "locks"], lock, &of_late);
    assert!(of(&sites, "holds").is_empty(), "it waited for a timer: {sites:#?}");
    assert_eq!((sites.merged, sites.unsampled), (0, 0));

    let (of_permit, to_permit) = line();
    let sites = record(|| {
        let permits = Arc::new(Semaphore::new(1));
        let held = Arc::clone(&permits);
        let holds = async move {
            let permit = held.acquire().await.unwrap();
            sleep(WAIT).await;
            drop(permit);
        };
        let acquires = async move {
            to_permit.store(line!() + 1, Ordering::SeqCst);
            drop(permits.acquire().await.unwrap());
        };
        vec![spawn("holds", holds), spawn("acquires", acquires)]
    });
    let acquire = "tokio::sync::semaphore::Semaphore::acquire";
    check(&sites, ["acquires", "holds"], acquire, &of_permit);

    let (of_room, to_room) = line();
    let sites = record(|| {
        let (sender, mut receiver) = mpsc::channel(1);
        let sends = async move {
            sender.send(1).await.unwrap();
            to_room.store(line!() + 1, Ordering::SeqCst);
            sender.send(2).await.unwrap();
        };
        let receives = async move {
            sleep(WAIT).await;
            receiver.recv().await.unwrap();
            receiver.recv().await.unwrap();
        };
        vec![spawn("sends", sends), spawn("receives", receives)]
    });
    check(&sites, ["sends", "receives"], "tokio::sync::mpsc::bounded::Sender::send", &of_room);

    let sites = record(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut there = there.into_std().unwrap();
        // A thread that nobody profiles.
        let writes = std::thread::spawn(move || {
            std::thread::sleep(WAIT);
            there.write_all(&[1]).unwrap();
        });
        let reads = async move {
            here.read_u8().await.unwrap();
            writes.join().unwrap();
        };
        vec![spawn("reads", reads), spawn("sleeps", sleep(WAIT))]
    });
    assert_eq!(sites.sites, [], "nobody waited for a task");
}
