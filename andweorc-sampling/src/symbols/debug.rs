//! The debug information of a program, parsed unit by unit.
//!
//! Units are found by `.debug_aranges`, which is small, so that a look-up touches one unit only;
//! where the address is in none, the others are gone through once. Kept of a unit are the places of
//! its functions and of their lines.

use super::image::{Image, Slice, empty, package_of};
use super::unit::{Elsewhere, Ranges, RawFrame, RawName, Unit, name_at};
use gimli::{DebugInfoOffset, Dwarf, DwarfPackage};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// After so many look-ups the pages that they touched are given back.
const RELEASE_AFTER: u32 = 64;

/// Where a unit has code.
struct Range {
    begin: u64,
    end: u64,
    unit: DebugInfoOffset,
}

/// The debug information of a program.
pub(super) struct Debug {
    image: &'static Image,
    dwarf: Dwarf<Slice>,
    package: Option<(&'static Image, DwarfPackage<Slice>)>,
    /// Sorted by begin.
    ranges: Vec<Range>,
    /// Whether `ranges` has all units, not only those of `.debug_aranges`.
    complete: bool,
    units: HashMap<DebugInfoOffset, Option<Unit>>,
    /// Where each unit begins, when a name in another one was asked for.
    headers: OnceCell<Vec<DebugInfoOffset>>,
    /// Units that only names were asked of.
    named: RefCell<HashMap<DebugInfoOffset, Option<Arc<gimli::Unit<Slice>>>>>,
    /// Files with split-off units.
    split: Vec<&'static Image>,
    lookups: u32,
}

impl Debug {
    /// Of a file with debug information: the program at `path`, or what its debug information was
    /// moved to.
    pub(super) fn new(image: &'static Image, path: &Path) -> gimli::Result<Debug> {
        let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(image.section(id.name())))?;
        let package = Image::open(&package_of(path)).ok().and_then(|image| {
            let section = |id: gimli::SectionId| {
                Ok::<_, gimli::Error>(id.dwo_name().map_or(empty(), |name| image.section(name)))
            };
            Some((image, DwarfPackage::load(section, empty()).ok()?))
        });
        let mut debug = Debug {
            image,
            dwarf,
            package,
            ranges: Vec::new(),
            complete: false,
            units: HashMap::new(),
            headers: OnceCell::new(),
            named: RefCell::default(),
            split: Vec::new(),
            lookups: 0,
        };
        // What can't be read of it is found the long way.
        if debug.index().is_err() {
            debug.ranges.clear();
        }
        debug.sort();
        Ok(debug)
    }

    /// The frames at an address of the file, innermost first, and the root of the unit. Empty where
    /// nothing is known.
    pub(super) fn frames(&mut self, probe: u64) -> (Vec<RawFrame>, Option<(String, String)>) {
        self.release();
        if !self.is_unchanged() {
            return Default::default();
        }
        let found = self.frames_of_known(probe);
        if !found.0.is_empty() || self.complete {
            return found;
        }
        self.complete = true;
        self.index_rest();
        self.sort();
        self.frames_of_known(probe)
    }

    fn frames_of_known(&mut self, probe: u64) -> (Vec<RawFrame>, Option<(String, String)>) {
        let after = self.ranges.partition_point(|range| range.begin <= probe);
        let range = self.ranges[..after].last().filter(|range| probe < range.end);
        let Some(at) = range.map(|range| range.unit) else { return Default::default() };
        if !self.units.contains_key(&at) {
            let unit = self.unit(at);
            self.units.insert(at, unit);
        }
        let Some(unit) = &self.units[&at] else { return Default::default() };
        let elsewhere: Elsewhere<'_> = &|at| self.name(at);
        (unit.frames(&self.dwarf, probe, elsewhere).unwrap_or_default(), unit.root())
    }

    /// Whether all files are as they were.
    fn is_unchanged(&self) -> bool {
        let package = self.package.iter().map(|(image, _)| *image);
        [self.image]
            .into_iter()
            .chain(package)
            .chain(self.split.iter().copied())
            .all(Image::is_unchanged)
    }

    fn release(&mut self) {
        if self.lookups.is_multiple_of(RELEASE_AFTER) {
            self.image.release();
            self.package.iter().for_each(|(image, _)| image.release());
        }
        self.lookups = self.lookups.wrapping_add(1);
    }

