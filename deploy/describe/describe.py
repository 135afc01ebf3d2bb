#!/usr/bin/env -S python3 -B
"""Fills a template of a man page or completion from the tables of --help.

    describe.py VERSION TEMPLATE OUTPUT

A line "@part@" is replaced by the lines of that part, and "@NAME@" within a line by a constant of
protocol.h. The tables are subcommands.def, help.def and config.def, which have C macros with strings."""
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
COMMANDS = SOURCE / "src/server/subcommands.def"
HELP = SOURCE / "src/server/config/help.def"
SETTINGS = SOURCE / "src/server/config/config.def"
PROTOCOL = SOURCE / "include/runcast/protocol.h"

FOLDERS, FILES = ("data", "versions"), ("ca-file", "tls-cert", "tls-key")

# ---- the tables ----

TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|[(),]|[^\s"(),]+', re.S)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def text_of(literal):
    return re.sub(r"\\(.)", lambda escape: ESCAPES[escape[1]], literal[1:-1])


def rows(path):
    """Yields (macro, arguments) of each row of a .def file. An argument is the text of its string
    literals, or its words."""
    tokens = (token for token in TOKEN.findall(path.read_text()) if not token.startswith("/*"))
    for macro in tokens:
        if next(tokens) != "(":
            raise SystemExit(f'{path}: {macro} is not followed by "("')
        arguments, depth = [[]], 1
        while depth:
            token = next(tokens)
            depth += (token == "(") - (token == ")")
            if token == "," and depth == 1:
                arguments.append([])
            elif depth:
                arguments[-1].append(token)
        yield macro, ["".join(map(text_of, argument)) if argument[0].startswith('"')
                      else " ".join(argument) for argument in arguments]


def constant(expression):
    """The value of a limit: "64 << 10", "1ll << 40", "INT64_MAX"."""
    expression = expression.replace("INT64_MAX", str(2 ** 63 - 1)).replace("ll", "")
    value, _, shift = expression.partition("<<")
    return int(value) << int(shift or 0)


class Setting:
    def __init__(self, macro, arguments):
        self.type = macro.removeprefix("CONFIG_")
        self.name, self.help = arguments[0], arguments[-1]
        self.default = {"SECRET": "", "FLAG": "false"}.get(self.type, arguments[2])
        self.choices = arguments[3].split() if self.type == "CHOICE" else []
        self.least = constant(arguments[3]) if self.type in ("NUMBER", "BYTES", "DURATION") else 0
        self.most = constant(arguments[4]) if self.type in ("NUMBER", "BYTES") else 0
        self.has_flag = self.type != "SECRET"
        self.has_value = self.type not in ("SECRET", "FLAG")
        self.variable = "RUNCAST_" + self.name.upper().replace("-", "_")

    def kind(self):
        """The word for its value in --help."""
        return {"NUMBER": "NUMBER", "BYTES": "SIZE", "DURATION": "TIME", "FLAG": ""}.get(
            self.type, "TEXT")

    def describe(self):
        if self.type == "NUMBER":
            return f"a number from {self.least} to {self.most}"
        if self.type == "BYTES":
            return f"a size like 64k, 256m or 2g, at least {size(self.least)}"
        if self.type == "DURATION":
            least = f", at least {time(self.least)}" if self.least else ""
            return f"a time like 30s, 1h30m or 30d{least}"
        if self.choices:
            return ", ".join(self.choices[:-1]) + " or " + self.choices[-1]
        return {"TEXT": "a text", "LIST": "words with spaces between", "FLAG": "true or false",
                "SECRET": "a secret, no flag"}[self.type]

    def values(self):
        if self.choices:
            return "words", " ".join(self.choices)
        return ("folder" if self.name in FOLDERS else "file" if self.name in FILES else "any"), ""


def size(count):
    unit = 0
    while unit < 3 and count and count % 1024 == 0:
        unit, count = unit + 1, count // 1024
    return f"{count}{' kmg'[unit]}".strip()


def time(ms):
    if ms % 1000:
        return f"{ms}ms"
    seconds = ms // 1000
    for length, letter in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{letter}"
    return "0s"


class Form:
    """A row of subcommands.def; its usage as base/usage.h reads it."""

    def __init__(self, words, usage, does):
        self.command, _, form = words.partition(" ")
        self.does, self.takes_settings = does, "[options]" in usage
        self.shown = " ".join(filter(None, (form, usage)))
        self.verb = "" if form.startswith("--") else form
        self.argument, self.options = "", [[form, ""]] if form.startswith("--") else []
        waits = False  # the previous word is an option that may have a value
        for word in usage.split():
            part = word.strip("[]")
            if part.startswith("--"):
                self.options.append([part, ""])
            elif waits and word[0] != "[":
                self.options[-1][1] = part
            elif part[0].isupper():
                self.argument = part
            waits = part.startswith("--") and not word.endswith("]")


class Command:
    def __init__(self, form, about, place):
        self.name, self.forms, self.about, self.place = form.command, [form], about, place

    def usage(self, is_default):
        """As subcommand_print_usage shows it."""
        lines, joins = [], False
        for form in self.forms:
            first = f"  runcast {f'[{form.command}]' if is_default else form.command}"
            if joins and not form.does:
                fits = len(lines[-1]) + len(form.shown) + 3 <= 76
                lines[-1:] = [f"{lines[-1]} | {form.shown}"] if fits else \
                    [lines[-1], f"{'':23}| {form.shown}"]
            elif len(line := f"{first} {form.shown}".rstrip()) < 30 and form.does:
                lines.append(f"{line:31}{form.does}")
            else:
                lines += [line, f"{'':31}{form.does}"] if form.does else [line]
            joins = not form.does
        return "".join(line + "\n" for line in lines)

    def summary(self):
        return self.forms[0].does or re.split(r"\.(?=\s|$)", self.about)[0].replace("\n", " ")

    def takes_settings(self):
        return any(form.takes_settings for form in self.forms)


def read_tables():
    places, commands = {}, []
    for macro, arguments in rows(COMMANDS):
        if macro == "COMMAND_PLACE":
            places[arguments[0]] = arguments[1]
        elif macro == "COMMAND":
            words, usage, does, place, about = arguments[:5]
            commands.append(Command(Form(words, usage, does), about, places[place]))
        else:
            commands[-1].forms.append(Form(*arguments[:3]))
    notes = {row[0]: row[1] for macro, row in rows(HELP) if macro == "HELP_NOTE"}
    actions = [(row[0], row[2]) for macro, row in rows(HELP) if macro == "HELP_ACTION"]
    return commands, notes, actions, [Setting(*row) for row in rows(SETTINGS)]


commands, notes, actions, settings = read_tables()
flags = [setting for setting in settings if setting.has_flag]
actions_by_name = [(option.split()[0], help) for option, help in actions]
version = sys.argv[1] if len(sys.argv) == 4 else ""

# ---- parts of man pages, in scdoc(5) ----


def plain(text):
    """Escapes the characters that scdoc would interpret."""
    return re.sub(r"[\\*_`#<>\[\]|~+-]", r"\\\g<0>", text)


def paragraph(lines):
    """The lines without leading spaces, which scdoc would interpret."""
    return "".join(plain(line.strip()) + "\n" for line in lines.strip().split("\n")) + "\n"


def man_version():
    return f"This page describes version {version}.\n\n"


def man_commands():
    out = ""
    for command in commands:
        out += f"## {command.name}\n\n```\n{command.usage(command is commands[0])}```\n\n"
        if command.about:
            out += paragraph(command.about) + paragraph(command.place)
    return out + paragraph(notes["of_commands"])


def man_options():
    return "".join(f"*--{one.name}*{one.kind() and f' _{one.kind()}_'}\n\t{plain(one.help)}\n\n"
                   for one in flags)


def man_actions():
    return "".join(f"*{plain(option)}*\n\t{plain(help)}\n\n" for option, help in actions)


def man_settings():
    out = ""
    for one in settings:
        default = plain((one.default or "empty").replace(",", ", ")) # so that lines can end in it
        out += f"*{plain(one.name)}* = {plain(one.describe())}\n\t{plain(one.help)}.\n\n" \
               f"\tDefault: {default}. Variable: {plain(one.variable)}.\n\n"
    return out


def man_of_options():
    return paragraph(notes["of_options"])


def man_of_keys():
    return paragraph(notes["of_keys"])


# ---- values of options and arguments: (kind, words) ----

def values_of(argument):
    return {"DIR": ("folder", ""), "FILE": ("file", ""),
            "ENV": ("words", "dev staging prod preview")}.get(argument, ("any", ""))


def values_of_option(name, value):
    """The values of an option. --env never takes dev, which has neither deployed versions nor worker tokens."""
    return ("words", "staging prod preview") if name == "--env" else values_of(value)


# ---- parts of bash and zsh ----

def shell_forms():
    """Rows for bash and zsh: one for each command and each of its second words."""
    out = ""
    for command in commands:
        merged = {}
        for form in command.forms:
            for verb in (form.verb, ""):
                merged.setdefault(verb, {"verbs": [], "options": [], "argument": "", "settings": 0})
            own = merged[form.verb]
            if form.verb:
                merged[""]["verbs"].append(form.verb)
            own["options"] += [name for name, _ in form.options]
            own["argument"] = form.argument or own["argument"]
            own["settings"] |= form.takes_settings
        for verb, one in merged.items():
            out += f"    '{command.name}{verb and ' ' + verb}') verbs='{' '.join(one['verbs'])}' " \
                   f"options='{' '.join(one['options'])}' argument='{one['argument']}' " \
                   f"settings={one['settings']:d} ;;\n"
    return out


def shell_values():
    rows = {f"--{one.name}": one.values() for one in flags if one.has_value}
    rows["--config"] = ("file", "")
    for form in (form for command in commands for form in command.forms):
        for name, value in form.options:
            if value:
                rows.setdefault(name, values_of_option(name, value))
        if values_of(form.argument)[0] != "any":
            rows.setdefault(form.argument, values_of(form.argument))
    return "".join(f"    {name}) kind={kind} values='{words}' ;;\n"
                   for name, (kind, words) in rows.items())


def bash_settings():
    names = [f"--{one.name}" for one in flags] + [name for name, _ in actions_by_name]
    return f"_runcast_settings='{' '.join(names)}'\n"


def bash_commands():
    return f"_runcast_commands='{' '.join(command.name for command in commands)} help'\n"


def quoted(text):
    return text.replace("'", "'\\''")


def zsh_row(name, help):
    return f"        '{name}:{quoted(help).replace(':', chr(92) + ':')}'\n"


def zsh_settings():
    return "".join([zsh_row(f"--{one.name}", one.help) for one in flags] +
                   [zsh_row(*row) for row in actions_by_name])


def zsh_commands():
    return "".join([zsh_row(command.name, command.summary()) for command in commands] +
                   [zsh_row("help", "explains a command")])


# ---- parts of fish ----

def fish_values(values):
    kind, words = values
    return {"any": " -x", "file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'",
            "words": f" -x -a '{words}'"}[kind]


def fish_argument(values):
    kind, words = values
    return {"any": "", "file": " -a '(__fish_complete_path)'",
            "folder": " -a '(__fish_complete_directories)'", "words": f" -a '{words}'"}[kind]


def fish_form(form):
    """The completions of a form. They apply after its command, and after its second word if it has one."""
    start = f"complete -c runcast -n '__fish_seen_subcommand_from {form.command}"
    place = f"{start}{form.verb and '; and __fish_seen_subcommand_from ' + form.verb}'"
    out = f"{start}' -a {form.verb}\n" if form.verb else ""
    if values_of(form.argument)[0] != "any":
        out += f"{place}{fish_argument(values_of(form.argument))}\n"
    for name, value in form.options:
        out += f"{place} -l {name[2:]}{value and fish_values(values_of_option(name, value))}\n"
    return out


def fish_settings():
    without = " ".join(command.name for command in commands if not command.takes_settings())
    out = ""
    for one in flags:
        where = f" -n 'not __fish_seen_subcommand_from help {without}'" if one.name != "data" else ""
        values = fish_values(one.values()) if one.has_value else ""
        out += f"complete -c runcast -l {one.name}{where}{values} -d '{quoted(one.help)}'\n"
    for option, help in actions:
        name, _, value = option.partition(" ")
        values = fish_values(("file", "")) if value == "FILE" else ""
        out += f"complete -c runcast -l {name[2:]}{values} -d '{quoted(help)}'\n"
    return out


def fish_lines():
    out = ""
    for command in commands:
        out += f"complete -c runcast -n __fish_use_subcommand -a {command.name} " \
               f"-d '{quoted(command.summary())}'\n"
        out += "".join(map(fish_form, command.forms))
        out += f"complete -c runcast -n '__fish_seen_subcommand_from help' -a {command.name}\n"
    out += "complete -c runcast -n __fish_use_subcommand -a help -d 'explains a command'\n"
    return out + fish_settings()


# ---- templates ----

PARTS = (man_version, man_commands, man_options, man_actions, man_settings, man_of_options,
         man_of_keys, shell_forms, shell_values, bash_settings, bash_commands, zsh_settings,
         zsh_commands, fish_lines)


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    _, _, template, output = sys.argv
    parts = {f"@{part.__name__.replace('_', '-')}@": part for part in PARTS}
    constants = dict(re.findall(r"\b((?:PROTOCOL|CLOSE)_\w+) = (\d+)", PROTOCOL.read_text()))
    out = ""
    for line in Path(template).read_text().splitlines(keepends=True):
        part = parts.get(line.strip())
        out += part() if part else re.sub(r"@((?:PROTOCOL|CLOSE)_\w+)@",
                                          lambda name: constants[name[1]], line)
    if left := re.search(r"^@[a-z-]+@$", out, re.M):
        raise SystemExit(f"{template}: unknown part {left[0]}")
    Path(output).write_text(out)


main()
