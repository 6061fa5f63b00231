//! The symbol table: names of functions where nothing better is known.

use super::image::Image;
use crate::names;
use andweorc_profile::settings::is_std;
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex, SymbolKind};

/// The functions of a symbol table, sorted by address.
#[derive(Default)]
pub(super) struct Table {
    image: Option<&'static Image>,
    functions: Vec<Function>,
}

/// Where a function begins, how long it is, and which symbol it has. Of a million functions these
/// are 16 MB.
struct Function {
    begin: u64,
    length: u32,
    symbol: u32,
}

impl Table {
    /// That of the first file that has one: `.symtab`, else what a stripped program exports.
    pub(super) fn of(images: impl Iterator<Item = &'static Image> + Clone) -> Table {
        let full = images.clone().find(|image| image.object().symbol_table().is_some());
        let Some(image) = full.or_else(|| images.clone().next()) else { return Table::default() };
        let Some(table) = table_of(image) else { return Table::default() };
        let mut functions: Vec<Function> = table
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined())
            .filter_map(|symbol| {
                Some(Function {
                    begin: symbol.address(),
                    length: u32::try_from(symbol.size()).ok()?,
                    symbol: u32::try_from(symbol.index().0).ok()?,
                })
            })
            .collect();
        functions.sort_unstable_by_key(|function| (function.begin, function.length));
        functions.shrink_to_fit();
        Table { image: Some(image), functions }
    }

    /// The mangled name of the function at an address.
    pub(super) fn name(&self, probe: u64) -> Option<&'static str> {
        self.image.filter(|image| image.is_unchanged())?;
        let after = self.functions.partition_point(|function| function.begin <= probe);
        let function = self.functions[..after].last()?;
        // Functions of assembly have no length.
        let inside = probe - function.begin < u64::from(function.length) || function.length == 0;
        if inside { self.name_of(function) } else { None }
    }

    /// The crate of `main`.
    pub(super) fn home(&self) -> Option<String> {
        let names = self.functions.iter().filter_map(|function| self.name_of(function));
        names.filter(|raw| raw.contains("4main")).find_map(|raw| {
            let name = names::plain(raw);
            let package = name.strip_suffix("::main")?;
            (!package.contains("::") && !is_std(package)).then(|| package.to_owned())
        })
    }

    fn name_of(&self, function: &Function) -> Option<&'static str> {
        let index = SymbolIndex(usize::try_from(function.symbol).ok()?);
        table_of(self.image?)?.symbol_by_index(index).ok()?.name().ok()
    }
}

fn table_of(image: &'static Image) -> Option<object::SymbolTable<'static, 'static>> {
    image.object().symbol_table().or_else(|| image.object().dynamic_symbol_table())
}