    fn sort(&mut self) {
        self.ranges.sort_unstable_by_key(|range| range.begin);
        // Neighbours are most often of one unit.
        self.ranges.dedup_by(|next, range| {
            let joined = range.unit == next.unit && next.begin <= range.end;
            if joined {
                range.end = range.end.max(next.end);
            }
            joined
        });
        self.ranges.shrink_to_fit();
    }

    fn index(&mut self) -> gimli::Result<()> {
        let mut headers = self.dwarf.debug_aranges.headers();
        while let Some(header) = headers.next()? {
            let mut entries = header.entries();
            while let Some(entry) = entries.next().transpose() {
                let Ok(entry) = entry else { continue };
                let range = entry.range();
                // What the linker left out is at 0.
                if range.begin != 0 && range.begin < range.end {
                    let unit = header.debug_info_offset();
                    self.ranges.push(Range { begin: range.begin, end: range.end, unit });
                }
            }
        }
        Ok(())
    }

    /// Goes through all units; those that can't be read have no frames.
    fn index_rest(&mut self) {
        let known: HashSet<DebugInfoOffset> = self.ranges.iter().map(|range| range.unit).collect();
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Some(at) = header.debug_info_offset().filter(|at| !known.contains(at)) else {
                continue;
            };
            let ranges = &mut self.ranges;
            let add = |begin, end| ranges.push(Range { begin, end, unit: at });
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let unit = unit.unit_ref(&self.dwarf);
            place_of(unit).and_then(|place| place.each(unit, add)).unwrap_or_default();
        }
    }

    fn unit(&mut self, at: DebugInfoOffset) -> Option<Unit> {
        let header = self.dwarf.unit_header(at).ok()?;
        let skeleton = self.dwarf.unit(header).ok()?;
        let split = skeleton.dwo_id.and_then(|id| self.split_off(&skeleton, id));
        Unit::new(&self.dwarf, skeleton, split).ok()
    }

    /// Debug information that was split off a unit: in the package, or in a file of its own.
    fn split_off(
        &mut self,
        skeleton: &gimli::Unit<Slice>,
        id: gimli::DwoId,
    ) -> Option<Arc<Dwarf<Slice>>> {
        if let Some((_, package)) = &self.package
            && let Ok(Some(dwarf)) = package.find_cu(id, &self.dwarf)
        {
            return Some(Arc::new(dwarf));
        }
        let name = self.dwarf.attr_string(skeleton, skeleton.dwo_name().ok()??).ok()?;
        let folder =
            skeleton.comp_dir.map_or(PathBuf::new(), |dir| PathBuf::from(&*dir.to_string_lossy()));
        let image = Image::open(&folder.join(&*name.to_string_lossy())).ok()?;
        let section = |id: gimli::SectionId| {
            Ok::<_, gimli::Error>(id.dwo_name().map_or(empty(), |name| image.section(name)))
        };
        let mut dwarf = Dwarf::load(section).ok()?;
        let header = dwarf.units().next().ok()??;
        if dwarf.unit(header).ok()?.dwo_id != Some(id) {
            return None;
        }
        dwarf.make_dwo(&self.dwarf);
        self.split.push(image);
        Some(Arc::new(dwarf))
    }

    /// The name of a function in any unit.
    fn name(&self, at: DebugInfoOffset) -> Option<RawName> {
        let headers = self.headers.get_or_init(|| {
            let mut headers = Vec::new();
            let mut units = self.dwarf.units();
            while let Ok(Some(header)) = units.next() {
                headers.extend(header.debug_info_offset());
            }
            headers
        });
        let begin = *headers[..headers.partition_point(|begin| begin.0 <= at.0)].last()?;
        let unit = self
            .named
            .borrow_mut()
            .entry(begin)
            .or_insert_with(|| {
                self.dwarf.unit(self.dwarf.unit_header(begin).ok()?).ok().map(Arc::new)
            })
            .clone()?;
        // A further reference to another unit is not followed.
        name_at(unit.unit_ref(&self.dwarf), at.to_unit_offset(&unit.header)?, &|_| None, 1)
    }
}

/// Where a unit is.
fn place_of(unit: gimli::UnitRef<'_, Slice>) -> gimli::Result<Ranges> {
    let mut place = Ranges::default();
    let mut entries = unit.entries_raw(None)?;
    if let Some(abbreviation) = entries.read_abbreviation()? {
        for spec in abbreviation.attributes() {
            place.see(&entries.read_attribute(*spec)?);
        }
    }
    Ok(place)
}
