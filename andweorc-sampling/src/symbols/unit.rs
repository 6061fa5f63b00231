//! One unit of debug information: what is at an address of it.

use super::image::Slice;
use gimli::{AttributeValue, DebugInfoOffset, Dwarf, UnitOffset};
use std::sync::Arc;

/// A frame as the debug information has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RawFrame {
    /// The function's name.
    pub(super) name: Option<RawName>,
    /// Its file, and the line in it.
    pub(super) file: Option<String>,
    /// Where the path of the file within the workspace begins; 0 where it is not in there.
    pub(super) inside: usize,
    pub(super) line: Option<u32>,
    /// Whether rustc compiled it.
    pub(super) is_rust: bool,
}

/// A function's name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RawName {
    /// Mangled: with all that its path has.
    Linked(String),
    /// Its last part only, as line tables have it.
    Bare(String),
}

/// A unit that was looked at: where its functions are and where their lines begin. The rest is
/// parsed anew for each address.
pub(super) struct Unit {
    /// That of the program, which has the lines.
    skeleton: gimli::Unit<Slice>,
    /// Unit that has the functions, when they were split off.
    split: Option<(Arc<Dwarf<Slice>>, gimli::Unit<Slice>)>,
    functions: Vec<Function>,
    lines: Option<Lines>,
}

struct Function {
    begin: u64,
    end: u64,
    at: UnitOffset,
}

struct Lines {
    program: gimli::CompleteLineProgram<Slice>,
    sequences: Vec<gimli::LineSequence<Slice>>,
}

/// An inlined call, on the way from the function at an address to what is inlined there.
struct Inlined {
    name: Option<RawName>,
    file: Option<u64>,
    line: Option<u32>,
}

/// How names in other units are found.
pub(super) type Elsewhere<'a> = &'a dyn Fn(DebugInfoOffset) -> Option<RawName>;

/// How far a name may refer to another.
const DEEPEST: u32 = 16;

impl Unit {
    /// Parses where things are.
    pub(super) fn new(
        dwarf: &Dwarf<Slice>,
        skeleton: gimli::Unit<Slice>,
        split: Option<Arc<Dwarf<Slice>>>,
    ) -> gimli::Result<Unit> {
        let split = match split {
            Some(sections) => match sections.units().next()? {
                Some(header) => {
                    let mut unit = sections.unit(header)?;
                    unit.copy_relocated_attributes(&skeleton);
                    Some((sections, unit))
                }
                None => None,
            },
            None => None,
        };
        let lines = match skeleton.line_program.clone() {
            Some(program) => {
                let (program, mut sequences) = program.sequences()?;
                sequences.sort_unstable_by_key(|sequence| sequence.start);
                Some(Lines { program, sequences })
            }
            None => None,
        };
        let mut unit = Unit { skeleton, split, functions: Vec::new(), lines };
        unit.functions = unit.find_functions(dwarf)?;
        Ok(unit)
    }

    /// Returns the unit that has the functions.
    fn body<'a>(&'a self, dwarf: &'a Dwarf<Slice>) -> gimli::UnitRef<'a, Slice> {
        match &self.split {
            Some((dwarf, unit)) => unit.unit_ref(dwarf),
            None => self.skeleton.unit_ref(dwarf),
        }
    }

