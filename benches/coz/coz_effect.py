#!/usr/bin/env python3
"""The change of the throughput in percent that coz predicts: coz_effect.py BASELINE_PROFILE SPEEDUP_PROFILE
Of one profile the throughput itself: coz_effect.py PROFILE

Prints `none` when coz held no experiment that saw the point.
"""

import sys


def rate(path):
    """Hits of the point a second. The durations of a coz profile have the inserted delays taken out already."""
    hits = nanoseconds = duration = 0
    try:
        lines = open(path, encoding="utf-8").read().splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        kind, *fields = line.split("\t")
        values = dict(field.split("=", 1) for field in fields if "=" in field)
        if kind == "experiment":
            duration = int(values["duration"])
        elif kind in ("throughput-point", "progress-point") and values["name"] == "done":
            hits += int(values["delta"])
            nanoseconds += duration
    return hits / nanoseconds if hits else None


if len(sys.argv) == 2:
    alone = rate(sys.argv[1])
    print("none" if alone is None else f"{alone * 1e9:.1f}")
    sys.exit()
base, fast = (rate(path) for path in sys.argv[1:3])
print("none" if base is None or fast is None else f"{(fast / base - 1) * 100:.1f}")
