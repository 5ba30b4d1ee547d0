"""What the blank nodes of a file are called in the store."""

from __future__ import annotations

import re

import pyoxigraph as ox

from inferlake.input.files import InputFile
from inferlake.terms.shape import SCOPE_PATTERN

_SCOPED = re.compile(SCOPE_PATTERN)


class Labelled:
    """Names a blank node by its label: lines of one file are parsed apart from each other."""

    def __init__(self, file: InputFile) -> None:
        self.scope = file.scope
        self.stored = file.stored_labels

    def __call__(self, node: ox.BlankNode) -> str:
        label = self.label(node.value)  # also of a stored one, so that others keep their numbers
        if self.stored and _SCOPED.match(node.value):
            return f"_:{node.value}"
        return f"_:{self.scope}{label}"

    def label(self, written: str) -> str:
        return written


class Numbered(Labelled):
    """Names blank nodes in the order they appear, since the parser invents labels for `[]`."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(file)
        self.seen: dict[str, int] = {}

    def label(self, written: str) -> str:
        return f"b{self.seen.setdefault(written, len(self.seen))}"
