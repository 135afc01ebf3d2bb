#!/usr/bin/env -S python3 -B
"""Counts what one test program reported, and prints `PASSED FAILED`.

    count.py STDOUT_FILE EXIT_STATUS

It counts the lines of TAP (`ok`, `not ok`: cmocka, node, our lints), of the conformance
scripts (`PASS`, `FAIL`, `WARN`) and of e2e.mjs (`ok   name`, `FAIL name`). A skipped
test counts as failed. A TAP test that has subtests is counted by them: its own line follows
their plan, which is indented deeper. A program that reported no failure
but exited with a status other than 0, reported no test, or did not keep its plan, counts as one
failure.
"""
import re
import sys

RESULT = re.compile(r"( *)(ok|not ok|PASS|FAIL|WARN|SKIP)\b(.*)")
PLAN = re.compile(r"( *)1\.\.(\d+)")
PASSED = {"ok", "PASS"}


def count(text, status):
    passed = failed = 0
    subtests = None  # (indent, failures so far) of the plan before this line
    failures_at = {}  # indent -> failures among the results at that depth, since last parent
    planned = reported = None
    for line in text.splitlines():
        if plan := PLAN.fullmatch(line):
            if len(plan[1]) == 0:
                planned = (planned or 0) + int(plan[2])  # one plan per group of tests
            elif plan[2] != "0":
                subtests = len(plan[1])
            continue
        result = RESULT.match(line)
        if not result:
            continue
        indent, word, rest = len(result[1]), result[2], result[3]
        good = word in PASSED and not re.search(r"# (SKIP|TOD[O])\b", rest, re.IGNORECASE)
        if indent == 0 and word in ("ok", "not ok"):
            reported = (reported or 0) + 1
        if subtests is not None and indent < subtests:
            if not good and not failures_at.pop(subtests, 0):
                failed += 1  # the test itself failed, after good subtests
            failures_at.pop(subtests, None)
            subtests = None
        elif good:
            passed += 1
        else:
            failed += 1
        if not good:
            failures_at[indent] = failures_at.get(indent, 0) + 1
    if planned is not None and planned != (reported or 0):
        failed += 1
    if not failed and (status != 0 or not passed):
        failed = 1
    return passed, failed


if __name__ == "__main__":
    with open(sys.argv[1], errors="replace") as file:
        print(*count(file.read(), int(sys.argv[2])))
