//! Tables whose first column, names, is shortened so that the rest fits.

use super::{Looks, Tone, WIDTH};
use crate::report::words::shortened;
use textwrap::core::display_width;

/// Between columns, and before names.
const GAP: usize = 2;

/// Columns that a name has at least.
const LEAST_NAME: usize = 12;

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// Stands behind the name where there is room.
    pub(super) place: Option<String>,
    /// The first row, whose name is the table's.
    pub(super) is_heading: bool,
    pub(super) cells: Vec<Cell>,
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
    is_right: bool,
}

impl Cell {
    /// A word.
    pub(super) fn left(text: String) -> Cell {
        Cell { text, tone: Tone::Plain, is_right: false }
    }

    /// A number.
    pub(super) fn right(text: String) -> Cell {
        Cell { text, tone: Tone::Plain, is_right: true }
    }

    pub(super) fn in_tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
}

impl Row {
    /// The first row of a table, with what stands above the columns.
    pub(super) fn heading(name: &str, cells: impl IntoIterator<Item = Cell>) -> Row {
        let cells = cells.into_iter().map(|cell| cell.in_tone(Tone::Aside)).collect();
        Row { name: name.to_owned(), place: None, is_heading: true, cells }
    }

    /// The name with its place in so many columns; the place goes before the name gets very short.
    fn name_within(&self, most: usize) -> String {
        match &self.place {
            Some(place) if display_width(&self.name) + 1 + display_width(place) <= most => {
                format!("{} {place}", self.name)
            }
            Some(place) if display_width(place) + 1 + LEAST_NAME <= most => {
                format!("{} {place}", shortened(&self.name, most - display_width(place) - 1))
            }
            _ => shortened(&self.name, most),
        }
    }
}

/// The lines of a table.
pub(super) fn lines(rows: &[Row], looks: Looks) -> Vec<String> {
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let width = |i: usize| {
        rows.iter().filter_map(|row| row.cells.get(i)).map(|cell| display_width(&cell.text)).max()
    };
    let mut widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    let room = |widths: &[usize]| {
        WIDTH.saturating_sub(widths.iter().map(|width| width + GAP).sum::<usize>() + GAP)
    };
    // Numbers are never cut: what has no room at all is left to the other forms of the report.
    while widths.len() > 2 && room(&widths) < LEAST_NAME {
        widths.pop();
    }
    let most = room(&widths).max(LEAST_NAME);
    let names: Vec<String> = rows
        .iter()
        .map(|row| match row.is_heading {
            true => row.name.clone(),
            false => format!("{:GAP$}{}", "", row.name_within(most)),
        })
        .collect();
    let longest = names.iter().map(|name| display_width(name)).max().unwrap_or(0);
    rows.iter()
        .zip(&names)
        .map(|(row, name)| {
            let tone = if row.is_heading { Tone::Heading } else { Tone::Plain };
            let mut line = looks.paint(tone, name) + &pad(name, longest);
            for (cell, &width) in row.cells.iter().zip(&widths) {
                let (text, pad) = (looks.paint(cell.tone, &cell.text), pad(&cell.text, width));
                line += &" ".repeat(GAP);
                line += &if cell.is_right { pad + &text } else { text + &pad };
            }
            line
        })
        .collect()
}

/// The spaces that are missing to so many columns.
fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(display_width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_fit_and_numbers_are_whole(
            name in "\\PC{0,120}", place in "[a-z]{1,30}", number in "[0-9]{1,20}",
        ) {
            let row = Row {
                name: crate::plain::name(&name).into_owned(),
                place: Some(place),
                is_heading: false,
                cells: vec![Cell::right(number.clone()), Cell::left("x".repeat(20))],
            };
            let lines = lines(&[Row::heading("ALL", []), row], Looks::default());
            prop_assert!(display_width(&lines[1]) <= WIDTH, "{}", lines[1]);
            prop_assert!(lines[1].contains(&number));
        }
    }
}
