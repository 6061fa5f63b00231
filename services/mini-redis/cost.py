#!/usr/bin/env python3
"""What andweorc costs mini-redis: its throughput under redis-benchmark, without andweorc, with tracing's registry alone, with andweorc and
not enabled, and enabled between experiments. The four servers live side by side and are loaded in turns; ratios are paired by turns.

    services/mini-redis/cost.py [GENERATIONS [TURNS]]     # default 10 and 6, about three minutes
    services/mini-redis/cost.py --build                   # builds only

One core is the server's, the other the load's: 8 connections, one command under way in each, SET and GET by halves. Needs redis-benchmark and
taskset (Debian: apt-get install redis-tools util-linux). Nothing else should run meanwhile.
"""

import csv
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
PORT = 3141
COMMANDS = 20_000
# Name, executable, what COST says.
SERVERS = [
    ("without andweorc", "without", ""),
    ("tracing's registry", "without", "registry"),
    ("not enabled", "profiled", ""),
    ("enabled", "profiled", "on"),
]
# Student's 97.5 % points, by degrees of freedom.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14]


def build():
    """Both executables, each under a name of its own."""
    copy = subprocess.run([HERE / "prepare.sh", "cost"], check=True, text=True, capture_output=True).stdout.strip()
    for name, features in ("without", []), ("profiled", ["--features", "profiled"]):
        cargo = ["cargo", "build", "--quiet", "--release", "--bin", "mini-redis-server"]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
        subprocess.run([*cargo, *features, "--manifest-path", f"{copy}/Cargo.toml"], check=True, env=environment)
        shutil.copy(TARGET / "release/mini-redis-server", executable(name))


def executable(name):
    return TARGET / f"release/mini-redis-cost-{name}"


def start(at):
    _, name, cost = SERVERS[at]
    command = ["taskset", "-c", "0", executable(name), "--port", str(PORT + at)]
    return subprocess.Popen(command, env={**os.environ, "COST": cost})


def rate(at, commands=COMMANDS):
    """Commands a second, SET and GET."""
    command = ["taskset", "-c", "1", "redis-benchmark", "-p", str(PORT + at), "-t", "set,get", "-c", "8"]
    out = subprocess.run([*command, "-n", str(commands), "--csv"], check=True, text=True, capture_output=True).stdout
    rates = {row[0]: float(row[1]) for row in csv.reader(out.splitlines()) if row and row[0] in ("SET", "GET")}
    return 2 / (1 / rates["SET"] + 1 / rates["GET"])


def generation(turns):
    """The rates of all servers, turn by turn, of processes that were started for this."""
    running = [start(at) for at in range(len(SERVERS))]
    try:
        time.sleep(0.3)
        for at in range(len(SERVERS)):
            rate(at, COMMANDS // 4)
        rates = []
        for turn in range(turns):
            measured = [0.0] * len(SERVERS)
            for step in range(len(SERVERS)):
                # Each turn begins with another one.
                at = (turn + step) % len(SERVERS)
                measured[at] = rate(at)
            rates.append(measured)
        return rates
    finally:
        for server in running:
            server.kill()
            server.wait()


def ratio(generations, base, at):
    """The ratio of two servers, and its 95 % interval over the generations."""
    each = [statistics.mean(math.log(turn[at] / turn[base]) for turn in turns) for turns in generations]
    mean = statistics.mean(each)
    half = STUDENT[min(len(each) - 2, len(STUDENT) - 1)] * statistics.stdev(each) / math.sqrt(len(each))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def main():
    build()
    if "--build" in sys.argv:
        return
    generations, turns = (int(argument) for argument in [*sys.argv[1:], *("10", "6")[len(sys.argv) - 1 :]])
    if generations < 2:
        sys.exit("cost.py: an interval needs two generations")
    rates = [generation(turns) for _ in range(generations)]
    print(f"mini-redis, {generations} times four processes, {turns} turns of {2 * COMMANDS} commands each")
    for at, (name, *_) in enumerate(SERVERS):
        mean = statistics.mean(turn[at] for turns in rates for turn in turns)
        over = "   ".join(
            f"{ratio(rates, base, at)[0]:.4f} [{ratio(rates, base, at)[1]:.4f}, {ratio(rates, base, at)[2]:.4f}]"
            for base in (0, 1)
        )
        print(f"  {name:<20} {mean:>8.0f}/s   over none, and over the registry: {over}")
    off, on = ratio(rates, 0, 2)[0], ratio(rates, 0, 3)[0]
    print(f"MINI_REDIS off_ratio={off:.4f} on_ratio={on:.4f} on_over_registry={ratio(rates, 1, 3)[0]:.4f}")


main()
