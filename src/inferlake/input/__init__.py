"""RDF files to staged triples: discovery, splitting by the engine, parsing, errors with places."""

from inferlake.input.files import (
    CHANGE_FORMATS,
    COMPRESSIONS,
    FORMATS,
    LINES,
    InputFile,
    arrived,
    discover,
    require_readable,
)
from inferlake.input.frames import FRAME
from inferlake.input.stage import FEW, Bad, Staged, stage
from inferlake.input.times import time_sql, time_term

__all__ = [
    "CHANGE_FORMATS",
    "COMPRESSIONS",
    "FEW",
    "FORMATS",
    "FRAME",
    "LINES",
    "Bad",
    "InputFile",
    "Staged",
    "arrived",
    "discover",
    "require_readable",
    "stage",
    "time_sql",
    "time_term",
]
