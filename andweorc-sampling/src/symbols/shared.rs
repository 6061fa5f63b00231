//! The shared objects of the running program: which one has the code at an address, as they come
//! and go.
//!
//! A file may have been replaced since it was loaded. So it is read only if it begins with the very
//! bytes that are in memory, among them the headers, with the lengths of its parts, and most often
//! the build id.

use super::image::Image;
use super::module::Module;
use crate::loaded::{self, Changes, Object};
use std::ops::Range;
use std::path::Path;

/// How many bytes at the beginning of a file tell that it is the loaded one.
const HEAD: u64 = 4096;

/// The directories of the system's own libraries: nobody expects to see lines of these.
const SYSTEM: [&str; 6] = ["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store"];

/// The shared objects.
#[derive(Default)]
pub(super) struct Shared {
    changes: Changes,
    all: Vec<SharedObject>,
}

struct SharedObject {
    object: Object,
    /// The first bytes of its file. `None` where they can't be read.
    head: Option<Vec<u8>>,
    file: File,
}

/// The file of a shared object.
enum File {
    /// Nobody asked for an address in it yet.
    NotOpened,
    /// The file can't be read, or is another one by now.
    Unreadable,
    Open(Box<Module>),
}

impl Shared {
    /// Takes note of what was loaded and unloaded since the last time. Returns where it has or had
    /// its code: what was known of addresses there holds no longer.
    pub(super) fn refresh(&mut self) -> Vec<Range<u64>> {
        if loaded::changes() == self.changes {
            return Vec::new();
        }
        let (changes, objects) = loaded::objects();
        self.changes = changes;
        let mut before = std::mem::take(&mut self.all);
        let mut changed = Vec::new();
        // The first is the program.
        for object in objects.into_iter().skip(1) {
            let head = object.head(HEAD).and_then(|head| loaded::read(&head).ok());
            let same = before.iter().position(|it| it.object == object && it.head == head);
            self.all.push(match same {
                Some(at) => before.swap_remove(at),
                None => {
                    changed.extend(object.code().cloned());
                    SharedObject { object, head, file: File::NotOpened }
                }
            });
        }
        changed.extend(before.iter().flat_map(|it| it.object.code().cloned()));
        changed
    }

    /// The object with the code at an address, and what to take off addresses to get those of its
    /// file. `None` where there is none, or nothing is known of it.
    pub(super) fn at(&mut self, address: u64) -> Option<(&mut Module, u64)> {
        let has = |it: &&mut SharedObject| it.object.code().any(|code| code.contains(&address));
        let found = self.all.iter_mut().find(has)?;
        let bias = found.object.bias;
        if matches!(found.file, File::NotOpened) {
            found.file = found.open().map_or(File::Unreadable, |it| File::Open(Box::new(it)));
        }
        match &mut found.file {
            // An object that is loaded can be written to, by a build in its place.
            File::Open(module) if module.image.is_unchanged() => Some((module, bias)),
            _ => None,
        }
    }
}

impl Shared {
    /// The objects that addresses were looked for in and that have no lines, or can't be read, the
    /// system's own left out.
    pub(super) fn without_lines(&self) -> impl Iterator<Item = &Path> {
        let has_none = |it: &&SharedObject| match &it.file {
            File::NotOpened => false,
            File::Unreadable => true,
            File::Open(module) => module.lines().is_err(),
        };
        let paths = self.all.iter().filter(has_none).map(|it| it.object.path.as_path());
        // The vDSO, which the kernel maps, has a name without a folder.
        let is_file = |path: &&Path| path.components().count() > 1;
        paths.filter(is_file).filter(|path| !SYSTEM.iter().any(|folder| path.starts_with(folder)))
    }
}

impl SharedObject {
    fn open(&self) -> Option<Module> {
        let image = Image::open(&self.object.path).ok()?;
        let head = self.head.as_ref()?;
        image.begins_with(head).then(|| Module::new(image, self.object.path.clone()))
    }
}
