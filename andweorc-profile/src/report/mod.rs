//! Reports: what a profile says, for people and for machines.
//!
//! | module | what |
//! |---|---|
//! | `text` | the report for people |
//! | `json` | the report for machines |
//! | `sections` | the targets by verdict, and how a target is called |
//! | `advice` | patterns that people meet, with their evidence |
//! | [`caveats`] | what makes a report less sure |
//! | `load` | the load in words, and the warning of one that does not wait |
//! | `requests` | single requests, and what they spent their time in |
//! | `waits` | the longest waits that nobody tested |
//! | `wait_sites` | the locks and channels at which tasks wait for each other |
//! | `allocations` | the targets whose allocations stand out |
//! | `events` | events of the processor |
//! | `long_polls` | tasks that keep their worker from all others |
//! | `next` | what to do next |
//! | `notes` | what the user should know |
//! | `words` | numbers with their units |

mod advice;
mod allocations;
mod between;
pub mod caveats;
mod events;
mod json;
mod load;
mod long_polls;
mod next;
mod notes;
mod requests;
mod sections;
mod text;
mod wait_sites;
mod waits;
mod words;

pub use advice::{Advice, Pattern, advice};
pub use between::between_runs;
pub use events::{event_label, event_losses};
pub use json::{REPORT_VERSION, json};
pub use load::{load_name, load_warning};
pub use long_polls::{LongPollWords, long_polls, long_polls_left_out, tested_polls};
pub use next::{Next, next};
pub use notes::{notes, real_ns, service_notes, why_nothing};
pub use requests::{Request, requests};
pub use sections::{
    Section, allocation_label, cpu_share, fills_time, label, named, needs, sections,
};
pub use text::{Looks, text};
pub use wait_sites::{place as wait_place, wait_sites};
pub use waits::{Wait, untested_waits};
pub use words::{MAIN_METRICS, change, counted, date, metric_name, tenths, value, values};
