#!/usr/bin/env -S python3 -B
"""Samples for count.py; a wrong count is a `not ok`."""
import sys

from count import count

SAMPLES = [
    ("cmocka", "1..2\nok 1 - one\nok 2 - two\n# ok - tests\n", 0, (2, 0)),
    ("cmocka with a failure", "1..2\nok 1 - one\nnot ok 2 - two\n# not ok - tests\n", 1, (1, 1)),
    ("two groups in one program", "1..1\nok 1 - one\n1..2\nok 1 - one\nok 2 - two\n", 0, (3, 0)),
    ("a crash after the first test", "1..3\nok 1 - one\n", 134, (1, 1)),
    ("a crash before any output", "", 139, (0, 1)),
    ("a time-out", "1..2\nok 1 - one\n", 124, (1, 1)),
    ("a plan that was not kept", "1..3\nok 1 - one\nok 2 - two\n", 0, (2, 1)),
    ("a status of 0 without a result", "hello\n", 0, (0, 1)),
    ("a leak after good tests", "1..1\nok 1 - one\n", 1, (1, 1)),
    ("nothing planned", "TAP version 13\n1..0\n", 0, (0, 1)),
    ("a skipped test", "ok 1 - one # SKIP no tool\nok 2 - two\n1..2\n", 0, (1, 1)),
    ("node subtests", "TAP version 13\n# Subtest: suite\n    # Subtest: a\n    ok 1 - a\n"
     "    ok 2 - b\n    1..2\nok 1 - suite\nok 2 - flat\n1..2\n", 0, (3, 0)),
    ("a failing node subtest is one failure", "# Subtest: suite\n    ok 1 - a\n"
     "    not ok 2 - b\n    1..2\nnot ok 1 - suite\n1..1\n", 1, (1, 1)),
    ("a suite that fails after good subtests", "# Subtest: suite\n    ok 1 - a\n    1..1\n"
     "not ok 1 - suite\n1..1\n", 1, (1, 1)),
    ("two levels of subtests", "        ok 1 - a\n        not ok 2 - b\n        1..2\n"
     "    not ok 1 - inner\n    1..1\nnot ok 1 - outer\nok 2 - last\n1..2\n", 1, (2, 1)),
    ("conformance", "PASS  a b  (3 ms)\nFAIL  c\n      Error: x\nPASS  d\n\n"
     "SDK 4.8.3 against http://h: 2 passed, 1 failed\n", 1, (2, 1)),
    ("a skipped conformance operation", "PASS  a\nSKIP  b  (no PAT)\n", 0, (1, 1)),
    ("a warning", "PASS  a\nWARN  b\n", 0, (1, 1)),
    ("scenarios", "ok   success (812 ms) COMPLETED attempts=1\n"
     "FAIL delayed (3 ms): status\n1 scenario(s) failed\n", 1, (1, 1)),
    ("lint", "ok - no gets()\nnot ok - no atoi(): src/a.c:3\nnot ok - no atoi(): src/b.c:4\n",
     1, (1, 2)),
]


def main():
    wrong = 0
    for name, text, status, expected in SAMPLES:
        got = count(text, status)
        wrong += got != expected
        print(f"ok - {name}" if got == expected else
              f"not ok - {name}: counted {got} instead of {expected}")
    return 1 if wrong else 0


sys.exit(main())
