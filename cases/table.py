#!/usr/bin/env python3
"""What the fix brought beside what the profile said: table.py DIRECTORY. Fails if no profile of a case has its culprit among the first three, as one that
matters.

The directory has `cases`, lines of CASE and a regex of the culprit, with a tab between; a CASE.truth, lines of ROUND VERSION RATE; and a
CASE.WAY.json, the report, for each way to profile."""

import glob
import json
import math
import re
import statistics
import sys

# The 97.5 % points of Student's distribution, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def truth(path):
    """Prints the rates, and the ratio of the two of a round (geometric mean and 95 % interval)."""
    rounds = {}
    for line in open(path, encoding="utf-8"):
        number, version, rate = line.split()
        rounds.setdefault(number, {})[version] = float(rate)
    old, new = (statistics.mean(of[version] for of in rounds.values()) for version in ("old", "new"))
    logs = [math.log(of["new"] / of["old"]) for of in rounds.values()]
    mean, free = statistics.mean(logs), len(logs) - 1
    half = STUDENT.get(free, 2.2) * statistics.stdev(logs) / len(logs) ** 0.5 if free else math.nan
    times, low, high = (math.exp(log) for log in (mean, mean - half, mean + half))
    print(f"  old {old:.1f}/s, new {new:.1f}/s: {times:.2f} times [{low:.2f}, {high:.2f}], {100 * (times - 1):+.0f} %")


def interval(of):
    return "" if of["ci_low"] is None else f" [{of['ci_low']:+.1f}, {of['ci_high']:+.1f}]"


def ranking(path, culprit):
    """Prints the first three targets and their predictions, and returns whether the culprit is among them and is known to matter."""
    report = json.load(open(path, encoding="utf-8"))
    found = False
    for rank, target in enumerate(report["targets"][:3], 1):
        name = f"{target['kind']} {target['name']}"
        is_culprit = re.search(culprit, name) is not None
        found |= is_culprit and target["verdict"] == "matters"
        effects = ", ".join(
            f"{100 * effect['speedup']:.0f} %: {effect['effect_pct']:+.1f}{interval(effect)}"
            for effect in target["effects"] if effect["point"] == "done" and effect["metric"] == "throughput"
        )
        print(f"    {rank}. {name}{' (culprit)' if is_culprit else ''}: {target['verdict']}; {effects or 'no effect estimated'}")
    if not report["targets"]:
        print("    empty")
    return found


named = {}
for line in open(f"{sys.argv[1]}/cases", encoding="utf-8"):
    case, culprit = line.rstrip("\n").split("\t")
    print(case)
    truth(f"{sys.argv[1]}/{case}.truth")
    for path in sorted(glob.glob(f"{sys.argv[1]}/{case}.*.json")):
        print(f"  profile of the version before, {path.split('.')[-2]}:")
        named[case] = ranking(path, culprit) | named.get(case, False)

print(f"CASES profiled={len(named)} culprit_named={sum(named.values())}")
sys.exit(not all(named.values()))
