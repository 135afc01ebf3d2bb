#!/usr/bin/env -S python3 -B
"""Rejects functions, constructions and texts that do not belong in the project."""
import re
import sys

from common import Rules, files, lines, root

FUNCTIONS = "strcpy sprintf strcat atoi gets strtok localtime gmtime alloca".split()
# base/json/json_tree.h replaces these, since it reads and writes strings that they refuse.
NOT_IN_SRC = "json_loads json_loadb json_dumps json_dumpb".split()

IN_C = {
    **{f"no {name}()": rf"\b{name}\s*\(" for name in FUNCTIONS},
    **{f"no {name}() in src": rf"\b{name}\s*\(" for name in NOT_IN_SRC},
    "no typedef of a struct": r"\btypedef\s+struct\b[^(]*$",
    "no void *data": r"\bvoid\s*\*\s*data\b",
}
ONLY_IN = {  # a construction, and the only file that may use it
    "the pool gets its jobs from base/work.c": (r"\buv_queue_work\s*\(", "src/base/work.c"),
}
IN_ANY = {
    "no mark of unfinished work": r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b",
    "no path of one machine": r"(?<![\w./-])/(home|root|work|Users)/\w",
    "no address in a lockfile": r'"resolved":\s*"https?://',
}
# One search with each of these skips the lines that break no rule.
SOME_IN_ANY = re.compile("|".join(f"(?:{pattern})" for pattern in IN_ANY.values()))
SOME_IN_C = re.compile("|".join(f"(?:{pattern})" for pattern in
                                [*IN_C.values(), *(pattern for pattern, _ in ONLY_IN.values())]))
# Node of Debian 12 is 18; the dashboard's scripts are built for browsers.
NEWER_THAN_NODE_18 = re.compile(r"\.(toReversed|toSorted|toSpliced|isWellFormed)\(|"
                                r"\bimport\.meta\.(dirname|filename)\b|"
                                r"\b(Object|Map)\.groupBy\(|\bPromise\.withResolvers\(|"
                                r"\bArray\.fromAsync\(")
NODE_18 = "no function that Node 18 lacks"
NOT_CODE = re.compile(r"/\*.*?\*/|//.*|\"(\\.|[^\"\\])*\"")


def main():
    top = root()
    rules = Rules(*IN_C, *ONLY_IN, *IN_ANY, NODE_18)
    for path in files(top):
        place, is_c = path.relative_to(top), path.suffix in (".c", ".h")
        for number, line in lines(path):
            where = f"{place}:{number}"
            for rule, pattern in IN_ANY.items() if SOME_IN_ANY.search(line) else ():
                if re.search(pattern, line):
                    rules.broken(rule, where)
            if path.suffix == ".mjs" and NEWER_THAN_NODE_18.search(line):
                rules.broken(NODE_18, where)
            if not is_c or line.lstrip().startswith("*"):
                continue
            code = NOT_CODE.sub("", line).split("/*")[0]
            if not SOME_IN_C.search(code):
                continue
            for rule, pattern in IN_C.items():
                if re.search(pattern, code) and (not rule.endswith(" in src") or
                                                 path.is_relative_to(top / "src")):
                    rules.broken(rule, where)
            for rule, (pattern, home) in ONLY_IN.items():
                if re.search(pattern, code) and str(place) != home:
                    rules.broken(rule, where)
    for path in sorted((top / "tests" / "conformance").glob("*/package-lock.json")):
        for number, line in lines(path):
            if re.search(IN_ANY["no address in a lockfile"], line):
                rules.broken("no address in a lockfile", f"{path.relative_to(top)}:{number}")
    return rules.report()


sys.exit(main())
