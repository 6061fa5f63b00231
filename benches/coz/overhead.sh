#!/usr/bin/env bash
# What profiling costs, andweorc's beside coz's: the throughput of programs that both can run, net of the delays that are meant, over that of
# the same program not profiled. In experiments a part is the target that nobody waits for: made 50 % faster it changes nothing, and what is
# missing then is overhead.
#
#   benches/coz/overhead.sh [SECONDS [ROUNDS [PROGRAM...]]]     # default 3 and 5: six minutes
#   benches/coz/overhead.sh --build                             # builds only
#
# A round is all five of a program, one after the other: not profiled, andweorc's baselines and experiments, coz's baseline and experiment. The
# table has the mean over the rounds of each cell, and its 95 % interval. With ROWS=FILE the rounds are added to that file, and the table is of
# all that are there: so it can be made in pieces.
#
# Needs what run.sh needs. Nothing else should run meanwhile.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
command -v coz >/dev/null || { echo "overhead.sh: coz is not installed: apt-get install coz-profiler" >&2; exit 1; }
# From where it is configured, so that its .cargo/config.toml holds; for a target, so that it does not hold for procedural macros.
host=$(rustc -vV | sed -n 's/^host: //p')
(cd "$here" && cargo build --quiet --release --target "$host")
[ "${1:-}" != --build ] || exit 0
seconds=${1:-3}
rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(slow_fast threads_mutex threads_barrier pipeline2)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bench=${CARGO_TARGET_DIR:-$here/target}/$host/release/andweorc-beside-coz
pace=$("$bench" pace)
line=$("$bench" line second)

coz_rate() { # PROGRAM PERCENT
    rm -f "$work/profile"
    coz run --source-scope '%/coz/src/main.rs' --fixed-line "main.rs:$line" --fixed-speedup "$2" \
        --output "$work/profile" --- "$bench" run "$1" "$pace" "$seconds" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    "$here/coz_effect.py" "$work/profile"
}

rows=${ROWS:-$work/rows}
for _ in $(seq "$rounds"); do
    for program in "${programs[@]}"; do
        plain=$("$bench" rate "$program" "$pace" "$seconds")
        andweorc=$("$bench" andweorc "$program" second 50 "$pace" "$seconds")
        echo "$program $plain $andweorc $(coz_rate "$program" 0) $(coz_rate "$program" 50)" >>"$rows"
    done
done
"$here/overhead_table.py" "$rows"
