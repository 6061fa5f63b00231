#!/usr/bin/env bash
# How right andweorc is, and what it costs, on a machine with many cores, no toolchain, no network.
#
#   benches/many-cores.sh pack FOLDER   # here: builds the benches, and packs them with this script
#   FOLDER/many-cores.sh run            # there: ten minutes; prints all, keeps it in FOLDER/results
#
# There it needs Linux on x86-64, bash, and a C library no older than that of the machine that packed
# it. As root the world outside has real-time priority. Nothing else should run meanwhile.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

# Programs of different families, of which each may run beside itself, with 4 workers,
with_4=(pipeline3 handlers_saturated handlers_subtasks semaphore batcher join_set)
# with 14,
with_14=("${with_4[@]}" handlers_medium rwlock actor broadcast_lag two_runtimes stragglers)
# and with 14 where nothing is wrapped.
unwrapped=(handlers_medium rwlock actor)

# The last executable that cargo built of a bench, from its messages.
executable() { # BENCH [ARGUMENT of cargo...]
    local bench=$1
    shift
    cargo bench --no-run --quiet --message-format json --bench "$bench" "$@" |
        sed -n "s/.*\"name\":\"$bench\".*\"executable\":\"\([^\"]*\)\".*/\1/p" | tail -1
}

pack() {
    local folder=$1
    mkdir -p "$folder"
    cp "$0" "$folder/many-cores.sh"
    cd "$here/.."
    cp "$(executable accuracy)" "$folder/accuracy"
    cp "$(executable cost)" "$folder/cost"
    # In a folder of its own, so that neither build throws the other one away.
    cp "$(CARGO_TARGET_DIR=target/unstable RUSTFLAGS="--cfg tokio_unstable" executable accuracy --all-features)" "$folder/accuracy-unwrapped"
    strip --strip-debug "$folder/accuracy" "$folder/cost" "$folder/accuracy-unwrapped"
    echo "packed: $(du -sh "$folder" | cut -f1) in $folder; there: $folder/many-cores.sh run"
}

# Prints what a bench prints under a heading, and goes on where it fails.
step() { # TITLE COMMAND...
    printf '\n== %s\n' "$1"
    shift
    "$@" || echo "ended with $?"
}

# Measures programs with so many workers, if the machine has as many cores.
accuracy() { # BENCH WORKERS [OPTION...] -- PROGRAM...
    local bench=$1 workers=$2 options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    if [ "$(nproc)" -lt "$workers" ]; then
        echo "skipped: $workers workers on $(nproc) cores"
        return
    fi
    for name; do options+=(--only "$name"); done
    step "$bench, $workers workers" "$here/$bench" --quick --workers "$workers" "${options[@]}"
}

measure() {
    date -u +"%Y-%m-%d %H:%M UTC"
    uname -sr
    sed -n 's/^model name\s*: /processor: /p' /proc/cpuinfo | head -1
    echo "cores: $(nproc)"
    accuracy accuracy 4 -- "${with_4[@]}"
    accuracy accuracy 14 -- "${with_14[@]}"
    accuracy accuracy-unwrapped 14 --unwrapped -- "${unwrapped[@]}"
    step "cost of a poll and its wake, by workers, tasks and call sites" "$here/cost" scale
}

case ${1:-} in
    pack) [ -n "${2:-}" ] || { echo "usage: benches/many-cores.sh pack FOLDER" >&2; exit 2; }; pack "$2" ;;
    run) measure 2>&1 | tee "$here/results" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
