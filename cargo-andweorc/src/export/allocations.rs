//! Memory that each target allocates, divided among its call chains as samples tell.

use super::stacks::{ALLOCATIONS, Frame, Measured, Sample, allocating_frame, shown};
use super::table::Table;
use andweorc_profile::estimate::{self, AllocationSummary};
use andweorc_profile::{AllocationGroup, AllocationStacksRecord, Run, TargetRecord, plain};
use std::collections::{BTreeMap, HashMap};

/// Bytes and blocks that were sampled, by the frames inside of the target.
type Chains = BTreeMap<Vec<usize>, [u64; 2]>;

/// A target in all runs: its kind, name and place.
type Key = (Option<String>, String, Option<String>, Option<u32>);

/// The allocations of all runs. Each target has its exact sums, a stack of one frame where nothing
/// was sampled in it.
pub(super) fn allocations(runs: &[Run], frames: &mut Table<Frame>) -> Option<Measured> {
    let found = estimate::analyse(runs).allocations;
    let sampled = sampled(runs, frames);
    let mut samples = Vec::new();
    for of in &found {
        let target = frames.index(&allocating_frame(of));
        let exact = [of.count, of.bytes];
        let chains = sampled.get(&key_of(of)).filter(|chains| !chains.is_empty());
        let Some(chains) = chains else {
            samples.push(sample(vec![target], exact));
            continue;
        };
        let parts = [0, 1].map(|at| {
            let weights: Vec<u64> = chains.values().map(|weights| weights[1 - at]).collect();
            divide(exact[at], &weights)
        });
        for (at, chain) in chains.keys().enumerate() {
            let stack = [target].into_iter().chain(chain.iter().copied()).collect();
            samples.push(sample(stack, [parts[0][at], parts[1][at]]));
        }
    }
    let stretches = runs.iter().flat_map(|run| &run.allocations);
    let real_ns = stretches.fold(0, |sum: u64, it| sum.saturating_add(it.real_ns));
    let losses = losses(runs);
    let measured = Measured { quantities: &ALLOCATIONS, samples, real_ns, losses };
    (!measured.samples.is_empty()).then_some(measured)
}

fn sample(stack: Vec<usize>, values: [u64; 2]) -> Sample {
    Sample { stack, state: None, woken_by: None, values: values.to_vec() }
}

/// Divides a number in proportion to the weights, so that the parts sum up to it.
fn divide(number: u64, weights: &[u64]) -> Vec<u64> {
    let all = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)).max(1);
    let mut before = 0_u64;
    // No more than the number, since there are no more before than in all.
    let up_to = |weights: u64| (u128::from(number) * u128::from(weights) / u128::from(all)) as u64;
    weights
        .iter()
        .map(|&weight| {
            let from = up_to(before);
            before = before.saturating_add(weight);
            up_to(before) - from
        })
        .collect()
}

fn key_of(of: &AllocationSummary) -> Key {
    (of.kind.map(|kind| kind.to_string()), of.name.clone(), of.file.clone(), of.line)
}

fn key_of_target(target: Option<&TargetRecord>) -> Key {
    match target {
        Some(it) => (Some(it.kind.to_string()), it.name.clone(), it.file.clone(), it.line),
        None => (None, "outside".to_owned(), None, None),
    }
}

/// The chains of each target. Outside of all targets, the thread is the outermost frame.
fn sampled(runs: &[Run], frames: &mut Table<Frame>) -> HashMap<Key, Chains> {
    let mut all: HashMap<Key, Chains> = HashMap::new();
    for run in runs {
        let targets: HashMap<u32, &TargetRecord> =
            run.targets.iter().map(|target| (target.id, target)).collect();
        for record in &run.allocation_stacks {
            let places: Vec<usize> =
                record.frames.iter().map(|it| frames.index(&frame(it))).collect();
            for group in &record.groups {
                let target = group.target.and_then(|id| targets.get(&id).copied());
                add(all.entry(key_of_target(target)).or_default(), group, &places, frames);
            }
        }
    }
    all
}

fn add(chains: &mut Chains, group: &AllocationGroup, places: &[usize], frames: &mut Table<Frame>) {
    let thread = group.thread.as_deref().map(|name| named(&format!("thread {name}")));
    let outermost: Vec<usize> = thread.iter().map(|frame| frames.index(frame)).collect();
    let mut stacks: Vec<Vec<usize>> = Vec::with_capacity(group.stacks.len());
    for node in &group.stacks {
        let around = node.parent.map(|parent| &stacks[parent as usize]);
        let mut stack = around.unwrap_or(&outermost).clone();
        stack.push(places[node.frame as usize]);
        if node.bytes > 0 {
            let sum = chains.entry(stack.clone()).or_default();
            *sum = [sum[0].saturating_add(node.bytes), sum[1].saturating_add(node.count)];
        }
        stacks.push(stack);
    }
}

fn frame(of: &andweorc_profile::AllocationFrame) -> Frame {
    Frame { file: shown(of.file.as_ref()), line: of.line, ..named(&of.name) }
}

/// A frame of which nothing but a name is known.
fn named(name: &str) -> Frame {
    Frame { kind: None, name: plain::name(name).into_owned(), file: None, line: None }
}

/// Sentences on what the samples lack.
fn losses(runs: &[Run]) -> Vec<String> {
    let sum = |count: fn(&AllocationStacksRecord) -> u64| {
        let records = runs.iter().flat_map(|run| &run.allocation_stacks);
        records.fold(0, |sum: u64, it| sum.saturating_add(count(it)))
    };
    let losses = [
        (sum(|it| it.lost), "samples of allocations were lost."),
        (
            sum(|it| it.merged),
            "samples of allocations could not be told apart and are counted as the stack around them.",
        ),
    ];
    let losses = losses.into_iter().filter(|(count, _)| *count > 0);
    losses.map(|(count, text)| format!("{count} {text}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_up_to_the_whole_in_proportion_to_their_weights() {
        assert_eq!(divide(10, &[1, 1, 2]), [2, 3, 5]);
        assert_eq!(divide(u64::MAX, &[u64::MAX, u64::MAX]).iter().sum::<u64>(), u64::MAX);
        assert_eq!(divide(7, &[0, 0]), [0, 0]);
        let weights: Vec<u64> = (1..100).collect();
        assert_eq!(divide(1_234_567, &weights).iter().sum::<u64>(), 1_234_567);
    }
}
