#!/usr/bin/env -S python3 -B
"""Samples for tests/lint/english.py: phrases that it finds, good English, and text without prose."""
import pathlib
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests" / "lint"))
from english import PHRASES, count, folder_of, phrases_in  # noqa: E402
from prose import clean  # noqa: E402

FOUND = [
    ("sentence opens with What", "Reads it. What comes later is ignored."),
    ("sentence opens with What", "| a | What is kept |"),
    ("sentence opens with Who", "Whoever holds the lock writes."),
    ("sentence opens with Of", "Of a stream the last chunk is kept."),
    ("sentence opens with Else", "Returns 0. Else the caller waits."),
    ("sentence opens with True:", "Closes it. False: it is open."),
    ("behind for after", "the comma behind the value"),
    ("nobody, somebody, everybody", "Nobody listens to the topic."),
    ("is no X", "This is no number."),
    ("is none", "an answer that is none"),
    ("goes on", "The writer went on."),
    ("is over", "until the wait is over"),
    ("under way", "frames on their way"),
    ("beside", "a file beside the database"),
    ("anew", "It is read anew."),
    ("so many", "Reserves so many bytes."),
    ("so many", "So long the lease lasts."),
    ("has not to", "The caller has not to free it."),
    ("takes over", "Takes over the text."),
    ("NULL is fine", "Frees it; NULL is fine."),
    ("programs that tell, say, hear or ask", "The client is told its limit."),
    ("programs that tell, say, hear or ask", "The hub hears of each change."),
]

GOOD = [
    "What does a worker see? A queue.",
    "The value of what is stored.",
    "what a client sends: a field comment",
    "of the gateway",
    "Of course it returns.",
    "A gateway behind a proxy, or behind HAProxy, trusts the header.",
    "A reader that falls behind skips states.",
    "This is for people: nobody reads a page of tables.",
    "everybody may read the file",
    "It is no longer in memory.",
    "There is no key, and there are none elsewhere.",
    "The body is over the limit, which is over 64 KiB.",
    "The list is so long that it is sent in pages.",
    "The standby takes over when the leader dies.",
    "This tells the two kinds apart.",
    "besides, renewed",
    'an error of the form "is no number"',
    "`told` and heard_at are names, and so is goes_on().",
]

FILES = {  # name, text, how many phrases
    "a.c": ('/* a.c - reads\n *\n * Goes on.\n *\n *      anew --> anew\n */\nint a; /* of the wait */\n'
            'const char *b = "goes on"; // It\n// went on.\n', 2),
    "b.mjs": ("// Beside\nconst a = `// anew`, b = /['\"]anew/, c = 'anew'; // anew\n", 2),
    "c.py": ('"""Anew."""\n# beside\na = "anew"  # goes\n', 2),
    "d.sh": ("#!/bin/sh\n# Anew.\necho '# anew' \"$#\" # on\n", 1),
    "e.md": ("# What it does\n\nIt goes on.\n\n    goes on\n\n```\nanew\n```\n\n`beside` | Who writes\n", 2),
}


def judge(name, right):
    print(f"{'ok' if right else 'not ok'} - {name}")
    return not right


def main():
    wrong = 0
    for name, text in FOUND:
        names = [found for _, found, _ in phrases_in(clean(text))]
        wrong += judge(f"finds \"{name}\" in: {text}", names == [name])
    for text in GOOD:
        wrong += judge(f"accepts: {text}", not list(phrases_in(clean(text))))
    wrong += judge("each phrase has a sample", {name for name, _ in FOUND} == set(PHRASES))
    for name, (text, number) in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "src", name)
            path.parent.mkdir()
            path.write_text(text)
            pathlib.Path(folder, "README.md").touch()
            found = count(pathlib.Path(folder)).get(folder_of(pathlib.Path("src", name)), [])
            wrong += judge(f"{name} has {number}: {found}", len(found) == number)
    return 1 if wrong else 0


sys.exit(main())