    fn find_functions(&self, dwarf: &Dwarf<Slice>) -> gimli::Result<Vec<Function>> {
        let body = self.body(dwarf);
        let mut functions = Vec::new();
        let mut entries = body.entries_raw(None)?;
        while !entries.is_empty() {
            let at = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            if abbreviation.tag() == gimli::DW_TAG_subprogram {
                let mut place = Ranges::default();
                for spec in abbreviation.attributes() {
                    place.see(&entries.read_attribute(*spec)?);
                }
                let add = |begin, end| functions.push(Function { begin, end, at });
                place.each(body, add)?;
            } else {
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
        functions.sort_unstable_by_key(|function| function.begin);
        functions.shrink_to_fit();
        Ok(functions)
    }

    /// The frames at an address, innermost first; empty when it is not of this unit.
    pub(super) fn frames(
        &self,
        dwarf: &Dwarf<Slice>,
        probe: u64,
        elsewhere: Elsewhere<'_>,
    ) -> gimli::Result<Vec<RawFrame>> {
        let (mut file, mut line, exact) = self.line(dwarf, probe)?;
        let after = self.functions.partition_point(|function| function.begin <= probe);
        let Some(function) = self.functions[..after].last().filter(|it| probe < it.end) else {
            return Ok(if file.is_some() {
                vec![self.frame(None, file, line)]
            } else {
                Vec::new()
            });
        };
        let body = self.body(dwarf);
        let (name, inlined) = calls_at(body, function.at, probe, elsewhere)?;
        if !exact && !inlined.is_empty() {
            // The line before it may be that of another function, inlined or not.
            (file, line) = (None, None);
        }
        let mut frames = Vec::with_capacity(inlined.len() + 1);
        for call in inlined.into_iter().rev() {
            frames.push(self.frame(call.name, file, line));
            file = call.file.and_then(|file| self.file(dwarf, file));
            line = call.line;
        }
        frames.push(self.frame(name, file, line));
        Ok(frames)
    }

    fn frame(&self, name: Option<RawName>, file: Option<String>, line: Option<u32>) -> RawFrame {
        let inside = || {
            let path = file.as_deref()?.strip_prefix(&self.workspace()?)?.strip_prefix('/')?;
            Some(file.as_ref()?.len() - path.len())
        };
        let inside = inside().unwrap_or(0);
        RawFrame { name, file, inside, line, is_rust: self.is_rust() }
    }

    /// The folder of the workspace that the unit is of: cargo compiles what is in there from there,
    /// and by paths relative to it; all else by whole paths. So does who built the compiler with
    /// std.
    fn workspace(&self) -> Option<String> {
        let name = self.name()?;
        let folder = self.skeleton.comp_dir?.to_string_lossy().into_owned();
        (self.is_rust() && !name.starts_with('/') && !folder.starts_with("/rustc/"))
            .then_some(folder)
    }

    fn is_rust(&self) -> bool {
        self.name().is_some_and(|name| name.contains("/@/"))
    }

    /// Name of the unit; rustc names units as `src/main.rs/@/shop.1a2b-cgu.0`.
    fn name(&self) -> Option<String> {
        let split = self.split.as_ref().and_then(|(_, unit)| unit.name);
        Some(split.or(self.skeleton.name)?.to_string_lossy().into_owned())
    }

    /// File and line of an address, and whether they are its own: of code that has no line they are
    /// those of the code before it.
    fn line(
        &self,
        dwarf: &Dwarf<Slice>,
        probe: u64,
    ) -> gimli::Result<(Option<String>, Option<u32>, bool)> {
        let Some(lines) = &self.lines else { return Ok((None, None, true)) };
        let after = lines.sequences.partition_point(|sequence| sequence.start <= probe);
        let sequence = lines.sequences[..after].last().filter(|it| probe < it.end);
        let Some(sequence) = sequence else { return Ok((None, None, true)) };
        let mut rows = lines.program.resume_from(sequence);
        let (mut found, mut exact) = (None, false);
        while let Some((_, row)) = rows.next_row()? {
            if row.address() > probe {
                break;
            }
            exact = row.line().is_some();
            if let Some(line) = row.line() {
                found = Some((row.file_index(), line.get()));
            }
        }
        let file = found.and_then(|(file, _)| self.file(dwarf, file));
        Ok((file, found.and_then(|(_, line)| u32::try_from(line).ok()), exact))
    }

    /// The path of a file of the line program.
    fn file(&self, dwarf: &Dwarf<Slice>, index: u64) -> Option<String> {
        let header = self.lines.as_ref()?.program.header();
        let file = header.file(index)?;
        let text = |value| {
            let text = dwarf.attr_string(&self.skeleton, value).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        let mut path =
            self.skeleton.comp_dir.map_or(String::new(), |dir| dir.to_string_lossy().into_owned());
        // Before DWARF 5, folder 0 is that of the compilation, and is not in the table.
        if file.directory_index() != 0 || header.version() >= 5 {
            push(&mut path, &file.directory(header).and_then(text)?);
        }
        push(&mut path, &text(file.path_name())?);
        Some(path)
    }

    /// The folder of the unit's first file, and its crate.
    pub(super) fn root(&self) -> Option<(String, String)> {
        let name = self.name()?;
        let (file, unit) = name.split_once("/@/")?;
        let mut path =
            self.skeleton.comp_dir.map_or(String::new(), |dir| dir.to_string_lossy().into_owned());
        push(&mut path, file);
        path.truncate(path.rfind("/src/")? + "/src/".len());
        Some((path, unit.split('.').next()?.to_owned()))
    }
}

/// The name of the function at `at`, and the calls inlined into it at an address, the outermost
/// first.
fn calls_at(
    unit: gimli::UnitRef<'_, Slice>,
    at: UnitOffset,
    probe: u64,
    elsewhere: Elsewhere<'_>,
) -> gimli::Result<(Option<RawName>, Vec<Inlined>)> {
    let name = name_at(unit, at, elsewhere, DEEPEST);
    let mut calls = Vec::new();
    let mut entries = unit.entries_raw(Some(at))?;
    let top = entries.next_depth();
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok((name, calls)) };
    entries.skip_attributes(abbreviation.attributes())?;
    // What lies deeper than this is inside of something that is not at the address.
    let mut skipped = isize::MAX;
    while !entries.is_empty() && entries.next_depth() > top {
        let (at, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if depth <= skipped {
            skipped = isize::MAX;
        }
        match abbreviation.tag() {
            gimli::DW_TAG_inlined_subroutine if skipped == isize::MAX => {
                let (mut place, mut file, mut line) = (Ranges::default(), None, None);
                for spec in abbreviation.attributes() {
                    let attribute = entries.read_attribute(*spec)?;
                    place.see(&attribute);
                    match attribute.name() {
                        gimli::DW_AT_call_file => {
                            file = match attribute.value() {
                                AttributeValue::FileIndex(file) => Some(file),
                                value => value.udata_value(),
                            };
                        }
                        gimli::DW_AT_call_line => {
                            let value = attribute.udata_value();
                            line = value
                                .and_then(|line| u32::try_from(line).ok())
                                .filter(|&it| it > 0);
                        }
                        _ => {}
                    }
                }
                let mut inside = false;
                place.each(unit, |begin, end| inside |= (begin..end).contains(&probe))?;
                if inside {
                    let name = name_at(unit, at, elsewhere, DEEPEST);
                    calls.push(Inlined { name, file, line });
                } else {
                    skipped = depth;
                }
            }
            tag => {
                entries.skip_attributes(abbreviation.attributes())?;
                if tag == gimli::DW_TAG_subprogram && skipped == isize::MAX {
                    skipped = depth;
                }
            }
        }
    }
    Ok((name, calls))
}

/// The name of the function at `at`, or of what it is an instance of.
pub(super) fn name_at(
    unit: gimli::UnitRef<'_, Slice>,
    at: UnitOffset,
    elsewhere: Elsewhere<'_>,
    deepest: u32,
) -> Option<RawName> {
    let mut entries = unit.entries_raw(Some(at)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let (mut bare, mut origin) = (None, None);
    let text = |value| Some(unit.attr_string(value).ok()?.to_string_lossy().into_owned());
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                if let Some(name) = text(attribute.value()) {
                    return Some(RawName::Linked(name));
                }
            }
            gimli::DW_AT_name => bare = text(attribute.value()),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                origin = Some(attribute.value());
            }
            _ => {}
        }
    }
    let original = || match origin? {
        AttributeValue::UnitRef(at) if deepest > 0 => name_at(unit, at, elsewhere, deepest - 1),
        AttributeValue::DebugInfoRef(at) if deepest > 0 => elsewhere(at),
        _ => None,
    };
    original().or_else(|| bare.map(RawName::Bare))
}

