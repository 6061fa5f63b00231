#!/usr/bin/env bash
# Real services under load from real tools: does andweorc find the part that was made slow, and does it predict what making it faster brings?
#
#   services/run.sh [SERVICE...]     # orders, mini-redis, echo; all of them if none is named
#   services/run.sh --build          # builds only
#
# The ranking of each service is compared with the truth: the same program, not profiled, with the dialed part really 25 % and 50 %
# cheaper. All take turns, a part of the profile, unchanged, 25 %, 50 %, so that they are measured in the same minutes. Needs wrk,
# redis-benchmark and h2load (Debian: apt-get install wrk redis-tools nghttp2-client), python3 and patch. Nothing else should run meanwhile. Fails if a dialed part is not ranked first or a prediction is
# more than 5 points off.
#
# All turns are as long, of processes that have just been started: what becomes of a service, or of a machine, under load for so long is in each.
#
# The tools stand for clients on other machines: they have real-time priority where that is allowed, so that they do not wait for a
# processor behind the service (docs/lab-notebook/causes.md, "What shares the processors with the program").
#
# Idle processors look for work instead of sleeping, as in the accuracy bench: what sleeps for half as long, because a part is really faster,
# is woken sooner, and no virtual speedup shows that (docs/book/src/results/services.md, "Processors that sleep").
#
#   PROFILE_SECONDS   how long each is profiled, in all rounds (default 120); the three versions are measured for as long, each
#   ROUNDS            how many times they take turns (default 6)
#   AWAKE             0 leaves it to the machine whether idle processors sleep (default 1)
#   KEEP              a directory for the profiles, reports and rates (default: they are deleted)
#   JSON              a file for all cases (default: none)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
profile_seconds=${PROFILE_SECONDS:-120}
rounds=${ROUNDS:-6}
full_us=600
port=3137
bin=${CARGO_TARGET_DIR:-$here/target}/release

die() {
    echo "run.sh: $*" >&2
    exit 1
}

[ "$profile_seconds" -ge $((10 * rounds)) ] ||
    die "PROFILE_SECONDS=$profile_seconds in ROUNDS=$rounds is too short to hold experiments: ten seconds a round at least"

# The first second of each turn, of a profile too, is not measured.
turn_seconds=$((profile_seconds / rounds - 1))

build() {
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
    cargo build --quiet --release --workspace --manifest-path "$here/Cargo.toml"
    cargo build --quiet --release --bin mini-redis-server --manifest-path "$("$here/mini-redis/prepare.sh")/Cargo.toml"
    cargo build --quiet --release --package cargo-andweorc --manifest-path "$here/../Cargo.toml"
}

# What is started, what its load is, and which span is the dialed one.
serve() { # SERVICE
    case $1 in
        orders) rm -f "$work"/orders.db* && exec "$bin/orders" $port "$work/orders.db" ;;
        mini-redis) exec "$bin/mini-redis-server" --port $port ;;
        echo) exec "$bin/echo" $port ;;
    esac
}

dialed() { # SERVICE
    case $1 in orders) echo price ;; mini-redis) echo store ;; echo) echo append ;; esac
}

# The rate of a stretch of load, per second.
rate() { # SERVICE SECONDS
    case $1 in
        orders)
            "${ahead[@]}" wrk -t 1 -c 8 -d "$2" -s "$here/load/orders.lua" http://127.0.0.1:$port >"$work/load"
            if grep -q Non-2xx "$work/load"; then die "orders refused: $(cat "$work/load")"; fi
            awk '/^Requests\/sec:/ { print $2 }' "$work/load"
            ;;
        mini-redis)
            # It takes a number of requests, not a time: so many as fill it at about the rate of the dialed part.
            "${ahead[@]}" redis-benchmark -p $port -t set -c 8 -n $((1000000 * $2 / DIAL_US)) --csv 2>/dev/null |
                awk -F '"' '$2 == "SET" { print $4 }'
            ;;
        echo)
            "${ahead[@]}" h2load -t 1 -c 4 -m 2 -D "$2" "${grpc[@]}" >"$work/load"
            grep -q ' 0 4xx, 0 5xx' "$work/load" || die "echo refused: $(cat "$work/load")"
            sed -n 's/^finished in .*, \([0-9.]*\) req\/s.*/\1/p' "$work/load"
            ;;
    esac
}

