#!/usr/bin/env bash
# The services of the chain in three network namespaces, with a delay between them: what a profile of all three predicts, and
# the truth.
#
#   sudo env "PATH=$PATH" examples/chain/netns.sh --truth inventory.lookup=25     # arguments are those of the example
#
# Gateway, coordinator and customers are in one namespace. The inventory and the payments have one each, and a link to the
# gateway, on which either side delays what it sends. So a request and its answer take twice the delay.
#
#   DELAYS    milliseconds, one run for each (default "0.2 2"); 0 delays nothing, and needs no netem
#   PROFILE   the profile of cargo to build with, release or dev (default release)
#
# Needs root, ip and tc. The namespaces are removed at the end, on Ctrl-C too.
set -euo pipefail
cd "$(dirname "$0")/../.."

delays=${DELAYS:-0.2 2}
profile=${PROFILE:-release}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
gateway=chain-$$-gateway
inventory=chain-$$-inventory
payments=chain-$$-payments

die() {
    echo "netns.sh: $*" >&2
    exit 1
}

[ $# -gt 0 ] || die "say what to test, as in: netns.sh --truth inventory.lookup=25"
case $profile in
    release) built=$target/release ;;
    dev) built=$target/debug ;;
    *) die "PROFILE=$profile is neither release nor dev" ;;
esac
[ "$(id -u)" = 0 ] || die "network namespaces need root: sudo env \"PATH=\$PATH\" $0 $*"
for tool in ip tc; do
    command -v $tool >/dev/null || die "$tool is not installed: apt-get install iproute2 (Fedora: dnf install iproute iproute-tc)"
done

# Processes that are left in the namespaces.
left() {
    local namespace
    for namespace in "$gateway" "$inventory" "$payments"; do ip netns pids "$namespace" 2>/dev/null || true; done
}

driver=
clean_up() {
    trap '' INT TERM HUP
    local namespace pid
    if [ -n "$driver" ]; then kill "$driver" 2>/dev/null || true; fi
    # The command ends the services in order, which takes some seconds at most.
    for _ in $(seq 150); do
        [ -n "$(left)" ] || break
        sleep 0.1
    done
    for pid in $(left); do kill -KILL "$pid" 2>/dev/null || true; done
    for namespace in "$gateway" "$inventory" "$payments"; do ip netns delete "$namespace" 2>/dev/null || true; done
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for namespace in "$gateway" "$inventory" "$payments"; do
    ip netns add "$namespace" ||
        die "network namespaces are not permitted here: they need CAP_SYS_ADMIN (in a container: docker run --privileged)"
    ip -n "$namespace" link set lo up
done

# Connects a service with the gateway: NAMESPACE SUBNET.
connect() {
    ip -n "$gateway" link add "to-$2" type veth peer name gateway netns "$1" ||
        die "the kernel has no pairs of virtual interfaces: modprobe veth (CONFIG_VETH)"
    ip -n "$gateway" address add "10.77.$2.1/24" dev "to-$2"
    ip -n "$1" address add "10.77.$2.2/24" dev gateway
    ip -n "$gateway" link set "to-$2" up
    ip -n "$1" link set gateway up
    # The coordinator has one address for all.
    ip -n "$1" route add default via "10.77.$2.1"
}
connect "$inventory" 1
connect "$payments" 2

# Delays what a namespace sends on an interface: NAMESPACE INTERFACE MILLISECONDS.
delay() {
    tc -n "$1" qdisc del dev "$2" root 2>/dev/null || true
    [ "$3" != 0 ] || return 0
    tc -n "$1" qdisc add dev "$2" root netem delay "$3ms" ||
        die "the kernel can't delay by $3 ms: modprobe sch_netem (CONFIG_NET_SCH_NETEM; Fedora: dnf install kernel-modules-extra), or DELAYS=0"
}
delay_all() {
    delay "$gateway" to-1 "$1"
    delay "$gateway" to-2 "$1"
    delay "$inventory" gateway "$1"
    delay "$payments" gateway "$1"
}
# Before the build, which would be in vain.
for ms in $delays; do delay_all "$ms"; done

cargo build --quiet --profile "$profile" --example chain --features axum,remote
for ms in $delays; do
    delay_all "$ms"
    echo "== each way takes $ms ms"
    ip netns exec "$gateway" "$built/examples/chain" "$@" --listen 10.77.1.1:7100 \
        --at inventory=10.77.1.2:7101 --via inventory="ip netns exec $inventory" \
        --at payments=10.77.2.2:7102 --via payments="ip netns exec $payments" &
    driver=$!
    wait "$driver"
    driver=
done
