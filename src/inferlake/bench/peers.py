"""Other reasoners: what each derives, whether it is there, and its cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inferlake.bench import peer_process
from inferlake.bench.process import told
from inferlake.bench.record import Row
from inferlake.errors import InputError


@dataclass(frozen=True)
class Peer:
    """A reasoner that holds triples in memory, and what it derives under each of our profiles."""

    name: str
    derives: str
    # What it derives where ours is one of OWL; empty if it has nothing of the kind.
    derives_owl: str
    # Whether it goes together with our dependencies.
    beside_ours: bool = True


PEERS = {
    peer.name: peer
    for peer in (
        Peer("reasonable", "OWL 2 RL", "OWL 2 RL"),
        Peer("maplib", "RDFS", "", beside_ours=False),
        Peer("owlrl", "RDFS", "OWL 2 RL"),
    )
}

# What peers call the rules of a profile; they have none like the others.
_RULES = {"rdfs": "RDFS", "rdfs-full": "RDFS", "owl2rl": "OWL 2 RL"}


def same_rules(profile: str, derives: str | None) -> bool:
    """Tell whether a peer that derives so does what a profile does."""
    return derives is not None and _RULES.get(profile) == derives


_FOUND = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


def require(names: Sequence[str], python: str | None) -> None:
    """Raise `InputError`, with the remedy, unless all these peers can be run."""
    for name in names:
        if name not in PEERS:
            raise InputError(f"no peer {name!r}: choose among {', '.join(PEERS)}")
        try:
            there = subprocess.run([python or sys.executable, "-c", _FOUND, name], check=False)
        except OSError as exc:
            raise InputError(f"{python}: cannot run this Python: {exc.strerror}") from exc
        if there.returncode:
            raise InputError(f"peer {name} is not installed: {_remedy(PEERS[name], python)}")


def _remedy(peer: Peer, python: str | None) -> str:
    if python is not None or peer.beside_ours:
        return f"{python or sys.executable} -m pip install {peer.name}"
    return (
        f"python -m venv peers && peers/bin/pip install {peer.name}, and say --peer-python"
        " peers/bin/python (it asks for other versions of what Inferlake needs)"
    )


def measured_peer(
    name: str, profile: str, files: Sequence[str], *, python: str | None, limit: float
) -> Iterator[Row]:
    """Let a peer read files and derive what follows, in a process of its own."""
    peer = PEERS[name]
    derives = peer.derives if profile.startswith("rdfs") else peer.derives_owl
    if not derives:
        yield {"error": f"derives {peer.derives} only"}
        return
    command = [python or sys.executable, str(Path(peer_process.__file__)), name, derives, *files]
    for row in told(command, limit=limit):
        yield {"derives": derives, **row}
