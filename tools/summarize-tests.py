#!/usr/bin/env python3
"""Summarizes CTest's JUnit report by area (test_areas.py). Tests of no area form the area "other".
The last line is "N passed, N failed[, N skipped]".

    summarize-tests.py REPORT
"""
import sys
import xml.etree.ElementTree

from test_areas import AREAS, area_of


def outcome_of(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    return "passed" if case.get("status") == "run" else "skipped"


def main(report):
    results = {area: {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0} for area in [*AREAS, "other"]}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        row = results[area_of(case.get("name")) or "other"]
        row[outcome_of(case)] += 1
        row["seconds"] += float(case.get("time", 0))
    print(f"\n{'area':<10}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for area, row in results.items():
        if row["passed"] + row["failed"] + row["skipped"]:
            print(f"{area:<10}{row['passed']:>8}{row['failed']:>8}{row['skipped']:>9}{row['seconds']:>9.0f}")
    total = {key: sum(row[key] for row in results.values()) for key in ("passed", "failed", "skipped")}
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"\n{total['passed']} passed, {total['failed']} failed{skipped}")


main(sys.argv[1])
