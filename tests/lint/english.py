#!/usr/bin/env -S python3 -B
"""Counts phrases that a new reader must read twice, in comments and chapters, for each folder.

    english.py [TOP]                   fails when a folder has more of them than english.txt allows
    english.py TOP --list FOLDER       names the place of each phrase of that folder
    english.py TOP --write             lowers the budgets in english.txt; none of them is raised

A budget may only fall. If a folder is renamed, rename its line in english.txt by hand. The chapters
of a folder have their own line, `FOLDER/*.md`. The line `messages` counts the strings of all files of
src: log lines, errors, help. The aim is not a count of zero but a reader who understands each sentence
at once. GOOD lists uses that are good English."""
import re
import sys

from common import Rules, files_below, lines, root
from prose import SUFFIXES, prose

RULE = "no folder has more phrases that are hard to read than its budget allows"
BUDGETS = "tests/lint/english.txt"
SKIPPED = {".trigger", "node_modules", "corpus", "pictures", "built", "__pycache__"}

OPENS = r"(?:\A|[.!?:]\s|\n\s*\n|\n\s*[-*] |\|)[\s*(\[]*"
BE = r"(?:is|are|was|were|be|been)"

# The phrases, and words to use instead.
PHRASES = {
    "sentence opens with What": (rf"{OPENS}What\b", "name the thing: \"Bytes that …\""),
    "sentence opens with Who": (rf"{OPENS}(?:Who|Whoever|Whom)\b", "\"A client that …\""),
    "sentence opens with Of": (rf"{OPENS}Of\b(?! course)", "turn the sentence round"),
    "sentence opens with Else": (rf"{OPENS}Else\b", "\"Otherwise\""),
    "sentence opens with True:": (rf"{OPENS}(?:True|False):", "\"Returns true if …\""),
    "behind for after": (r"\bbehind\b", "after, following"),
    "nobody, somebody, everybody": (r"\b(?:no|some|every)body\b", "no client, another gateway"),
    "is no X": (rf"(?<!\bthere )\b{BE} no\b", "is not an X; invalid"),
    "is none": (rf"(?<!\bthere )\b{BE} none\b", "is not one; invalid; missing"),
    "goes on": (r"\b(?:go|goes|went|going|gone) on\b", "continues, makes progress"),
    "is over": (rf"\b{BE} over\b", "has ended, has expired"),
    "under way": (r"\b(?:under way|on (?:its|their) way)\b", "in progress, in flight"),
    "beside": (r"\bbeside\b", "along with, next to"),
    "anew": (r"\banew\b", "again, restart"),
    "so many": (r"\bso (?:many|long)\b", "that many, n"),
    "has not to": (r"\b(?:has|have|had) not to\b", "must not, or need not"),
    "takes over": (r"\b(?:take|takes|took|taken|taking)(?: \w+)? over\b", "takes ownership of"),
    "NULL is fine": (r"\bNULL is fine\b", "\"NULL is ignored\""),
    "programs that tell, say, hear or ask": (
        rf"\b(?:hears?|heard|tells|{BE} (?:\w+ )?(?:told|said|asked))\b",
        "report, log, return, receive, request"),
}

# Good uses: a pattern of the sentence around the phrase, and why it is good English.
GOOD = {
    "sentence opens with What": [
        (r"\bWhat[^.!|]*\?", "a question"),
    ],
    "sentence opens with Who": [
        (r"\bWho[^.!|]*\?", "a question"),
    ],
    "behind for after": [
        (r"\bbehind (?:a|an|the|its|their|any|another|such a|one's own)?\s*(?:\w+ )?"
         r"(?:prox(?:y|ies)|load balancer|firewall|NAT|TLS|nginx|HAProxy|Caddy)\b",
         "the place of a server in a network"),
        (r"\b(?:fall|falls|fell|fallen|lag|lags|lagged|leave|leaves|left) behind\b",
         "a reader that is slower than what it reads"),
        (r"\b(?:too far|subscriptions) behind\b", "the same, in messages that clients and logs match"),
        (r"\bbehind (?:an|the|one|this) (?:interface|contract|header|API)\b", "an implementation"),
    ],
    "nobody, somebody, everybody": [
        (r"\b(?:people|person|human)\b[^.]*\bbody\b|\bbody\b[^.]*\b(?:people|person|human)\b",
         "people"),
        (r"\beverybody (?:can|may|could) (?:read|write)\b", "permissions of a file"),
        (r"\b(?:user|group|uid|account) nobody\b", "the user of that name"),
    ],
    "is no X": [
        (rf"\b{BE} no (?:longer|more|less|fewer|later|earlier|newer|older|larger|smaller|better|"
         r"worse|other)\b", "a comparison"),
    ],
    "is over": [
        (rf"\b{BE} over (?:\d|a |an |the |its |their |\w*[- ]?(?:limit|budget|quota|share)\b)",
         "above a number"),
    ],
    "so many": [
        (r"\bso (?:many|long)(?:\s+\w+){0,4},? that\b", "a degree with its consequence"),
    ],
    "takes over": [
        (r"\b(?:gateway|lead|leader|leads|follower|standby|stands? by|successor)\b[^.]*"
         r"\btak\w+ over\b", "a gateway that begins to lead"),
    ],
    "programs that tell, say, hear or ask": [
        (r"\btells\b[^.,;]* apart\b", "distinguishes"),
        (r"\bbe it said\b|\bthat is said to be\b", "an idiom"),
        (r"\b(?:RFC|standard|specification|documentation|manual|chapter|README|comment)\b[^.]*"
         r"\btells\b", "a text tells its reader"),
    ],
}


