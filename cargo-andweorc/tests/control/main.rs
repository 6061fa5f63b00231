//! The commands around profiles: `diff`, `ci`, `merge`, `list`, `doctor`, `completions`, `man`, and
//! `run --compare`.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod ci;
mod diff;
mod errors;
mod help;
mod made;
mod page;
mod revisions;
#[path = "../common/services.rs"]
mod services;
mod text;
mod together;
mod tools;
