#!/usr/bin/env python3
"""The table of overhead.sh: overhead_table.py ROWS

Each row is a round: the program, then items a second when not profiled, in andweorc's baselines and experiments, and in coz's. What is missing
is paired within rounds; intervals are 95 %, Student's, over the rounds.
"""

import statistics
import sys

# Student's 97.5 % points, by degrees of freedom.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13]


def cell(missing):
    """Mean and interval of what is missing, in percent; `none` when a round has no experiment that saw the point."""
    if None in missing:
        return f"none in {missing.count(None)} of {len(missing)}"
    mean = statistics.mean(missing)
    if len(missing) < 2:
        return f"{mean:.1f}"
    student = STUDENT[min(len(missing) - 2, len(STUDENT) - 1)]
    margin = student * statistics.stdev(missing) / len(missing) ** 0.5
    return f"{mean:.1f} [{mean - margin:.1f}, {mean + margin:.1f}]"


rounds = {}
for line in open(sys.argv[1], encoding="utf-8"):
    program, plain, *rates = line.split()
    missing = [None if rate == "none" else (float(plain) / float(rate) - 1) * 100 for rate in rates]
    rounds.setdefault(program, []).append(missing)

print("| program | rounds | andweorc, baseline | experiment | coz, baseline | experiment |")
print("|---|---|---|---|---|---|")
for program, missing in rounds.items():
    cells = " | ".join(cell(column) for column in zip(*missing))
    print(f"| `{program}` | {len(missing)} | {cells} |")