def sentence_around(text, start, end):
    """The sentence in which a phrase stands, up to its mark."""
    begin = max(text.rfind(mark, 0, start + 1) for mark in (". ", ".\n", "|", "\n\n"))
    close = re.search(r"[.!?](?=\s|$)|\||\n\n", text[end:])
    return text[max(begin, 0):end + close.end() if close else len(text)]


def is_good(name, text, match):
    sentence = re.sub(r"\s+", " ", sentence_around(text, *match.span()))
    for pattern, _ in GOOD.get(name, ()):
        if re.search(pattern.replace(r"\bbody\b", r"(?:no|some|every)body\b"), sentence):
            return True
    return False


def phrases_in(text):
    """Yields (offset, name, phrase) of each phrase of a block of prose."""
    for name, (pattern, _) in PHRASES.items():
        flags = 0 if name.startswith("sentence") else re.IGNORECASE
        for match in re.finditer(pattern, text, flags):
            if not is_good(name, text, match):
                found = match.group()
                start = match.start() + len(found) - len(found.lstrip(".!?:|*-([ \n"))
                yield start, name, text[start:match.end() + 50].split("\n")[0]


def messages(path):
    """Yields (line, text) of each string of two words or more in C: log lines, errors, help."""
    text = re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group()),
                  path.read_text(), flags=re.DOTALL)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        words = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group()))
        if " " in words.strip():
            yield text.count("\n", 0, match.start()) + 1, words.replace("\\n", "\n")


def folder_of(name):
    folder = name.parent.as_posix()
    return f"{folder}/*.md" if name.suffix == ".md" else folder


def sources(top):
    yield top / "README.md"
    for folder in ("src", "include", "bench", "tests", "deploy"):
        yield from files_below(top / folder, *SUFFIXES, others=SKIPPED)


def count(top):
    """{folder: [place: name: phrase]} of all folders that have any."""
    found = {}
    for path in sources(top):
        name = path.relative_to(top)
        for line, text in prose(path):
            for offset, phrase, words in phrases_in(text):
                where = f"{name}:{line + text.count(chr(10), 0, offset)}"
                found.setdefault(folder_of(name), []).append(f"{where}: {phrase}: {words}")
        if name.parts[0] == "src" and path.suffix in {".c", ".h", ".def"}:
            for line, text in messages(path):
                for _, phrase, words in phrases_in(text):
                    found.setdefault("messages", []).append(f"{name}:{line}: {phrase}: {words}")
    return found


def read_budgets(path):
    rows = (line.split() for _, line in lines(path) if line and not line.startswith("#"))
    return {folder: int(number) for folder, number in rows}


def write_budgets(path, budgets):
    text = "# Folder, phrases of english.py that it may have. Written by english.py TOP --write.\n"
    text += "".join(f"{folder} {number}\n" for folder, number in sorted(budgets.items()) if number)
    path.write_text(text)


def compare(rules, found, budgets):
    for folder in sorted({*found, *budgets}):
        number, budget = len(found.get(folder, ())), budgets.get(folder, 0)
        if number > budget:
            rules.broken(RULE, f"{folder} has {number}, {budget} are allowed: "
                               f"tests/lint/english.py . --list '{folder}' names them")
        elif number < budget:
            print(f"# {folder} has {number}, {budget} are allowed: lower the budget, "
                  "tests/lint/english.py . --write")


def main():
    top, words = root(), sys.argv[2:]
    found, path = count(top), root() / BUDGETS
    if words[:1] == ["--list"] and len(words) == 2:
        print("\n".join(found.get(words[1], [f"no phrase in {words[1]}"])))
        return 0
    budgets = read_budgets(path) if path.exists() else None
    if words == ["--write"]:
        lowered = {folder: len(places) for folder, places in found.items()}
        if budgets is not None:
            lowered = {folder: min(number, budgets.get(folder, 0))
                       for folder, number in lowered.items()}
        write_budgets(path, lowered)
        budgets = lowered
    elif words:
        sys.exit(__doc__)
    rules = Rules(RULE)
    compare(rules, found, budgets or {})
    return rules.report()


if __name__ == "__main__":
    sys.exit(main())
