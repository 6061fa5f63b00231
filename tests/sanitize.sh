#!/usr/bin/env bash
# The tests of what threads share, under ThreadSanitizer, AddressSanitizer (with its leak check) and miri. Prints what it ran, what it
# left out, and what it skipped; fails when one of them finds something.
#
#   tests/sanitize.sh [thread] [address] [miri]      all three by default
#
# Needs a nightly toolchain: rustup toolchain install nightly --component rust-src,miri
# Without rust-src ThreadSanitizer can't run: it has to see the atomics of the standard library too.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never
host=$(rustc -vV | sed -n 's/^host: //p')
sysroot=$(rustc +nightly --print sysroot 2>/dev/null)
failed=()

say() { printf '\n== %s\n' "$*"; }
skip() { printf 'skipped: %s\n' "$*"; }

# Modules of andweorc-core without threads: statistics and texts, which take minutes here.
core=(--skip compare:: --skip estimate:: --skip stats:: --skip report:: --skip profile:: --skip symbols::)
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
    echo "left out: ${core[*]} ${timed[*]}"
    "${cargo[@]}" -p andweorc-core --lib -- "${core[@]}" || failed+=("$name: andweorc-core")
    "${cargo[@]}" -p andweorc-tokio --all-features --tests -- "${timed[@]}" || failed+=("$name: andweorc-tokio")
    "${cargo[@]}" -p andweorc-tracing --tests || failed+=("$name: andweorc-tracing")
}

run_thread() {
    say "ThreadSanitizer"
    [ -d "$sysroot/lib/rustlib/src/rust" ] || { skip "no rust-src in the nightly toolchain"; return; }
    CARGO_TARGET_DIR=target/sanitize/thread RUSTFLAGS="-Zsanitizer=thread" \
        TSAN_OPTIONS="suppressions=$PWD/tests/sanitize.supp" tests thread -Zbuild-std
}

run_address() {
    say "AddressSanitizer"
    # It keeps locals elsewhere than on the stack, to see their use after a return.
    local core=("${core[@]}" --skip the_own_stack_holds_what_is_on_it)
    CARGO_TARGET_DIR=target/sanitize/address RUSTFLAGS="-Zsanitizer=address" \
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1" tests address
}

run_miri() {
    say "miri"
    cargo +nightly miri --version >/dev/null 2>&1 || { skip "no miri in the nightly toolchain"; return; }
    # What talks to no kernel and does not take many minutes here, as counters, latencies and the ring do. The torn account does too, and has
    # a loom model.
    local filter=(ledger:: target:: wait:: time::)
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
