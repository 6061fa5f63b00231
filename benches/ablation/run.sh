#!/usr/bin/env bash
# The accuracy bench with the rules of a profiler that knows threads and no tasks: a thread pays what it owes between two polls, is forgiven what grew while
# it was idle, and whatever it polls next goes on in its time. No task has a clock, no wake carries one, and nothing from outside is held.
#
#   benches/ablation/run.sh [ARGUMENT of the accuracy bench...]      # --quick, say: five minutes after the build
#
# Builds a copy of the workspace with thread-rules.patch applied to it. Needs git and patch. Nothing else should run meanwhile.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/ablation
copy=$work/workspace
command -v patch >/dev/null || { echo "run.sh: patch is not installed: apt-get install patch" >&2; exit 1; }

rm -rf "$copy"
mkdir -p "$copy"
cd "$root"
git ls-files --cached --others --exclude-standard | while read -r file; do [ -e "$file" ] && echo "$file"; done |
    xargs -d '\n' cp --parents -t "$copy"
patch --quiet -p1 -d "$copy" <"$here/thread-rules.patch"
cd "$copy"
CARGO_TARGET_DIR=$work/build exec cargo bench --bench accuracy -- --quiet-machine "$@"
