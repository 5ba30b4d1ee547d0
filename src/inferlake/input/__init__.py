"""RDF files to staged triples: discovery, splitting by the engine, parsing, errors with places."""

from inferlake.input.files import FORMATS, InputFile, discover
from inferlake.input.frames import FRAME
from inferlake.input.stage import FEW, Bad, Staged, stage
from inferlake.input.times import time_sql, time_term

__all__ = [
    "FEW",
    "FORMATS",
    "FRAME",
    "Bad",
    "InputFile",
    "Staged",
    "discover",
    "stage",
    "time_sql",
    "time_term",
]
