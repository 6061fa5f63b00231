#!/usr/bin/env python3
"""The table of both: table.py COZ_ROWS ANDWEORC_JSON"""

import json
import sys

# How the bench of andweorc calls the first and the second part.
PARTS = {
    "slow_fast": ("slow", "fast"),
    "threads_mutex": ("inside", "outside"),
    "threads_barrier": ("long", "short"),
    "pipeline2": ("make", "use"),
}

coz = {}
for line in open(sys.argv[1], encoding="utf-8"):
    program, part, percent, truth, predicted = line.split()
    name = PARTS[program][part == "second"]
    coz[program, name, int(percent)] = (float(truth), None if predicted == "none" else float(predicted))

ours = {}
for report in json.load(open(sys.argv[2], encoding="utf-8")):
    for row in report["rows"]:
        pair = row["throughput"]
        key = report["program"], row["target"], round(row["speedup"] * 100)
        ours[key] = (pair["truth"]["pct"], pair["predicted"]["pct"])

print(f"{'program':<18}{'part':<10}{'faster':>7} |{'truth':>8}{'coz':>8}{'error':>8} |{'truth':>8}{'andweorc':>10}{'error':>8}")
errors = {"coz": [], "andweorc": []}
for key in [key for key in coz if key in ours]:
    text = f"{key[0]:<18}{key[1]:<10}{key[2]:>5} %"
    for who, (truth, predicted), width in (("coz", coz[key], 8), ("andweorc", ours[key], 10)):
        text += f" |{truth:>+8.1f}"
        if predicted is None:
            text += f"{'none':>{width}}{'':>8}"
        else:
            errors[who].append(abs(predicted - truth))
            text += f"{predicted:>+{width}.1f}{predicted - truth:>+8.1f}"
    print(text)
for who, of in errors.items():
    if of:
        print(f"{who}: mean error {sum(of) / len(of):.1f} points, worst {max(of):.1f}, in {len(of)} cases")
