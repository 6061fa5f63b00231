//! A thread of this process that sleeps in a system call, looked at from outside: which call that
//! is, and the call chain to it.
//!
//! No signal is sent: one would end the call with EINTR, where the program may not expect it. The
//! kernel tells the call, the stack pointer and the instruction in `/proc/self/task/TID/syscall`.
//! The frame pointer is not told. So the stack is read, through `/proc/self/mem`, and frame
//! records are looked for in it from the stack pointer on: the first one that has a chain of others
//! above it is taken for the innermost. What lies below it, most often the C library's own frames,
//! is left out; a record that an earlier call left there may be taken for it.
//!
//! What is read is that of one moment if the kernel tells the same before and after. Otherwise the
//! thread has run in between, and nothing is told.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes of the stack that are read at most.
const MOST_READ: usize = 64 << 10;

/// Frame records that have to follow each other for the first to be taken for one.
const LEAST_CHAIN: usize = 3;

/// Bytes of a word.
const WORD: usize = size_of::<usize>();

/// A thread that sleeps in a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asleep {
    /// Number of the system call.
    pub syscall: i64,
    /// The instruction, then for each caller an address inside its call. Only the first where no
    /// frame records are found.
    pub chain: Vec<u64>,
}

/// Looks at a thread of this process. `None` where it does not sleep in a system call, or does so
/// no longer, or the kernel does not tell. `most` frames are told.
pub fn look(tid: i32, most: usize) -> Option<Asleep> {
    let path = format!("/proc/self/task/{tid}/syscall");
    let before = fs::read_to_string(&path).ok()?;
    let Call { number, stack, instruction } = parse(&before)?;
    let mut bytes = vec![0; MOST_READ];
    // The stack ends where it can't be read.
    let read = File::open("/proc/self/mem").and_then(|mem| mem.read_at(&mut bytes, stack as u64));
    bytes.truncate(read.unwrap_or(0));
    if fs::read_to_string(&path).ok()? != before {
        return None;
    }
    let words: Vec<usize> = bytes
        .chunks_exact(WORD)
        .map(|word| usize::from_ne_bytes(word.try_into().expect("as long as a word")))
        .collect();
    let mut chain = vec![instruction];
    chain.extend(frames(&words, stack).into_iter().take(most.saturating_sub(1)));
    Some(Asleep { syscall: number, chain })
}

/// State of a thread that sleeps in a system call.
struct Call {
    number: i64,
    stack: usize,
    instruction: u64,
}

/// Reads `NUMBER ARGUMENTS .. STACK INSTRUCTION`. A thread that runs is told as `running`, and one
/// that is in no system call as `-1`.
fn parse(line: &str) -> Option<Call> {
    let mut words = line.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let instruction = hex(words.next_back()?)?;
    let stack = hex(words.next_back()?)? as usize;
    stack.is_multiple_of(WORD).then_some(Call { number, stack, instruction })
}

/// The addresses inside of the calls of a chain of frame records in the `words` of a stack, which
/// lie from the address `low` on: of the first one that is long enough, or ends in the outermost.
fn frames(words: &[usize], low: usize) -> Vec<u64> {
    let stack = low..low + words.len() * WORD;
    (0..words.len())
        .map(|at| chain(words, &stack, at))
        .find(|it| !it.is_empty())
        .unwrap_or_default()
}

/// The chain of frame records that begins at a word of the stack; empty if it is none.
fn chain(words: &[usize], stack: &Range<usize>, first: usize) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = first;
    while let [next, back, ..] = words[at..] {
        if back < 4096 || stack.contains(&back) {
            break;
        }
        found.push(back as u64 - 1);
        let here = stack.start + at * WORD;
        if next <= here + WORD || !next.is_multiple_of(WORD) || !stack.contains(&next) {
            break;
        }
        at = (next - stack.start) / WORD;
    }
    if found.len() < LEAST_CHAIN {
        found.clear();
    }
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::time::Duration;

    #[test]
    fn call_of_a_thread_is_read() {
        let Call { number, stack, instruction } =
            parse("230 0x0 0x0 0x7ffd10 0x0 0x1 0x5 0x7ffcf8 0x7f0010\n").unwrap();
        assert_eq!((number, stack, instruction), (230, 0x7f_fcf8, 0x7f_0010));
        assert!(parse("running\n").is_none() && parse("-1 0x7ffcf8 0x7f0010\n").is_none());
        assert!(parse("").is_none() && parse("1 2 3").is_none());
    }

    #[test]
    fn the_innermost_chain_of_records_is_found_above_other_words() {
        const LOW: usize = 0x1000_0000;
        let address = |word: usize| LOW + word * WORD;
        let mut words = vec![0; 40];
        // Two words that look like a record, and lead nowhere.
        (words[2], words[3]) = (address(6), 0x50_0000);
        for (at, next, back) in [(10, 14, 0x40_1001), (14, 20, 0x40_2001), (20, 30, 0x40_3001)] {
            (words[at], words[at + 1]) = (address(next), back);
        }
        // The outermost: nothing is around it.
        (words[30], words[31]) = (0, 0x40_4001);
        assert_eq!(frames(&words, LOW), [0x40_1000, 0x40_2000, 0x40_3000, 0x40_4000]);
        // A chain that leads back down is none.
        words[20] = address(4);
        (words[30], words[31]) = (0, 0);
        assert_eq!(frames(&words, LOW), [0x40_1000, 0x40_2000, 0x40_3000]);
        words[14] = address(4);
        assert!(frames(&words, LOW).is_empty());
        assert!(frames(&[], LOW).is_empty());
    }

    #[test]
    fn a_thread_that_sleeps_tells_its_call_and_one_that_is_gone_none() {
        static TID: AtomicI32 = AtomicI32::new(0);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            TID.store(nix::unistd::gettid().as_raw(), Ordering::SeqCst);
            ended.recv().unwrap_err();
        });
        let asleep = loop {
            match TID.load(Ordering::SeqCst) {
                0 => {}
                tid => {
                    if let Some(asleep) = look(tid, 64) {
                        break asleep;
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(asleep.syscall, libc::SYS_futex, "{asleep:?}");
        drop(end);
        sleeper.join().unwrap();
        assert_eq!(look(TID.load(Ordering::SeqCst), 64), None);
    }
}
