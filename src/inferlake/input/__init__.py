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
from inferlake.input.times import as_it_came, milliseconds_sql, stamped, time_sql

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
    "as_it_came",
    "discover",
    "milliseconds_sql",
    "require_readable",
    "stage",
    "stamped",
    "time_sql",
]
