#!/usr/bin/env python3
"""Prediction beside truth: table.py DIRECTORY [JSON] < lines of SERVICE SPAN. Fails if a span is not first, or a prediction more than 5 points off.

The directory has a SERVICE.json, the report, and a SERVICE.truth, lines of ROUND PERCENT RATE. The cases are
written to the file JSON, if one is named."""

import json
import statistics
import sys

# The 97.5 % points of Student's distribution, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}

LIMIT = 5.0


def truth(path):
    """By percentage: the mean change in %, and half its 95 % interval; and the rate of the unchanged program."""
    rounds = {}
    for line in open(path, encoding="utf-8"):
        number, percent, rate = line.split()
        rounds.setdefault(number, {})[int(percent)] = float(rate)
    changes = {}
    for percent in (25, 50):
        of = [100 * (rates[percent] / rates[0] - 1) for rates in rounds.values()]
        free = len(of) - 1
        half = STUDENT.get(free, 2.2) * statistics.stdev(of) / len(of) ** 0.5 if free else float("nan")
        changes[percent] = statistics.mean(of), half
    return changes, statistics.mean(rates[0] for rates in rounds.values())


def interval(of):
    return "" if of["ci_low"] is None else f" [{of['ci_low']:+.1f}, {of['ci_high']:+.1f}]"


first_right, worst, names, cases = 0, 0.0, [], []
for line in sys.stdin:
    service, span = line.split()
    names.append(service)
    report = json.load(open(f"{sys.argv[1]}/{service}.json", encoding="utf-8"))
    changes, rate = truth(f"{sys.argv[1]}/{service}.truth")
    point = report["points"][0]["name"] if report["points"] else None
    ranking = [target["name"] for target in report["targets"]]
    right = ranking[:1] == [span]
    first_right += right
    print(f"{service}: {rate:.0f}/s, point {point}; ranking: {', '.join(ranking) or 'empty'}" + ("" if right else f" ({span} is not first)"))
    effects = {
        round(100 * effect["speedup"]): effect
        for target in report["targets"] if target["name"] == span
        for effect in target["effects"] if effect["point"] == point and effect["metric"] == "throughput"
    }
    for percent, (true, half) in changes.items():
        text = f"  {span} {percent} % faster: truth {true:+6.1f} % [{true - half:+.1f}, {true + half:+.1f}]"
        effect = effects.get(percent)
        if effect is None:
            worst = float("inf")
            print(f"{text}, not predicted")
            continue
        error = effect["effect_pct"] - true
        worst = max(worst, abs(error))
        cases.append({
            "service": service, "part": span, "speedup": percent / 100, "is_first": right, "rate": rate,
            "truth": {"pct": true, "low": true - half, "high": true + half},
            "predicted": {"pct": effect["effect_pct"], "low": effect["ci_low"], "high": effect["ci_high"]},
        })
        print(f"{text}, predicted {effect['effect_pct']:+6.1f} %{interval(effect)}, error {error:+.1f}")
    for target in report["targets"]:
        if target["name"] != span:
            impact = next((i for i in target["impacts"] if i["point"] == point and i["metric"] == "throughput"), None)
            if impact:
                print(f"  {target['name']}: impact {impact['slope']:+.1f} %{interval(impact)}, {target['verdict']}")

if len(sys.argv) > 2:
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(cases, file, indent=2)
print(f"SERVICES services={len(names)} first_right={first_right} worst_error={worst:.1f}")
sys.exit(first_right < len(names) or worst > LIMIT)
