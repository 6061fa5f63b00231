//! Files with symbols: the program, and those that its debug information was moved to.
//!
//! Each is mapped once in a process and stays mapped, so that what is parsed of it can be kept. Its
//! pages are given back whenever enough of them were touched: they are the kernel's to fetch again.

use memmap2::{Mmap, UncheckedAdvice};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Bytes that all parsers here read. The program runs on this machine, so its byte order is known.
pub(super) type Slice = gimli::EndianSlice<'static, gimli::NativeEndian>;

/// A slice of nothing.
pub(super) fn empty() -> Slice {
    Slice::new(&[], gimli::NativeEndian)
}

/// Which file, and which state of it: device, inode, length, time of its last change in s and ns.
type Identity = (u64, u64, u64, i64, i64);

/// How to tell that a file is as it was.
enum Watch {
    /// By a descriptor, which is there whatever the program does to its file systems.
    Open(File),
    /// By the path. Many objects may come and go, and a descriptor for each is more than a program
    /// can spare.
    Path(PathBuf),
}

/// A mapped file.
pub(super) struct Image {
    watch: Mutex<Watch>,
    identity: Identity,
    map: &'static Mmap,
    object: object::File<'static>,
    sections: Mutex<HashMap<String, &'static [u8]>>,
}

static IMAGES: LazyLock<Mutex<HashMap<Identity, &'static Image>>> = LazyLock::new(Mutex::default);

impl Image {
    /// The file at `path`, mapped. No descriptor of it stays open.
    pub(super) fn open(path: &Path) -> io::Result<&'static Image> {
        let path = std::path::absolute(path)?;
        Image::map(File::open(&path)?, |_| Watch::Path(path))
    }

    /// The file of the running program, mapped.
    pub(super) fn of_this_program() -> io::Result<&'static Image> {
        Image::map(File::open("/proc/self/exe")?, Watch::Open)
    }

    fn map(file: File, watch: impl FnOnce(File) -> Watch) -> io::Result<&'static Image> {
        let identity = identity(&file.metadata()?);
        let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = images.get(&identity) {
            if !image.is_unchanged() {
                // A file that was moved is known by a path where it is no longer.
                *image.watch() = watch(file);
            }
            return Ok(image);
        }
        // SAFETY: the program's own file can't be written while it runs, and the others, shared
        // objects among them, are looked at only while they are as they were (`is_unchanged`).
        let map: &'static Mmap = Box::leak(Box::new(unsafe { Mmap::map(&file)? }));
        let object = object::File::parse(&**map).map_err(io::Error::other)?;
        let (watch, sections) = (Mutex::new(watch(file)), Mutex::default());
        let image = Box::leak(Box::new(Image { watch, identity, map, object, sections }));
        images.insert(identity, image);
        Ok(image)
    }

    /// Whether it has a section with something in it.
    pub(super) fn has(&self, section: &str) -> bool {
        let section = self.object.section_by_name(section);
        section.is_some_and(|section| section.file_range().is_some_and(|(_, size)| size > 0))
    }

    /// A section, decompressed where it must be; empty where there is none.
    pub(super) fn section(&self, name: &str) -> Slice {
        let mut sections = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
        let data = *sections.entry(name.to_owned()).or_insert_with(|| {
            let section = self.object.section_by_name(name);
            match section.and_then(|section| section.uncompressed_data().ok()) {
                Some(std::borrow::Cow::Borrowed(data)) => data,
                // Once in a process, as the mapping is.
                Some(std::borrow::Cow::Owned(data)) => Box::leak(data.into_boxed_slice()),
                None => &[],
            }
        });
        Slice::new(data, gimli::NativeEndian)
    }

    /// The parsed file.
    pub(super) fn object(&self) -> &object::File<'static> {
        &self.object
    }

    /// Whether it begins with these bytes.
    pub(super) fn begins_with(&self, head: &[u8]) -> bool {
        self.map.starts_with(head)
    }

    /// Whether the file is as it was when it was mapped. A build may cut off a file that is mapped,
    /// and the next look would be a SIGBUS.
    pub(super) fn is_unchanged(&self) -> bool {
        let now = match &*self.watch() {
            Watch::Open(file) => file.metadata(),
            Watch::Path(path) => fs::metadata(path),
        };
        now.is_ok_and(|now| identity(&now) == self.identity)
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back the pages that were touched.
    pub(super) fn release(&self) {
        // SAFETY: nothing is ever written to this private mapping of a file, so that all that is
        // dropped is there to be read again.
        let released = unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) };
        // Memory is all that it could have spared.
        drop(released);
    }
}

fn identity(data: &Metadata) -> Identity {
    (data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec())
}

/// The file that the debug information of `program` was moved to, as gdb looks for it: by build id,
/// then by the name that the program has.
pub(super) fn separate(program: &Image, path: &Path) -> Option<&'static Image> {
    separate_in(program, path, Path::new("/usr/lib/debug"))
}

/// Finds the file that [`separate`] finds, with another folder than `/usr/lib/debug`.
pub(super) fn separate_in(program: &Image, path: &Path, global: &Path) -> Option<&'static Image> {
    let id = program.object.build_id().ok().flatten();
    if let Some([first, rest @ ..]) = id {
        let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = global.join(format!(".build-id/{first:02x}/{hex}.debug"));
        if let Some(image) = open_with_id(&path, id) {
            return Some(image);
        }
    }
    let (name, crc) = program.object.gnu_debuglink().ok().flatten()?;
    let name = Path::new(OsStr::from_bytes(name));
    let folder = path.parent()?;
    let there = global.join(folder.strip_prefix("/").unwrap_or(folder));
    [folder.join(name), folder.join(".debug").join(name), there.join(name)].iter().find_map(
        |path| {
            // Of two ways to see that it belongs to the program, the build id is the one that need
            // not read all of it.
            let image = open_with_id(path, id)?;
            (id.is_some() || checksum(path).ok() == Some(crc)).then_some(image)
        },
    )
}

/// Opens a file with debug information if it has this build id.
fn open_with_id(path: &Path, id: Option<&[u8]>) -> Option<&'static Image> {
    let image = Image::open(path).ok()?;
    (image.has(".debug_info") && image.object.build_id().ok().flatten() == id).then_some(image)
}

/// The CRC of a file that a debug link has.
fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let (mut buffer, mut hasher) = (vec![0; 1 << 16], crc32fast::Hasher::new());
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// Where the package of split debug information of a program is: `shop.dwp` next to `shop`.
pub(super) fn package_of(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(".dwp");
    PathBuf::from(name)
}
