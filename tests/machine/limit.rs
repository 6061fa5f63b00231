//! A limit on processor time, as container runtimes set it.

use nix::unistd::Pid;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The stretch over which the limit holds, us.
const PERIOD: u64 = 100_000;

/// A cgroup whose processes share a part of one processor; removed when dropped.
pub(crate) struct Limit(PathBuf);

impl Limit {
    /// Where there is a cgroup tree that may be written to, of either version.
    pub(crate) fn new(share: f64) -> io::Result<Limit> {
        let quota = (share * PERIOD as f64) as u64;
        Limit::of_version_2(Path::new("/sys/fs/cgroup"), quota)
            .or_else(|_| Limit::of_version_1(Path::new("/sys/fs/cgroup/cpu"), quota))
    }

    fn of_version_2(root: &Path, quota: u64) -> io::Result<Limit> {
        set(&root.join("cgroup.subtree_control"), "+cpu")?;
        let limit = Limit::make(root)?;
        set(&limit.0.join("cpu.max"), &format!("{quota} {PERIOD}"))?;
        Ok(limit)
    }

    fn of_version_1(root: &Path, quota: u64) -> io::Result<Limit> {
        let limit = Limit::make(root)?;
        set(&limit.0.join("cpu.cfs_period_us"), &PERIOD.to_string())?;
        set(&limit.0.join("cpu.cfs_quota_us"), &quota.to_string())?;
        Ok(limit)
    }

    fn make(root: &Path) -> io::Result<Limit> {
        let folder = root.join(format!("andweorc-test-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Limit(folder))
    }

    /// Puts a process and all its threads under the limit.
    pub(crate) fn add(&self, pid: Pid) -> io::Result<()> {
        set(&self.0.join("cgroup.procs"), &pid.to_string())
    }

    /// In how many periods the limit was reached.
    pub(crate) fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Writes to a file that is there: in a cgroup tree the kernel makes them, and what can be made is
/// no cgroup tree.
fn set(file: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Refused while a process is in it: a test that failed has killed its own by then, but the
        // kernel may not be done with it.
        fs::remove_dir(&self.0).ok();
    }
}
