#!/usr/bin/env bash
# Real fixes of the past: does the profile of the version before the fix name what was mended, and what did the fix bring?
#
#   cases/run.sh [CASE...]     # unordered, lifo, steal, blocking, nagle; all of them if none is named
#   cases/run.sh --build       # builds only
#
# For each case the versions before and after are measured in turns, not profiled; then the version before is profiled. Nothing else
# should run meanwhile. Needs python3. Fails if a culprit is not among the first three, or not known to matter. lifo is only measured: andweorc wants a newer tokio; steal has
# the same slot in versions that it can profile.
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

# Its packages.
packages() { # CASE
    case $1 in
        unordered | lifo | steal | blocking) echo "$1/old $1/new" ;;
        nagle) echo nagle ;;
    esac
}

# The targets that stand for what was mended, as a regex of kind and name.
culprit() { # CASE
    case $1 in
        unordered) echo '^span fetch$|futures_util' ;;
        steal) echo '^(span index|task session)$' ;;
        blocking) echo '^span offload$|blocking::pool' ;;
        nagle) echo '^wait store$' ;;
    esac
}

build() { # CASE...
    local case package
    for case; do
        for package in $(packages "$case"); do
            cargo build --quiet --locked --release --manifest-path "$here/$package/Cargo.toml"
        done
    done
    cargo build --quiet --release --package cargo-andweorc --manifest-path "$here/../Cargo.toml"
}

start() { # CASE VERSION ARGUMENT...
    local name=$1-$2
    if [ "$1" = nagle ]; then
        name=nagle
        [ "$2" = old ] || export NODELAY=1
    fi
    exec "$bin/$name" "${@:3}"
}

truth() { # CASE
    local round version versions=(old new)
    for round in $(seq "$rounds"); do
        for version in "${versions[@]}"; do
            echo "$round $version $(start "$1" "$version" "$turn_seconds")" >>"$work/$1.truth"
        done
        # Each round begins with the other one: a steady drift cancels.
        versions=("${versions[1]}" "${versions[0]}")
    done
}

# How each case is profiled: a name, a colon, and the settings. The first is what comes by itself but for the speedups.
ways() { # CASE
    case $1 in
        unordered)
            echo 'spans:ANDWEORC_SPEEDUPS=0.25,0.5,0.9'
            echo 'functions:ANDWEORC_SPEEDUPS=0.25,0.5,0.9 ANDWEORC_TARGETS=functions ANDWEORC_SCOPE=unordered-old,futures-util'
            ;;
        steal) echo 'spans:ANDWEORC_SPEEDUPS=0.25,0.5,0.75' ;;
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
        start "$1" old
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

known=(unordered lifo steal blocking nagle)
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
    printf '%s\t%s\n' "$case" "$(culprit "$case")" >>"$work/cases"
    while IFS=: read -r way settings; do
        # Settings are words without spaces.
        read -ra settings <<<"$settings"
        profile "$case" "$way" "${settings[@]}" </dev/null
    done < <(ways "$case")
done
"$here/table.py" "$work"
