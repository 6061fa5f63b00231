//! Other copies of andweorc in the process.
//!
//! A shared object that andweorc is linked into has statics of its own: its progress points, spans
//! and tasks are registered in a copy that no session looks at. So each copy has a note in the file
//! that it is linked into, an ELF note, which the loader maps and `strip` leaves in. Since notes
//! have no names to the linker, any number of them may meet in one file.

use crate::loaded::{self, Changes, Object};
use std::fmt;
use std::path::PathBuf;

/// The owner of the notes of andweorc.
const OWNER: [u8; 12] = *b"andweorc\0\0\0\0";

/// Of the kinds of notes that andweorc may have: there is a copy of it, of this version.
const COPY: u32 = 1;

/// Longest version that fits.
const LENGTH: usize = 32;

/// An ELF note.
#[repr(C)]
struct Note {
    owner_length: u32,
    length: u32,
    kind: u32,
    owner: [u8; OWNER.len()],
    version: [u8; LENGTH],
}

/// The note of this copy.
// SAFETY: nothing but readers of notes looks at the section, and it has nothing but notes.
#[unsafe(link_section = ".note.andweorc")]
#[used]
static OWN: Note = Note {
    owner_length: OWNER.len() as u32,
    length: LENGTH as u32,
    kind: COPY,
    owner: OWNER,
    version: padded(env!("CARGO_PKG_VERSION")),
};

const fn padded(text: &str) -> [u8; LENGTH] {
    let (text, mut padded, mut i) = (text.as_bytes(), [0; LENGTH], 0);
    assert!(text.len() <= LENGTH, "a version this long needs a longer note");
    while i < text.len() {
        padded[i] = text[i];
        i += 1;
    }
    padded
}

/// A copy of andweorc that is not the one that asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// The file that it was linked into.
    path: PathBuf,
    version: String,
    /// Whether that is the file of the program, which has this copy beside another one.
    is_in_program: bool,
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Copy { path, version, is_in_program } = self;
        write!(
            f,
            "`{}` has a copy of andweorc ({version}) of its own, whose progress points, spans and tasks nobody counts, since they are in statics \
             of that copy. ",
            path.display()
        )?;
        f.write_str(if *is_in_program {
            "Have all crates use one version: `cargo tree --duplicates`"
        } else {
            "Let the program hit the points: around its calls of that code, or in a function that it hands over (`extern \"C\" fn() { \
             andweorc::progress!(\"name\") }`); or link both against one shared library that andweorc is in (a crate of type `dylib`, and \
             `-C prefer-dynamic`)"
        })
    }
}

/// Looks for other copies as shared objects come.
#[derive(Debug, Default)]
pub struct Copies {
    changes: Changes,
    found: Vec<Copy>,
}

impl Copies {
    /// Copies that were loaded since the last call and are still there, each once. Takes well under
    /// a microsecond if nothing was loaded or unloaded.
    pub fn new_ones(&mut self) -> Vec<Copy> {
        if loaded::changes() == self.changes {
            return Vec::new();
        }
        let (changes, objects) = loaded::objects();
        self.changes = changes;
        let mut found: Vec<Copy> = objects.iter().flat_map(others_in).collect();
        let program = objects.first().map(|program| &program.path);
        found.iter_mut().for_each(|copy| copy.is_in_program = program == Some(&copy.path));
        found.retain(|copy| !self.found.contains(copy));
        found.sort();
        found.dedup();
        self.found.extend(found.iter().cloned());
        found
    }
}

/// The copies in an object, this one left out.
fn others_in(object: &Object) -> Vec<Copy> {
    let own = &raw const OWN as u64;
    let mut others = Vec::new();
    for memory in object.notes() {
        let Ok(bytes) = loaded::read(memory) else { continue };
        for (at, version) in versions(&bytes) {
            if memory.start + at as u64 != own {
                others.push(Copy { path: object.path.clone(), version, is_in_program: false });
            }
        }
    }
    others
}

/// The versions in the notes of andweorc among others, with where each note begins.
fn versions(notes: &[u8]) -> Vec<(usize, String)> {
    let word = |at: usize| {
        let bytes = notes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(bytes)).ok()
    };
    let next = |at: usize| {
        let [owner, length, kind] = [word(at)?, word(at + 4)?, word(at + 8)?];
        let owner = at + 12..(at + 12).checked_add(owner)?;
        let begin = owner.end.checked_next_multiple_of(4)?;
        let text = begin..begin.checked_add(length)?;
        let end = text.end.checked_next_multiple_of(4)?;
        let is_copy = notes.get(owner)? == OWNER && kind == COPY as usize;
        let version = notes.get(text)?;
        let version = version.split(|byte| *byte == 0).next().filter(|_| is_copy);
        Some((version.map(|it| String::from_utf8_lossy(it).into_owned()), end))
    };
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((version, end)) = next(at) {
        found.extend(version.map(|version| (at, version)));
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note with these parts.
    fn note(owner: &[u8], kind: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [owner.len() as u32, text.len() as u32, kind] {
            bytes.extend(number.to_ne_bytes());
        }
        for part in [owner, text] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn notes_of_andweorc_are_found_among_others() {
        let gnu = note(b"GNU\0", 3, &[7; 20]);
        let ours = |version: &[u8]| note(&OWNER, COPY, version);
        let all = [gnu.clone(), ours(b"0.1.0\0\0\0"), gnu.clone(), ours(b"0.2.0")].concat();
        let at = [gnu.len(), 2 * gnu.len() + ours(b"0.1.0\0\0\0").len()];
        assert_eq!(versions(&all), [(at[0], "0.1.0".to_owned()), (at[1], "0.2.0".to_owned())]);
        assert_eq!(
            versions(&[note(&OWNER, 2, b"x"), note(b"andweorb\0\0\0\0", 1, b"x")].concat()),
            []
        );
    }

    #[test]
    fn torn_notes_end_the_reading() {
        let ours = note(&OWNER, COPY, b"0.1.0\0\0\0");
        for length in 0..ours.len() {
            assert_eq!(versions(&ours[..length]), [], "{length}");
        }
        assert_eq!(versions(&[0xff; 64]), []);
        assert_eq!(versions(&[vec![0; 24], ours].concat()).len(), 1, "padding is no end");
    }

    #[test]
    fn the_own_note_is_mapped_and_is_no_other_copy() {
        let (_, objects) = loaded::objects();
        let own = &raw const OWN as u64;
        let is_there = |memory: &&std::ops::Range<u64>| memory.contains(&own);
        let notes = objects[0].notes().find(is_there).expect("the linker keeps it");
        let here = versions(&loaded::read(notes).unwrap());
        let at = usize::try_from(own - notes.start).unwrap();
        assert!(here.contains(&(at, env!("CARGO_PKG_VERSION").to_owned())), "{here:?}");
        assert_eq!(here.len() - 1, others_in(&objects[0]).len());
    }

    #[test]
    fn copy_advice_depends_on_where_the_copy_lies() {
        let copy =
            |is_in_program| Copy { path: "x".into(), version: "0.2.0".into(), is_in_program };
        assert!(copy(true).to_string().contains("`cargo tree"), "{}", copy(true));
        assert!(copy(false).to_string().contains("progress!"), "{}", copy(false));
    }

    #[test]
    fn each_is_told_once() {
        let mut copies = Copies::default();
        copies.new_ones();
        let found = copies.found.clone();
        copies.changes = Changes::default();
        assert_eq!(copies.new_ones(), []);
        assert_eq!(copies.found, found);
    }
}
