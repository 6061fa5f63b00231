//! The objects that the loader has mapped: the program, and shared objects, which come with
//! `dlopen` and go with `dlclose`.
//!
//! The loader locks its list while somebody walks it, so nothing else is done meanwhile than to
//! copy the list. An object of the copy may be gone a moment later: nobody may follow a pointer
//! into one. [`read`] takes bytes through the kernel, which refuses what is not mapped.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, slice, thread};

/// How many objects were loaded and unloaded so far. The list of objects is the same as long as
/// this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    loaded: u64,
    unloaded: u64,
}

/// An object as the loader has mapped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Path of its file, as the loader was told.
    pub(crate) path: PathBuf,
    /// Difference between an address in memory and the one in the file.
    pub(crate) bias: u64,
    segments: Vec<Segment>,
}

/// One program header of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    kind: u32,
    flags: u32,
    /// Place in the file.
    offset: u64,
    /// Length in the file.
    length: u64,
    memory: Range<u64>,
}

impl Object {
    /// The addresses of its code in memory.
    #[cfg(feature = "symbols")]
    pub(crate) fn code(&self) -> impl Iterator<Item = &Range<u64>> {
        let is_code =
            |it: &&Segment| it.kind == libc::PT_LOAD && it.flags & libc::PF_X == libc::PF_X;
        self.segments.iter().filter(is_code).map(|it| &it.memory)
    }

    /// The addresses of its notes in memory.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Range<u64>> {
        self.segments.iter().filter(|it| it.kind == libc::PT_NOTE).map(|it| &it.memory)
    }

    /// The addresses in memory of at most `most` bytes from the beginning of its file.
    #[cfg(feature = "symbols")]
    pub(crate) fn head(&self, most: u64) -> Option<Range<u64>> {
        let is_first = |it: &&Segment| it.kind == libc::PT_LOAD && it.offset == 0;
        let first = self.segments.iter().find(is_first)?;
        Some(first.memory.start..first.memory.start + first.length.min(most))
    }
}

/// How many objects came and went so far. Takes well under a microsecond.
pub(crate) fn changes() -> Changes {
    let mut changes = Changes::default();
    walk(&mut |object| {
        changes = changes_at(object);
        false
    });
    changes
}

/// The objects that are mapped at the moment, the program first, and how many had come and gone by
/// then.
pub(crate) fn objects() -> (Changes, Vec<Object>) {
    let (mut changes, mut objects) = (Changes::default(), Vec::new());
    walk(&mut |object| {
        changes = changes_at(object);
        objects.push(copy(object));
        true
    });
    if let Some(program) = objects.first_mut().filter(|it| it.path.as_os_str().is_empty()) {
        program.path = program_path();
    }
    (changes, objects)
}

/// Path of the program's file.
pub(crate) fn program_path() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    fs::read_link(&link).unwrap_or(link)
}

/// The bytes at these addresses of this process.
///
/// # Errors
///
/// When some of them are not mapped, and where `/proc` is not to be had.
pub(crate) fn read(memory: &Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(memory.end - memory.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, memory.start)?;
    Ok(bytes)
}

fn changes_at(object: &libc::dl_phdr_info) -> Changes {
    Changes { loaded: object.dlpi_adds, unloaded: object.dlpi_subs }
}

fn copy(object: &libc::dl_phdr_info) -> Object {
    let path = if object.dlpi_name.is_null() {
        PathBuf::new()
    } else {
        // SAFETY: while the list is walked its objects and their names stay.
        let name = unsafe { CStr::from_ptr(object.dlpi_name) };
        PathBuf::from(OsStr::from_bytes(name.to_bytes()))
    };
    let headers = if object.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the loader hands so many headers of an object that stays while the list is
        // walked.
        unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) }
    };
    let bias = object.dlpi_addr;
    let segment = |it: &libc::Elf64_Phdr| {
        let begin = bias.wrapping_add(it.p_vaddr);
        Segment {
            kind: it.p_type,
            flags: it.p_flags,
            offset: it.p_offset,
            length: it.p_filesz,
            memory: begin..begin.saturating_add(it.p_memsz),
        }
    };
    Object { path, bias, segments: headers.iter().map(segment).collect() }
}

