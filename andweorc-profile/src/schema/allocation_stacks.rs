//! Where memory is allocated: call chains of sampled allocations.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// Call chains of sampled allocations over the stretch before the first experiment, by target.
/// Older profiles have none, and so have programs with another allocator than andweorc's.
///
/// An allocation is sampled by its size: one in about 512 KiB of each thread. Bytes and counts are
/// what the samples stand for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationStacksRecord {
    /// Length of the stretch in real ns.
    pub real_ns: u64,
    /// The functions and lines of the chains, by index.
    pub frames: Vec<AllocationFrame>,
    /// The chains of each part of the program.
    pub groups: Vec<AllocationGroup>,
    /// Samples in all.
    pub samples: u64,
    /// Samples of which no chain was kept, since there were too many: they are in no group.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Samples that could not be told apart, and count as the beginning of their chain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merged: u64,
    /// Samples whose chain is longer than is kept: the outermost are not in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Samples whose chain ended before the start of its task or thread, at a function without a
    /// frame pointer or on a thread that takes no part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_early: u64,
}

/// A function, and the line in it that calls or allocates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocationFrame {
    /// Its name. Those in brackets stand for what is not known.
    pub name: String,
    /// Source file, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether it is in scope: of the program's own crates, unless the scope says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// The call chains of one target, or of a thread outside of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationGroup {
    /// Id of the innermost target; `None` outside of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// The name of the thread, where it was outside of all targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The chains and their beginnings, each after the one that it goes on from.
    pub stacks: Vec<AllocationNode>,
}

/// A call chain, or the beginning of some: an array of five numbers in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Numbers", into = "Numbers")]
pub struct AllocationNode {
    /// Index of the chain of the caller; `None` where there is none.
    pub parent: Option<u32>,
    /// Index of its innermost frame.
    pub frame: u32,
    /// Samples in that frame itself, not in what it calls.
    pub samples: u64,
    /// Bytes that these stand for.
    pub bytes: u64,
    /// Allocations that these stand for.
    pub count: u64,
}

type Numbers = (Option<u32>, u32, u64, u64, u64);

impl From<Numbers> for AllocationNode {
    fn from((parent, frame, samples, bytes, count): Numbers) -> AllocationNode {
        AllocationNode { parent, frame, samples, bytes, count }
    }
}

impl From<AllocationNode> for Numbers {
    fn from(node: AllocationNode) -> Numbers {
        (node.parent, node.frame, node.samples, node.bytes, node.count)
    }
}
