//! Things with a number each, as formats of profiles have them: strings, frames, attributes.

use std::collections::HashMap;
use std::hash::Hash;

/// Each thing once, in the order in which it was first asked for.
#[derive(Debug)]
pub(super) struct Table<T> {
    items: Vec<T>,
    index: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// A table of these things.
    pub(super) fn of(items: impl IntoIterator<Item = T>) -> Table<T> {
        let mut table = Table { items: Vec::new(), index: HashMap::new() };
        for item in items {
            table.index(&item);
        }
        table
    }

    /// The number of a thing, which is put in if it is new.
    pub(super) fn index(&mut self, item: &T) -> usize {
        if let Some(index) = self.index.get(item) {
            return *index;
        }
        self.items.push(item.clone());
        self.index.insert(item.clone(), self.items.len() - 1);
        self.items.len() - 1
    }

    /// All things by their number.
    pub(super) fn into_items(self) -> Vec<T> {
        self.items
    }
}

impl Table<String> {
    /// A table of strings, the first of which is the empty one, as protobuf formats want it.
    pub(super) fn of_strings() -> Table<String> {
        Table::of([String::new()])
    }

    /// The number of a string, as protobuf formats write it.
    pub(super) fn text(&mut self, text: &str) -> i32 {
        let index = self.index(&text.to_owned());
        i32::try_from(index).expect("fewer strings than memory has room for")
    }
}