/// Calls `each` with the loaded objects until it returns false.
fn walk(each: &mut dyn FnMut(&libc::dl_phdr_info) -> bool) {
    type Each<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool;
    /// Hands one object to the closure behind `each`.
    extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _: libc::size_t,
        each: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader hands a valid object, and `each` is the pointer to a closure given
        // below.
        let (object, each) = unsafe { (&*object, &mut *each.cast::<Each<'_>>()) };
        libc::c_int::from(!each(object))
    }
    let _alone = Alone::wait();
    let mut each: Each<'_> = each;
    // SAFETY: `visit` is called during this call only, while `each` lives.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut each).cast()) };
}

/// Set while a thread of andweorc walks the loader's list, and while another one forks.
///
/// A child that is forked while the list is locked would find it locked for ever, and hang in its
/// first `dlopen`.
static WALKING: AtomicBool = AtomicBool::new(false);

/// Whether the thread that forks has set [`WALKING`]. Written only by the one that did.
static FORKING: AtomicBool = AtomicBool::new(false);

/// How long a fork waits for a walk to end, which most often takes some microseconds: one that is
/// held up by the forking thread itself never ends.
const MAX_FORK_WAIT: Duration = Duration::from_millis(20);

/// The right to walk the list while nobody forks.
struct Alone;

impl Alone {
    fn wait() -> Alone {
        static WATCHED: Once = Once::new();
        // SAFETY: the handlers take no lock, allocate nothing, and live as long as the program or
        // shared object that they are in.
        WATCHED.call_once(|| unsafe {
            // Without memory for it forks are not waited for.
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        });
        while WALKING.swap(true, Ordering::SeqCst) {
            thread::yield_now();
        }
        Alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        WALKING.store(false, Ordering::SeqCst);
    }
}

unsafe extern "C" fn before_fork() {
    let begun = Instant::now();
    while WALKING.swap(true, Ordering::SeqCst) {
        if begun.elapsed() > MAX_FORK_WAIT {
            return;
        }
        thread::yield_now();
    }
    FORKING.store(true, Ordering::SeqCst);
}

unsafe extern "C" fn in_parent() {
    if FORKING.swap(false, Ordering::SeqCst) {
        WALKING.store(false, Ordering::SeqCst);
    }
}

unsafe extern "C" fn in_child() {
    FORKING.store(false, Ordering::SeqCst);
    WALKING.store(false, Ordering::SeqCst);
}

#[cfg(all(test, feature = "symbols"))]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_has_the_code_that_runs() {
        let (changes, objects) = objects();
        assert!(changes.loaded > 0);
        let here = changes_at as fn(&libc::dl_phdr_info) -> Changes as usize as u64;
        assert!(objects[0].code().any(|code| code.contains(&here)));
        assert_eq!(objects[0].path, std::env::current_exe().unwrap());
        assert!(objects[1..].iter().all(|it| !it.code().any(|code| code.contains(&here))));
    }

    #[test]
    fn the_head_of_an_object_is_that_of_its_file() {
        let head = objects().1[0].head(64).expect("the program begins with what is mapped");
        let mapped = read(&head).unwrap();
        assert_eq!(mapped, fs::read("/proc/self/exe").unwrap()[..64]);
    }

    #[test]
    fn memory_that_is_not_mapped_is_refused() {
        assert!(read(&(8..16)).is_err());
    }

    #[test]
    fn a_fork_waits_for_a_walk_and_a_walk_for_a_fork() {
        changes();
        let walking = Alone::wait();
        let begun = Instant::now();
        // SAFETY: the handlers may be called at any time, in this order.
        unsafe {
            before_fork();
            in_parent();
        }
        assert!(begun.elapsed() >= MAX_FORK_WAIT, "the walk did not end");
        assert!(WALKING.load(Ordering::SeqCst), "and it goes on");
        drop(walking);
        // SAFETY: as above.
        unsafe { before_fork() };
        let walked = thread::spawn(changes);
        thread::sleep(Duration::from_millis(5));
        let waits = !walked.is_finished();
        // SAFETY: as above.
        unsafe { in_parent() };
        walked.join().unwrap();
        assert!(waits);
    }
}
