#!/usr/bin/env bash
# Is andweorc compatible with what it stands beside? Each combination is a small service with a known bottleneck (`shop`): built, run as
# it is, and profiled; the answer is checked. Prints a row of a Markdown table for each (docs/book/src/results/compatibility.md).
#
#   tests/compat/run.sh                       # all; half an hour on two processors, and nothing else should run meanwhile
#   tests/compat/run.sh actix tonic           # these
#   tests/compat/run.sh --list                # their names
#   tests/compat/run.sh --build [NAME...]     # builds only, and runs nothing: to see what still compiles, or beforehand
#   tests/compat/run.sh --truth [NAME...]     # what half of each part really changes, in three turns, in the place of a profile
#
# Takes the newest version of each library; cargo fetches them. Needs python3, and a C compiler for some. Fails when a row is not as it
# should be.
#
#   SECONDS_PROFILED  how long each profile takes (default 15)
#   KEEP              a directory for the profiles (default: they are deleted)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seconds=${SECONDS_PROFILED:-15}
out=$root/target/compat
oldest=$(sed -n 's/^tokio = { version = "\([0-9.]*\)".*/\1/p' "$root/Cargo.toml").0
msrv=$(sed -n 's/^rust-version = "\([0-9.]*\)"/\1/p' "$root/Cargo.toml")
export CARGO_TARGET_DIR=$out/build CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0

binaries=(system mimalloc jemalloc lto-fat panic-abort opt-z strip)
layers=(console opentelemetry appender log flame reload)
libraries=(actix tonic sqlx reqwest quinn rayon smol)
tokios=(tokio-oldest tokio-newest)
features=(none $(sed -n '/^\[features\]/,/^\[/s/^\([a-z-]*\) = .*/\1/p' "$root/Cargo.toml"))
checks=("${features[@]/#/feature-}" msrv)
all=("${binaries[@]}" "${layers[@]}" "${libraries[@]}" "${tokios[@]}" "${checks[@]}")

die() {
    echo "run.sh: $*" >&2
    exit 2
}

# What a combination has other than the plain service.
combination() { # NAME
    load=tasks trace=alone allocator=system dependencies= andweorc= settings=() of=tokio
    local subscriber='tracing-subscriber = { version = "0.3", default-features = false, features = ["fmt", "registry", "std"] }'
    case $1 in
        system | tokio-oldest | tokio-newest) ;;
        mimalloc)
            allocator=$1 of=$1
            dependencies='mimalloc = { version = "*", default-features = false }'
            ;;
        jemalloc)
            allocator=$1 of=tikv-jemallocator
            dependencies='tikv-jemallocator = { version = "*", default-features = false }'
            ;;
        lto-fat) settings=(CARGO_PROFILE_RELEASE_LTO=fat) ;;
        panic-abort) settings=(CARGO_PROFILE_RELEASE_PANIC=abort) ;;
        opt-z) settings=(CARGO_PROFILE_RELEASE_OPT_LEVEL=z) ;;
        strip) settings=(CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false) ;;
        console)
            trace=$1 of=console-subscriber settings=(RUSTFLAGS="--cfg tokio_unstable")
            dependencies='console-subscriber = { version = "*", default-features = false }'$'\n'$subscriber
            ;;
        opentelemetry)
            # The three must fit together: tracing-opentelemetry says which.
            trace=$1 of=tracing-opentelemetry
            dependencies='tracing-opentelemetry = { version = "0.34", default-features = false }
opentelemetry = { version = "0.33", default-features = false, features = ["trace"] }
opentelemetry_sdk = { version = "0.33", default-features = false, features = ["trace"] }'$'\n'$subscriber
            ;;
        appender)
            trace=$1 of=tracing-appender
            dependencies='tracing-appender = { version = "*", default-features = false }'$'\n'$subscriber
            ;;
        log)
            trace=$1 of=tracing-log
            dependencies='tracing-log = { version = "*", default-features = false, features = ["log-tracer", "std"] }
log = "0.4"'$'\n'$subscriber
            ;;
        flame)
            trace=$1 of=tracing-flame
            dependencies='tracing-flame = { version = "*", default-features = false }'$'\n'$subscriber
            ;;
        reload) trace=$1 of=tracing-subscriber dependencies=$subscriber ;;
        actix)
            load=$1 of=actix-web
            dependencies='actix-web = { version = "*", default-features = false }'
            ;;
        tonic)
            load=$1 of=$1 andweorc=', features = ["tower"]'
            dependencies='tonic = { version = "*", default-features = false, features = ["codegen", "router", "transport"] }
tonic-prost = { version = "*", default-features = false }'
            ;;
        sqlx)
            load=$1 of=$1
            dependencies='sqlx = { version = "*", default-features = false, features = ["runtime-tokio", "sqlite"] }'
            ;;
        reqwest)
            load=$1 of=$1
            dependencies='reqwest = { version = "*", default-features = false }'
            ;;
        quinn)
            load=$1 of=$1
            dependencies='quinn = { version = "*", default-features = false, features = ["runtime-tokio", "rustls-ring"] }
rcgen = { version = "*", default-features = false, features = ["crypto", "ring"] }'
            ;;
        rayon | smol)
            load=$1 of=$1
            dependencies="$1 = \"*\""
            ;;
        *) die "there is no combination $1; there are ${all[*]}" ;;
    esac
}