/// Where an entry is.
#[derive(Default)]
pub(super) struct Ranges {
    low: Option<AttributeValue<Slice>>,
    high: Option<AttributeValue<Slice>>,
    ranges: Option<AttributeValue<Slice>>,
}

impl Ranges {
    /// Takes note of an attribute.
    pub(super) fn see(&mut self, attribute: &gimli::Attribute<Slice>) {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high = Some(attribute.value()),
            gimli::DW_AT_ranges => self.ranges = Some(attribute.value()),
            _ => {}
        }
    }

    /// Calls `add` with begin and end of each range with something in it.
    pub(super) fn each(
        self,
        unit: gimli::UnitRef<'_, Slice>,
        mut add: impl FnMut(u64, u64),
    ) -> gimli::Result<()> {
        let mut add = |begin, end| {
            if begin < end {
                add(begin, end);
            }
        };
        if let Some(ranges) = self.ranges
            && let Some(mut ranges) = unit.attr_ranges(ranges)?
        {
            while let Some(range) = ranges.next()? {
                add(range.begin, range.end);
            }
            return Ok(());
        }
        let Some(low) = self.low.map(|low| unit.attr_address(low)).transpose()?.flatten() else {
            return Ok(());
        };
        let high = match self.high {
            Some(AttributeValue::Udata(size)) => Some(low.wrapping_add(size)),
            Some(high) => unit.attr_address(high)?,
            None => None,
        };
        add(low, high.unwrap_or(low));
        Ok(())
    }
}

/// Goes on with a path, or begins anew with one from the root.
fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
