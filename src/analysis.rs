//! Estimates that a [session](crate::Session) ends with: what each target does to each point, with
//! intervals and verdicts.
//!
//! They are made by the crate `andweorc-profile`, which also reads them from the profile's file.

pub use andweorc_profile::estimate::{
    Analysis, Effect, Impact, Judged, Load, Metric, Now, PointSummary, Probes, Ranking,
    TargetSummary, Verdict, WaitSummary,
};
pub use andweorc_profile::{
    ExperimentRecord, PointCount, PointKind, PointRecord, TargetKind, TargetRecord, WaitTime,
};
