#!/usr/bin/env -S python3 -B
"""The chapters in deploy stay short: an index and chapters that can be read in one sitting.

Words are counted as wc -w does, so the bars of tables count, too. CHANGELOG.md is a history and
has no limit."""
import sys

from common import Rules, root

CHAPTER_LIMIT, INDEX_LIMIT = 2000, 300
CHAPTERS = f"chapters in deploy of at most {CHAPTER_LIMIT} words"
INDEX = f"deploy/README.md of at most {INDEX_LIMIT} words"


def main():
    top = root()
    rules = Rules(CHAPTERS, INDEX)
    for path in sorted((top / "deploy").glob("*.md")):
        is_index = path.name == "README.md"
        words = len(path.read_text().split())
        if path.name != "CHANGELOG.md" and words > (INDEX_LIMIT if is_index else CHAPTER_LIMIT):
            rules.broken(INDEX if is_index else CHAPTERS, f"{path.name} has {words}")
    return rules.report()


sys.exit(main())
