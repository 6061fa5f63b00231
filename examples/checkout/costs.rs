//! Cost of each part of a checkout. The numbers decide what the example shows:
//!
//! - `stock` works 700 us under a lock and then, still under it, waits 600 us for the journal. So
//!   no more than about 700 checkouts a second get through, and that is the bottleneck of a shop
//!   that leaves a third of two cores idle.
//! - `render` burns the most CPU time, but no reply waits for it.
//! - `payment` takes longest, 1 to 3 ms, but any number of payments wait side by side.

use crate::common::work::{Cost, Pace};

/// The parts whose cost `--truth` can reduce.
pub(crate) const PARTS: [&str; 6] = ["parse", "fraud", "stock", "journal", "payment", "render"];

/// Costs of the parts of a checkout: the first three and `render` are work, the others are waits
/// for the outside world, in microseconds.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) parse: Cost,
    pub(crate) fraud: Cost,
    pub(crate) stock: Cost,
    pub(crate) journal: Cost,
    pub(crate) payment: Cost,
    /// Of one of the [`SECTIONS`](Costs::SECTIONS) of a receipt.
    pub(crate) render: Cost,
}

impl Costs {
    /// How many sections a receipt has.
    pub(crate) const SECTIONS: u32 = 40;

    pub(crate) fn new(pace: Pace) -> Costs {
        Costs {
            parse: Cost::work(30, pace),
            fraud: Cost::work(90, pace),
            stock: Cost::work(700, pace),
            journal: Cost::new(600),
            payment: Cost::new(2000),
            render: Cost::work(840 / Costs::SECTIONS, pace),
        }
    }

    /// The cost of one of [`PARTS`].
    pub(crate) fn of(&self, part: &str) -> &Cost {
        match part {
            "parse" => &self.parse,
            "fraud" => &self.fraud,
            "stock" => &self.stock,
            "journal" => &self.journal,
            "payment" => &self.payment,
            "render" => &self.render,
            other => unreachable!("the command line lets no part {other} through"),
        }
    }
}
