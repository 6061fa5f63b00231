#!/usr/bin/env bash
# andweorc beside coz: the programs that both can run, on one machine, with one budget. Prints a table of both errors.
#
#   benches/coz/run.sh [SECONDS] [PROGRAM...]
#
# SECONDS is what each coz run lasts (default 8): one without and one with the speedup for each row. Needs `coz` (Debian: apt-get install
# coz-profiler), python3, and perf events (sudo sysctl kernel.perf_event_paranoid=1, or root). Nothing else should run meanwhile.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-8}
shift || true
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(slow_fast threads_mutex threads_barrier pipeline2)
command -v coz >/dev/null || { echo "run.sh: coz is not installed: apt-get install coz-profiler" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# From where it is configured, so that its .cargo/config.toml holds; for a target, so that it does not hold for procedural macros.
host=$(rustc -vV | sed -n 's/^host: //p')
(cd "$here" && cargo build --quiet --release --target "$host")
target=${CARGO_TARGET_DIR:-$here/target}
bench=$target/$host/release/andweorc-beside-coz
pace=$("$bench" pace)

# What coz says of a program with a part virtually faster by a percentage: one file.
coz_run() { # PROGRAM LINE PERCENT FILE
    coz run --source-scope '%/coz/src/main.rs' --fixed-line "main.rs:$2" --fixed-speedup "$3" \
        --output "$4" --- "$bench" run "$1" "$pace" "$seconds" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
}

for program in "${programs[@]}"; do
    for part in first second; do
        line=$("$bench" line "$part")
        for percent in 25 50 75; do
            coz_run "$program" "$line" 0 "$work/base"
            coz_run "$program" "$line" "$percent" "$work/fast"
            truth=$("$bench" truth "$program" "$part" "$percent" "$pace" "$seconds")
            echo "$program $part $percent $truth $("$here/coz_effect.py" "$work/base" "$work/fast")" >>"$work/coz"
            rm -f "$work/base" "$work/fast"
        done
    done
done

# andweorc runs the programs of the same names and costs, for as long in all: two parts, three speedups, three runs each.
only=()
for program in "${programs[@]}"; do only+=(--only "$program"); done
(cd "$here/../.." && env -u CARGO_TARGET_DIR cargo bench --quiet --bench accuracy -- --quiet-machine \
    --budget $((seconds * 18)) --json "$work/andweorc" "${only[@]}" >/dev/null)
"$here/table.py" "$work/coz" "$work/andweorc"
