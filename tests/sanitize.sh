#!/usr/bin/env bash
# The tests of what threads share, under ThreadSanitizer, AddressSanitizer (with its leak check) and miri. Prints what it ran, what it
# left out, and what it skipped; fails when one of them finds something.
#
#   tests/sanitize.sh [thread] [address] [miri]      all three by default
#
# Needs a nightly toolchain: rustup toolchain install nightly --component rust-src,miri
# Without rust-src ThreadSanitizer can't run: it has to see the atomics of the standard library too. Of one that is not instrumented it
# misses who takes a contended lock, waits for a condition or is unparked, and reports what these guard as races.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never
host=$(rustc -vV | sed -n 's/^host: //p')
sysroot=$(rustc +nightly --print sysroot 2>/dev/null)
failed=()

say() { printf '\n== %s\n' "$*"; }
skip() { printf 'skipped: %s\n' "$*"; }

# Of andweorc-sampling what has no threads, and takes minutes here.
sampling=(--skip symbols::)
# These compare times, which instrumented code does not keep.
timed=(
    --skip delay_grows_while_somebody_is_in_the_wait_that_is_the_target
    --skip a_wait_for_this_program_is_not_stretched
    --skip a_paused_clock_does_not_run_ahead_of_what_is_held
    --skip the_second_answer_is_stretched_by_what_grew_before_the_first
)

# tests NAME FLAGS... : runs the tests of the libraries; FLAGS are for cargo.
tests() {
    local name=$1
    shift
    local cargo=(cargo +nightly test --quiet --no-fail-fast --target "$host" "$@")
    echo "left out: ${sampling[*]} ${timed[*]}"
    "${cargo[@]}" -p andweorc-sampling --all-features --lib -- "${sampling[@]}" || failed+=("$name: andweorc-sampling")
    "${cargo[@]}" -p andweorc-core --lib || failed+=("$name: andweorc-core")
    "${cargo[@]}" -p andweorc-tokio --all-features --tests -- "${timed[@]}" || failed+=("$name: andweorc-tokio")
    "${cargo[@]}" -p andweorc-tracing --tests || failed+=("$name: andweorc-tracing")
}

# Runs what does harm to a profiled program, and the programs of tests/safety. SIGINT must not be ignored, as it is where a shell without
# job control starts this in the background: tests/without_main.rs sends it.
programs() {
    local cargo=(cargo +nightly test --quiet --no-fail-fast --target "$host")
    local facade=("${cargo[@]}" --all-features --test faults --test signals --test without_main -- --test-threads 1)
    # The leak check sees no roots on threads that fork left behind, needs descriptors and /proc of its own, and takes what a thread holds
    # that a debugger has stopped for lost.
    local blind=(
        a_child_of_fork_that_returns_from_main_ends
        child_of_fork_that_exits_leaves_the_session_alone
        main_returns_also_where_the_profile_comes_to_no_end
        where_the_kernel_tells_no_waits_the_report_says_what_they_cost
        without_file_descriptors_threads_are_sampled_by_timers
    )
    # Unoptimised and instrumented it needs a minute to find the names of what was sampled.
    local slow=(--skip a_program_that_takes_sigurg_over_gets_no_more_of_it_and_the_report_says_so)
    echo "without leak check: ${blind[*]}; left out: ${slow[*]}"
    "${facade[@]}" "${blind[@]/#/--skip=}" "${slow[@]}" || failed+=("address: andweorc")
    ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" "${facade[@]}" "${blind[@]}" || failed+=("address: andweorc, without leak check")
    # own_sigurg counts the signals that come until somebody sees that they are not wanted, which takes longer here.
    local safety=(--quiet --target "$host" --manifest-path tests/safety/Cargo.toml) cases
    echo "left out of tests/safety: own_sigurg"
    cases=$(cargo +nightly run "${safety[@]}" -- --list) &&
        mapfile -t cases < <(grep -vx own_sigurg <<<"$cases") &&
        cargo +nightly run "${safety[@]}" -- "${cases[@]}" || failed+=("address: tests/safety")
}

run_thread() {
    say "ThreadSanitizer"
    [ -d "$sysroot/lib/rustlib/src/rust" ] || { skip "no rust-src in the nightly toolchain"; return; }
    CARGO_TARGET_DIR=target/sanitize/thread RUSTFLAGS="-Zsanitizer=thread" \
        TSAN_OPTIONS="suppressions=$PWD/tests/sanitize.supp" tests thread -Zbuild-std
}

run_address() {
    say "AddressSanitizer"
    # CARGO_TARGET_DIR is absolute: tests/safety is a workspace of its own.
    local -x CARGO_TARGET_DIR="$PWD/target/sanitize/address" RUSTFLAGS="-Zsanitizer=address"
    local -x ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1"
    tests address
    programs
}

run_miri() {
    say "miri"
    cargo +nightly miri --version >/dev/null 2>&1 || { skip "no miri in the nightly toolchain"; return; }
    # What talks to no kernel and does not take many minutes here, as counters, latencies and the ring do. The torn account does too, and has
    # a loom model.
    local filter=(ledger:: target:: wait::)
    echo "runs: ${filter[*]}; left out: readers_never_see_a_torn_account"
    CARGO_TARGET_DIR=target/sanitize/miri MIRIFLAGS="-Zmiri-disable-isolation" \
        cargo +nightly miri test --quiet -p andweorc-core --lib -- "${filter[@]}" --skip readers_never_see_a_torn_account ||
        failed+=("miri: andweorc-core")
}

if [ -z "$sysroot" ]; then
    skip "no nightly toolchain (rustup toolchain install nightly --component rust-src,miri)"
    exit 0
fi
rustc +nightly --version
[ $# -gt 0 ] || set -- thread address miri
for which in "$@"; do
    case $which in
        thread | address | miri) "run_$which" ;;
        *) echo "no sanitizer is named $which: thread, address, miri" >&2; exit 2 ;;
    esac
done
say "result"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
echo "nothing found"
