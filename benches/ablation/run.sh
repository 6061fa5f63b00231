#!/usr/bin/env bash
# The accuracy bench with one rule off, to show what it is for.
#
#   benches/ablation/run.sh RULE [ARGUMENT of the accuracy bench...]   # task_clocks --quick, say: five
#                                                                      # minutes after the build
#
# RULE is one of `andweorc_core::engine::Rules`: task_clocks, raised_holds, ongoing_waits, credit_passes.
# Without task_clocks the rules are those of a profiler that knows threads and no tasks: a thread pays
# what it owes between two polls, is forgiven what grew while it was idle, and whatever it polls next
# goes on in its time. Nothing else should run meanwhile.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
rule=${1:-}
case "$rule" in
task_clocks | raised_holds | ongoing_waits | credit_passes) shift ;;
*) echo "run.sh: say which rule to leave out: task_clocks, raised_holds, ongoing_waits or credit_passes" >&2; exit 2 ;;
esac
cd "$root"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/ablation/$rule"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg andweorc_without=\"$rule\""
exec cargo bench --bench accuracy -- --quiet-machine "$@"
