#!/usr/bin/env bash
# Real fixes of the past: does the profile of the version before the fix name what was mended, and what did the fix bring?
#
#   cases/run.sh [CASE...]     # unordered, lifo, blocking, nagle; all of them if none is named
#   cases/run.sh --build       # builds only
#
# For each case the versions before and after are measured in turns, not profiled; then the version before is profiled. Nothing else
# should run meanwhile. Needs python3. Fails if the culprit is not among the first three.
#
#   ROUNDS            how many times the versions take turns (default 4)
#   TURN_SECONDS      how long each turn is measured, after one second to warm up (default 3)
#   PROFILE_SECONDS   how long each profile takes (default 40)
#   KEEP              a directory for the rates, profiles and reports (default: they are deleted)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rounds=${ROUNDS:-4}
turn_seconds=${TURN_SECONDS:-3}
profile_seconds=${PROFILE_SECONDS:-40}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
# Call chains of functions are walked by frame pointers.
export RUSTFLAGS=${RUSTFLAGS--C force-frame-pointers=yes}
bin=$CARGO_TARGET_DIR/release

die() {
    echo "run.sh: $*" >&2
    exit 1
}

# Which packages, which pairs of versions (before and after), which one is profiled, and who is the culprit.
packages() { # CASE
    case $1 in
        unordered | blocking) echo "$1/old $1/new" ;;
        lifo) echo lifo/{old,new,uncapped,capped} ;;
        nagle) echo nagle ;;
    esac
}

pairs() { # CASE
    case $1 in
        lifo) echo old:new uncapped:capped ;;
        nagle) echo nodelay_off:nodelay_on ;;
        *) echo old:new ;;
    esac
}

profiled() { # CASE
    case $1 in lifo) echo uncapped ;; nagle) echo nodelay_off ;; *) echo old ;; esac
}

# The targets that stand for what was mended, as a regex of kind and name.
culprit() { # CASE
    case $1 in
        unordered) echo '^span fetch$|futures_util' ;;
        lifo) echo '^task (ask|answer)$' ;;
        blocking) echo '^span offload$|spawn_blocking|blocking::pool' ;;
        nagle) echo '^wait store$' ;;
    esac
}

# A tokio without the limit of 3 polls from the LIFO slot, from the release that lifo/capped has.
uncapped_tokio() {
    local copy=$here/target/tokio-uncapped source file
    [ ! -e "$copy/Cargo.toml" ] || return 0
    source=$(cargo metadata --quiet --locked --format-version 1 --manifest-path "$here/lifo/capped/Cargo.toml" |
        python3 -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "tokio"))')
    rm -rf "$copy.new"
    mkdir -p "$here/target"
    cp -r "$(dirname "$source")" "$copy.new"
    file=$copy.new/src/runtime/scheduler/multi_thread/worker.rs
    sed -i 's/^const MAX_LIFO_POLLS_PER_TICK: usize = 3;/const MAX_LIFO_POLLS_PER_TICK: usize = usize::MAX;/' "$file"
    grep -q 'MAX_LIFO_POLLS_PER_TICK: usize = usize::MAX' "$file" || die "the limit of the LIFO slot is not in $file"
    mv "$copy.new" "$copy"
}

build() { # CASE...
    local case package
    for case; do
        [ "$case" != lifo ] || uncapped_tokio
        for package in $(packages "$case"); do
            cargo build --quiet --locked --release --manifest-path "$here/$package/Cargo.toml"
        done
    done
    cargo build --quiet --release --package cargo-andweorc --manifest-path "$here/../Cargo.toml"
}

start() { # CASE VERSION ARGUMENT...
    local name=$1-$2
    case $2 in
        nodelay_off) name=$1 ;;
        nodelay_on) name=$1 && export NODELAY=1 ;;
    esac
    exec "$bin/$name" "${@:3}"
}

truth() { # CASE
    local round pair versions version
    for round in $(seq "$rounds"); do
        for pair in $(pairs "$1"); do
            # Every other round the other way round: a steady drift cancels.
            versions=("${pair%:*}" "${pair#*:}")
            ((round % 2)) || versions=("${pair#*:}" "${pair%:*}")
            for version in "${versions[@]}"; do
                echo "$pair $round $version $(start "$1" "$version" "$turn_seconds")" >>"$work/$1.truth"
            done
        done
    done
}

# How each case is profiled: a name, a colon, and the settings. The first one is as it comes, but for speedups to compare with the fix.
ways() { # CASE
    case $1 in
        unordered)
            echo 'spans:ANDWEORC_SPEEDUPS=0.25,0.5,0.9'
            echo 'functions:ANDWEORC_SPEEDUPS=0.25,0.5,0.9 ANDWEORC_TARGETS=functions ANDWEORC_SCOPE=unordered-old,futures-util'
            ;;
        lifo) echo 'tasks:ANDWEORC_SPEEDUPS=0.25,0.5,0.75' ;;
        blocking)
            echo 'spans:ANDWEORC_SPEEDUPS=0.25,0.5,0.9'
            echo 'functions:ANDWEORC_SPEEDUPS=0.25,0.5,0.9 ANDWEORC_TARGETS=functions ANDWEORC_SCOPE=blocking-old,tokio'
            ;;
        nagle)
            echo 'spans:ANDWEORC_SPEEDUPS=0.25,0.5'
            echo 'waits:ANDWEORC_SPEEDUPS=0.25,0.5,0.9 ANDWEORC_MAX_SLOWDOWN=20 ANDWEORC_TARGETS=wait:store,wait:auth,span:render'
            ;;
    esac
}

running=
profile() { # CASE WAY SETTING...
    local of=$work/$1.$2
    (
        export ANDWEORC_ENABLED=1 ANDWEORC_POINTS=done ANDWEORC_OUT=$of.jsonl ANDWEORC_DURATION=${profile_seconds}s "${@:3}"
        start "$1" "$(profiled "$1")"
    ) >"$of.report" 2>&1 &
    running=$!
    for _ in $(seq $((profile_seconds + 20))); do
        ! grep -q '"record":"end"' "$of.jsonl" 2>/dev/null || break
        kill -0 $running 2>/dev/null || break
        sleep 1
    done
    stop
    "$bin/cargo-andweorc" andweorc report "$of.jsonl" --format json >"$of.json" || die "no profile of $1: $(cat "$of.report")"
}

stop() {
    [ -n "$running" ] || return 0
    kill "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
    running=
}

known=(unordered lifo blocking nagle)
only_build=
[ "${1:-}" != --build ] || { only_build=1 && shift; }
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=("${known[@]}")
for case in "${cases[@]}"; do
    [ -n "$(packages "$case")" ] || die "there is no case $case: there are ${known[*]}"
done
command -v python3 >/dev/null || die "python3 is not installed"
build "${cases[@]}"
[ -z "$only_build" ] || exit 0

work=$(mktemp -d)
trap 'stop; [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp "$work"/* "$KEEP"; }; rm -rf "$work"' EXIT
for case in "${cases[@]}"; do
    truth "$case"
    while IFS=: read -r way settings; do
        # Settings are words without spaces.
        read -ra settings <<<"$settings"
        profile "$case" "$way" "${settings[@]}" </dev/null
        printf '%s\t%s\t%s\n' "$case" "$way" "$(culprit "$case")" >>"$work/cases"
    done < <(ways "$case")
done
"$here/table.py" "$work"
