"""The types of results and of the REST API, from what the program says about them. Run as a program, it writes them into the package:

python described.py  # builds a network, which says what its API is
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heliostat
from heliostat import _binary

PACKAGE = Path(heliostat.__file__).parent
WIDTH = 140
KEYWORDS = {"from", "in", "class", "global", "is", "not", "or", "and", "as", "if", "else", "for", "while", "with", "pass"}
HEAD = '''"""{about}

Written by python/tests/described.py from {source}; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''

Schema = dict[str, Any]


class Types:
    """The types that some schemas need, in the order in which they were met."""

    def __init__(self, named: dict[str, Schema], wanted: list[str]) -> None:
        self.named, self.done, self.text = named, set[str](), dict[str, str]()
        for name in wanted:
            self.of({"$ref": f"#/{name}"})

    def of(self, schema: Schema) -> str:
        """The type of a schema."""
        if "$ref" in schema:
            return self.reference(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return f'Literal["{schema["const"]}"]' if isinstance(schema["const"], str) else type(schema["const"]).__name__
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
        if several := schema.get("anyOf") or schema.get("oneOf"):
            return self.union([self.of(s) for s in several])
        kinds = schema.get("type", "any")
        return self.union([self.kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)])

    def reference(self, name: str) -> str:
        """The type of a schema that has a name: its own, if it has keys."""
        schema = self.named[name]
        parts = [self.named[p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in schema.get("allOf", [schema])]
        keys = {key: value for part in parts for key, value in part.get("properties", {}).items()}
        if not keys:
            return self.of(schema)
        if name not in self.done:
            self.done.add(name)
            required = {key for part in parts for key in part.get("required", [])}
            fields = [(key, self.of(value), key in required, sentence(value)) for key, value in keys.items()]
            self.text[name] = record(name, sentence(schema), fields)
        return name

    def kind(self, kind: str, schema: Schema) -> str:
        """One of the types that a schema allows."""
        if kind == "array":
            return f"list[{self.of(schema.get('items', {}))}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.of(values) if isinstance(values, dict) else 'Any'}]"
        return {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}.get(kind, "Any")

    def union(self, types: list[str]) -> str:
        """Of types one; words first, and None last."""
        words = [t.removeprefix("Literal[").removesuffix("]") for t in types if t.startswith("Literal[")]
        some = [f"Literal[{', '.join(words)}]"] if words else []
        some += [t for t in dict.fromkeys(types) if not t.startswith("Literal[") and t != "None"]
        return " | ".join(some + (["None"] if "None" in types else []))


def sentence(schema: Schema) -> str:
    """What a schema says about itself, in one line and without links of Rust."""
    return re.sub(r" ?\(?\[`[^]]*`\](\([^)]*\))?\)?", "", " ".join(schema.get("description", "").split()))


def record(name: str, about: str, fields: list[tuple[str, str, bool, str]]) -> str:
    """A type with keys. Those that are words of Python need another form."""
    odd = any(key in KEYWORDS for key, *_ in fields)
    lines = [f'{name} = TypedDict(\n    "{name}",\n    {{'] if odd else [f"class {name}(TypedDict):", *wrapped(about)]
    for key, kind, required, said in fields:
        kind = kind if required else f"NotRequired[{kind}]"
        line = f"""        "{key}": {json.dumps(kind.replace('"', "'"))},""" if odd else f"    {key}: {kind}"
        lines += commented(line, said)
    return "\n".join([*lines, *(["    },", ")", *wrapped(about, "")] if odd else [])])


def wrapped(about: str, indent: str = "    ") -> list[str]:
    """A text as a documentation comment."""
    first, *rest = textwrap.wrap(about or "A record.", WIDTH - len(indent) - 6)
    text = [f'{indent}"""{first}', *(indent + line for line in rest)]
    return [*text[:-1], text[-1] + '"""'] if not rest else [*text, indent + '"""']


def commented(line: str, said: str) -> Iterator[str]:
    """A line with a comment: behind it, or above where there is no room."""
    indent = line[: len(line) - len(line.lstrip())]
    if not said or len(line) + 4 + len(said) <= WIDTH:
        yield f"{line}  # {said}" if said else line
        return
    yield from textwrap.wrap(said, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
    yield line


def module(about: str, source: str, types: Types) -> str:
    """A module with types."""
    text = HEAD.format(about=about, source=source) + "\n\n".join(types.text.values())
    text = text if "list[Any]" in text else text.replace(" Any,", "", 1)
    return subprocess.run([sys.executable, "-m", "ruff", "format", "-"], input=text, capture_output=True, text=True, check=True).stdout


def results() -> str:
    """The module of results."""
    schema = json.loads(_binary.ask("check", "--schema", "result"))
    about = "What `simulate` returns, and what `--json` of run, simulate and schedule writes (docs/result-file.md)."
    return module(about, "`heliostat check --schema result`", Types(schema["$defs"], ["RunResult", "JobsResult"]))


WANTED = [
    "Circuits",
    "Coflow",
    "Coflows",
    "CoflowBody",
    "Confirmation",
    "Demand",
    "ManualCircuit",
    "OpenFlows",
    "Proposal",
    "Stats",
    "Topology",
]


def api(network: heliostat.Network) -> str:
    """The module of the REST API."""
    description = network.request("GET", "/openapi.json")
    about = "What `Network` takes and returns: bodies of the REST API (docs/api.md)."
    return module(about, "/openapi.json", Types(description["components"]["schemas"], WANTED))


if __name__ == "__main__":
    (PACKAGE / "results.py").write_text(results(), encoding="utf-8")
    with heliostat.run("hybrid-4x2") as running:
        (PACKAGE / "api.py").write_text(api(running), encoding="utf-8")