# Puts the program of a combination together.
project() { # NAME
    local to=$out/$1
    rm -rf "$to"
    mkdir -p "$to/src"
    cp "$here"/shop/*.rs "$to/src/"
    cp "$here/shop/load/$load.rs" "$to/src/load.rs"
    cp "$here/shop/trace/$trace.rs" "$to/src/trace.rs"
    cp "$here/shop/allocator/$allocator.rs" "$to/src/allocator.rs"
    cat >"$to/Cargo.toml" <<TOML
[workspace]

[package]
name = "compat-$1"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
andweorc = { path = "$root"$andweorc }
tokio = { version = "1", features = ["io-util", "net", "rt-multi-thread", "sync", "time"] }
tracing = { version = "0.1", features = ["attributes"] }
$dependencies

[profile.release]
debug = "line-tables-only"
TOML
}

# The version of a library that a combination was built with.
version() { # NAME LIBRARY
    grep -A1 "^name = \"$2\"$" "$out/$1/Cargo.lock" | sed -n "s/^version = \"\(.*\)\"/$2 \1/p" | tail -n 1
}

failed=0
row() { # NAME BUILT RAN ANSWER NOTE
    echo "| $1 | $2 | $3 | $4 | $5 |"
}

fail() { # NAME BUILT RAN ANSWER NOTE
    row "$@"
    failed=1
}

# Compiles the facade with one feature, or with the oldest compiler.
check() { # NAME
    local toolchain=() options=(--all-features)
    case $1 in
        msrv)
            if ! cargo "+$msrv" --version >/dev/null 2>&1; then
                row "$1" - - - "there is no toolchain $msrv (rustup toolchain install $msrv)"
                return
            fi
            toolchain=("+$msrv")
            ;;
        feature-none) options=(--no-default-features) ;;
        feature-*) options=(--no-default-features --features "${1#feature-}") ;;
    esac
    if (cd "$root" && cargo "${toolchain[@]}" check -q -p andweorc --lib "${options[@]}") 2>"$out/$1.log"; then
        row "$1" yes - - "cargo ${toolchain[*]:+${toolchain[*]} }check ${options[*]}"
    else
        fail "$1" no - - "see $out/$1.log"
    fi
}

build() { # NAME
    project "$1"
    (
        cd "$out/$1"
        [ "$1" != tokio-oldest ] || cargo update -q -p tokio --precise "$oldest"
        env "${settings[@]}" cargo build -q --release
    ) 2>"$out/$1.log"
}

# What half of each part really changes, in %, of three turns.
really() { # BINARY
    for _ in 1 2 3; do
        for halved in NONE=0 SLOW=300 OTHER=50; do
            echo "${halved%=*} $(env SECS=5 "$halved" "$1" 2>/dev/null)"
        done
    done | awk '{ sum[$1] += $2 }
        END { printf "slow %+.1f, other %+.1f", 100 * (sum["SLOW"] / sum["NONE"] - 1), 100 * (sum["OTHER"] / sum["NONE"] - 1) }'
}

# Builds, runs, and profiles a combination.
combine() { # NAME
    local binary=$CARGO_TARGET_DIR/release/compat-$1 profile=$out/$1.jsonl rate answer note
    combination "$1"
    if ! build "$1"; then
        fail "$1" no - - "see $out/$1.log"
        return
    fi
    note=$(version "$1" "$of")
    [ "$of" = tokio ] || note="$note, $(version "$1" tokio)"
    if [ "$build_only" = 1 ]; then
        row "$1" yes - - "$note"
        return
    fi
    if ! rate=$(SECS=2 "$binary" 2>>"$out/$1.log") || [ "${rate%% *}" = 0 ]; then
        fail "$1" yes no - "$note; see $out/$1.log"
        return
    fi
    if [ "$truth" = 1 ]; then
        row "$1" yes "$rate" "$(really "$binary")" "$note"
        return
    fi
    rm -f "$profile"
    if ! ANDWEORC_ENABLED=1 ANDWEORC_OUT=$profile ANDWEORC_DURATION=${seconds}s ANDWEORC_TARGETS=slow,other \
        ANDWEORC_SPEEDUPS=0.5 ANDWEORC_POINTS=order SECS=$((seconds + 1)) "$binary" >/dev/null 2>>"$out/$1.log"; then
        fail "$1" yes "$rate" no "$note; the profiled run failed, see $out/$1.log"
        return
    fi
    if answer=$("$report" report --format json "$profile" 2>>"$out/$1.log" | python3 "$here/check.py" 2>>"$out/$1.log"); then
        row "$1" yes "$rate" "yes: $answer" "$note"
    else
        fail "$1" yes "$rate" "**no**: ${answer:-no report}" "$note"
    fi
    [ -z "${KEEP:-}" ] || cp "$profile" "$KEEP/"
    rm -f "$profile"
}

build_only=0 truth=0
case ${1:-} in
    --list)
        printf '%s\n' "${all[@]}"
        exit
        ;;
    --build)
        build_only=1
        shift
        ;;
    --truth)
        truth=1
        shift
        ;;
    -*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
esac
names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")
for name in "${names[@]}"; do
    case " ${all[*]} " in *" $name "*) ;; *) die "there is no combination $name; there are ${all[*]}" ;; esac
done

mkdir -p "$out"
[ -z "${KEEP:-}" ] || mkdir -p "$KEEP"
cargo build -q --release --manifest-path "$root/Cargo.toml" -p cargo-andweorc
report=$CARGO_TARGET_DIR/release/cargo-andweorc
echo "| combination | built | ran unprofiled | profiled, the right answer | note |"
echo "|---|---|---|---|---|"
for name in "${names[@]}"; do
    case " ${checks[*]} " in
        *" $name "*) check "$name" ;;
        *) combine "$name" ;;
    esac
done
exit "$failed"
