//! One file with code, the program or a shared object, and what is known of the functions and lines
//! in it.

use super::SymbolError;
use super::debug::Debug;
use super::image::{self, Image};
use super::table::Table;
use super::unit::{RawFrame, RawName};
use crate::names;
use object::{Object, ObjectSegment, SegmentFlags};
use std::cell::OnceCell;
use std::ops::Range;
use std::path::PathBuf;

/// A file with code. Addresses are those that the file has.
pub(super) struct Module {
    pub(super) path: PathBuf,
    pub(super) image: &'static Image,
    /// The addresses of its code.
    pub(super) text: Vec<Range<u64>>,
    /// The file with the debug information, this one or another.
    with_lines: OnceCell<Option<&'static Image>>,
    debug: Option<Debug>,
    table: OnceCell<Table>,
    home: OnceCell<Option<String>>,
}

impl Module {
    /// Of the file `image`, which is called `path`.
    pub(super) fn new(image: &'static Image, path: PathBuf) -> Module {
        let is_code = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        let text = image.object().segments().filter(is_code);
        let text = text.map(|it| it.address()..it.address().saturating_add(it.size())).collect();
        Module {
            path,
            image,
            text,
            with_lines: OnceCell::new(),
            debug: None,
            table: OnceCell::new(),
            home: OnceCell::new(),
        }
    }

    /// Whether it has line information.
    pub(super) fn lines(&self) -> Result<(), SymbolError> {
        match self.with_lines() {
            Some(_) => Ok(()),
            None => Err(self.why_no_lines()),
        }
    }

    fn why_no_lines(&self) -> SymbolError {
        let object = self.image.object();
        if let Ok(Some((moved, _))) = object.gnu_debuglink() {
            return SymbolError::Moved(String::from_utf8_lossy(moved).into_owned());
        }
        match object.symbol_table() {
            Some(_) => SymbolError::NoLines,
            None => SymbolError::Stripped,
        }
    }

    fn with_lines(&self) -> Option<&'static Image> {
        *self.with_lines.get_or_init(|| {
            if self.image.has(".debug_line") {
                return Some(self.image);
            }
            image::separate(self.image, &self.path)
        })
    }

    /// The frames at an address with the names of their functions, innermost first. Empty where
    /// nothing is known.
    pub(super) fn look_up(&mut self, probe: u64) -> Vec<(RawFrame, String)> {
        if self.debug.is_none()
            && let Some(image) = self.with_lines()
        {
            self.debug = Debug::new(image, &self.path).ok();
        }
        let (mut frames, root) =
            self.debug.as_mut().map(|debug| debug.frames(probe)).unwrap_or_default();
        if frames.is_empty() && self.table().name(probe).is_some() {
            frames.push(RawFrame::default());
        }
        let mut named: Vec<(RawFrame, String)> = Vec::with_capacity(frames.len());
        // From the outside in: what has no name of its own has that of what it is in.
        for frame in frames.into_iter().rev() {
            let name = match (&frame.name, named.is_empty()) {
                (Some(RawName::Linked(name)), _) => names::plain(name),
                (bare, true) => match (self.table().name(probe), bare) {
                    (Some(name), _) => names::plain(name),
                    (None, Some(RawName::Bare(name))) => in_file(name, &frame, &root),
                    (None, _) => "?".to_owned(),
                },
                (Some(RawName::Bare(name)), false) if names::is_nameless(name) => {
                    let same = named.iter().rev().find(|(outer, _)| outer.file == frame.file);
                    same.or(named.last()).map_or("?".to_owned(), |(_, name)| name.clone())
                }
                (Some(RawName::Bare(name)), false) => in_file(name, &frame, &root),
                (None, false) => "?".to_owned(),
            };
            named.push((frame, name));
        }
        named.reverse();
        named
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let images = [Some(self.image), self.with_lines()];
            Table::of(images.into_iter().flatten())
        })
    }

    /// The crate of `main`, where no file tells whose a function is.
    pub(super) fn home(&self) -> Option<&str> {
        let find = || if self.debug.is_some() { None } else { self.table().home() };
        self.home.get_or_init(find).as_deref()
    }
}

/// A bare name with the modules of the file that it is in. Names of other languages have no
/// modules.
fn in_file(name: &str, frame: &RawFrame, root: &Option<(String, String)>) -> String {
    if !frame.is_rust {
        return name.to_owned();
    }
    let root = root.as_ref().map(|(folder, package)| (folder.as_str(), package.as_str()));
    names::in_file(name, frame.file.as_deref().unwrap_or_default(), root)
}