# Load until it is stopped.
load() { # SERVICE
    case $1 in
        orders) exec "${ahead[@]}" wrk -t 1 -c 8 -d 3600 -s "$here/load/orders.lua" http://127.0.0.1:$port ;;
        mini-redis) exec "${ahead[@]}" redis-benchmark -p $port -t set -c 8 -n 1000000 -l --csv ;;
        echo) exec "${ahead[@]}" h2load -t 1 -c 4 -m 2 -D 3600 "${grpc[@]}" ;;
    esac
}

running=()
start() { # SERVICE, in the environment that it is to have
    serve "$1" >"$work/service" 2>&1 &
    running+=($!)
    for _ in $(seq 100); do
        (: </dev/tcp/127.0.0.1/$port) 2>/dev/null && return
        sleep 0.05
    done
    die "$1 does not listen: $(cat "$work/service")"
}

stop() { # ends what was started last first
    local i
    for ((i = ${#running[@]} - 1; i >= 0; i--)); do
        kill "${running[i]}" 2>/dev/null || true
        wait "${running[i]}" 2>/dev/null || true
    done
    running=()
}

predict() { # SERVICE ROUND
    local profile=$work/$1.$2.jsonl seconds=$((profile_seconds / rounds))
    DIAL_US=$full_us ANDWEORC_ENABLED=1 ANDWEORC_OUT=$profile ANDWEORC_DURATION=${seconds}s start "$1"
    load "$1" >/dev/null 2>&1 &
    running+=($!)
    for _ in $(seq $((seconds + 20))); do
        grep -q '"record":"end"' "$profile" 2>/dev/null && break
        sleep 1
    done
    stop
    cp "$work/service" "$work/$1.$2.report"
    # Without it the report would be one of fewer parts, and not say so.
    grep -q '"record":"end"' "$profile" 2>/dev/null || die "no whole profile of $1 in round $2: $(cat "$work/service")"
}

truth() { # SERVICE ROUND
    local percent measured shares=(0 25 50)
    # Each round begins with another one: a steady drift cancels.
    for _ in $(seq 2 "$2"); do shares=("${shares[@]:1}" "${shares[0]}"); done
    for percent in "${shares[@]}"; do
        export DIAL_US=$((full_us * (100 - percent) / 100))
        start "$1"
        rate "$1" 1 >/dev/null
        measured=$(rate "$1" "$turn_seconds")
        echo "$2 $percent $measured" >>"$work/$1.truth"
        stop
    done
    unset DIAL_US
}

[ "${1:-}" != --build ] || { build && exit; }
services=("$@")
[ ${#services[@]} -gt 0 ] || services=(orders mini-redis echo)
for service in "${services[@]}"; do
    [ -n "$(dialed "$service")" ] || die "there is no service $service: there are orders, mini-redis and echo"
done
for tool in wrk redis-benchmark h2load python3 patch; do
    command -v $tool >/dev/null || die "$tool is not installed: apt-get install wrk redis-tools nghttp2-client python3 patch"
done
(build)

work=$(mktemp -d)
trap 'stop; rm -rf "$work"' EXIT
# A message of gRPC: not compressed, 8 bytes, field 1 is a text of 6.
printf '\0\0\0\0\010\012\006hello!' >"$work/message"
grpc=(-d "$work/message" -H 'content-type: application/grpc' -H 'te: trailers' "http://127.0.0.1:$port/echo.Echo/Say")
ahead=(chrt --fifo 1)
"${ahead[@]}" true 2>/dev/null || {
    echo "run.sh: real-time priority is not allowed here: the load waits for processors behind the service" >&2
    ahead=()
}
if [ "${AWAKE:-1}" != 0 ]; then
    # For as long as this is open: by this shell and what it starts.
    if { exec {latency}>/dev/cpu_dma_latency; } 2>/dev/null; then
        printf '\0\0\0\0' >&"$latency"
    else
        echo "run.sh: processors can't be kept awake here (/dev/cpu_dma_latency): predictions may be some points too low" >&2
    fi
fi
DIAL_PACE=$("$bin/dial")
export DIAL_PACE

for service in "${services[@]}"; do
    for round in $(seq "$rounds"); do
        predict "$service" "$round"
        truth "$service" "$round"
    done
    "$bin/cargo-andweorc" andweorc report "$work/$service".*.jsonl --format json >"$work/$service.json" ||
        die "no profile of $service: $(cat "$work/$service".*.report)"
    [ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp "$work/$service".{json,*.jsonl,*.report,truth} "$KEEP"; }
done
for service in "${services[@]}"; do echo "$service $(dialed "$service")"; done | "$here/table.py" "$work" ${JSON:+"$JSON"}
