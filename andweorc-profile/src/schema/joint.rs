//! The run of several programs that a run was part of.

use serde::{Deserialize, Serialize};

/// A run of several programs, in which each experiment was held in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointRun {
    /// Id of the run, the same in the profiles of all programs.
    pub run: String,
    /// Name of this program in it.
    pub service: String,
    /// Name of the program that the coordinator itself built and started, by whose points a report
    /// of all ranks. `None` in older profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}
