//! **Internal to `andweorc`: no stability.** All of this crate is for its sibling crates, and any
//! version may change any of it. Its modules are hidden from the documentation; depend on the
//! facade crate `andweorc`, which exports what is for users.
//!
//! Where the threads of this process spend their CPU time: their call chains, sampled by perf
//! events or timers, and the functions and lines that these are. Nothing here knows of the virtual
//! clock; who samples hands in what a sample is to do. Functions, lines and what else is read from
//! object files needs the feature `symbols`, and perf events need `perf`.
//!
//! | module | job |
//! |---|---|
//! | [`source`], [`perf`], `events`, `ring` | what sends the signal of a sample, and what the kernel held back |
//! | [`counters`], [`counter_cells`] | events of the processor, each overflow of which is a sample |
//! | [`signal`] | the one signal that andweorc sends to threads, and its handler |
//! | [`slots`], [`queue`] | the threads that can be sampled, and their samples |
//! | [`stack_copy`] | copies of stacks, for chains that frame pointers do not lead along |
//! | [`thread_name`] | what threads are called |
//! | [`asked_stack`], [`asleep`] | one call chain of a thread, which runs or sleeps |
//! | [`own_chain`] | the call chain of a thread that asks for its own |
//! | `walk`, [`addresses`] | the call chain, and what is known of its addresses |
//! | [`late`] | how late the handler comes |
//! | [`period`], [`descriptors`] | how often a thread is sampled; how many files that may take |
//! | `symbols`, [`charged`], [`names`], `loaded` | functions and lines of addresses, in whatever object is loaded |
//! | `without_symbols`, `without_perf` | the same faces where these features are left out: errors |
//! | [`binary`], [`copies`] | the file of the program; copies of andweorc in other objects |
//! | [`clock`](mod@clock), [`weak_symbol`](mod@weak_symbol) | real time and CPU time; functions in the place of the C library's |

#[doc(hidden)]
pub mod addresses;
#[doc(hidden)]
pub mod asked_stack;
#[doc(hidden)]
pub mod asleep;
#[doc(hidden)]
pub mod binary;
#[doc(hidden)]
pub mod charged;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod copies;
#[doc(hidden)]
pub mod counter_cells;
#[doc(hidden)]
pub mod counters;
#[doc(hidden)]
pub mod descriptors;
#[cfg(feature = "perf")]
mod events;
#[doc(hidden)]
pub mod late;
mod loaded;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod own_chain;
#[doc(hidden)]
pub mod perf;
#[doc(hidden)]
pub mod period;
mod plain_thread_local;
#[doc(hidden)]
pub mod queue;
#[cfg(feature = "perf")]
mod ring;
#[doc(hidden)]
pub mod signal;
#[doc(hidden)]
pub mod slots;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod stack_copy;
#[cfg(feature = "symbols")]
#[doc(hidden)]
pub mod symbols;
#[doc(hidden)]
pub mod thread_name;
mod walk;
#[doc(hidden)]
pub mod weak_symbol;
#[cfg(not(feature = "perf"))]
mod without_perf;
#[cfg(not(feature = "symbols"))]
#[doc(hidden)]
pub mod without_symbols;

#[cfg(not(feature = "perf"))]
use without_perf as events;
#[cfg(not(feature = "symbols"))]
#[doc(hidden)]
pub use without_symbols as symbols;
