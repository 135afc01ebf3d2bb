"""The files that the rules check, and how the rules report."""
import pathlib
import sys

OURS = ("src", "include", "bench", "tests", "deploy")
OTHERS = {"node_modules", "conformance", "corpus", "pictures", "__pycache__"}


def root():
    """The project: the first argument, else where this file lies."""
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else f"{__file__}/../../..").resolve()


def files(top, *suffixes):
    """Our own files with one of the suffixes (any, when none is given), in order."""
    for folder in OURS:
        for path in sorted((top / folder).rglob("*")):
            parts = path.relative_to(top).parts
            if path.is_file() and not OTHERS.intersection(parts):
                if not suffixes or path.suffix in suffixes:
                    yield path


def lines(path):
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


class Rules:
    """Counts: a rule without a violation is one `ok`, each violation is one `not ok`."""

    def __init__(self, *names):
        self.violations = {name: [] for name in names}

    def broken(self, name, where):
        self.violations[name].append(where)

    def report(self):
        for name, found in self.violations.items():
            for where in found:
                print(f"not ok - {name}: {where}")
            if not found:
                print(f"ok - {name}")
        return 1 if any(self.violations.values()) else 0
