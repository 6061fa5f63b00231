"""Says whether a JSON report has the right answer: `slow` matters, and `other` does not. Exits with 1 when it has not."""

import json
import sys

# From this effect on throughput on, in %, a part matters.
MATTERS = 5.0


def effect(report, name):
    """The interval of the effect of a span on the throughput of orders."""
    point = next(i for i, one in enumerate(report["points"]) if one["name"] == "order")
    for target in report["targets"]:
        if target["kind"] == "span" and target["name"] == name:
            for one in target["effects"]:
                if one["point_index"] == point and one["metric"] == "throughput":
                    return one["ci_low"], one["ci_high"]
    return None


def shown(name, interval):
    if interval is None or None in interval:
        return f"{name} not known"
    return f"{name} [{interval[0]:.1f}, {interval[1]:.1f}]"


def main():
    report = json.load(sys.stdin)
    if not any(one["name"] == "order" for one in report["points"]):
        print("no order was seen")
        return 1
    slow, other = effect(report, "slow"), effect(report, "other")
    print(", ".join([shown("slow", slow), shown("other", other)]))
    known = all(it is not None and None not in it for it in (slow, other))
    return 0 if known and slow[0] > MATTERS and other[1] < MATTERS else 1


sys.exit(main())
