"""Cliques, where every fact has many proofs: how much does each algorithm have to look at?

A relation is symmetric and transitive, and each member of a clique is linked explicitly with some
others at random: the case that Motik, Nenov, Piro and Horrocks made their Backward/Forward
algorithm for (AAAI 2015). The counts are the same on every machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

LINKED = "<http://example.org/linked>"
RULES = f"""
[symmetric] [?y, {LINKED}, ?x] :- [?x, {LINKED}, ?y] .
[transitive] [?x, {LINKED}, ?z] :- [?x, {LINKED}, ?y], [?y, {LINKED}, ?z] .
"""


@dataclass(frozen=True)
class Cliques:
    """How many cliques of how many members, with how many links each; how many links go."""

    cliques: int = 100
    members: int = 30
    links: int = 10
    remove: int = 100
    seed: int = 1

    def written(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write the links, those that go, and the rules, and return the files."""
        chance = random.Random(self.seed)
        links = self.edges(chance)
        gone = chance.sample(links, self.remove)
        files = folder / "links.nt", folder / "gone.nt", folder / "rules.dl"
        for file, some in zip(files, (links, gone), strict=False):
            file.write_text("".join(f"{a} {LINKED} {b} .\n" for a, b in some))
        files[2].write_text(RULES)
        return files

    def edges(self, chance: random.Random) -> list[tuple[str, str]]:
        """Return explicit links: of each member to so many others of its clique."""
        found = set()
        for clique in range(self.cliques):
            names = [f"<http://example.org/{clique}/{member}>" for member in range(self.members)]
            for name in names:
                others = [other for other in names if other != name]
                found |= {(name, other) for other in chance.sample(others, self.links)}
        return sorted(found)
