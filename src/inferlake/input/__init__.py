"""RDF files to staged triples: discovery, splitting by the engine, parsing, errors with places."""

from inferlake.input.files import FORMATS, InputFile, discover
from inferlake.input.frames import FRAME, time_sql
from inferlake.input.stage import FEW, Bad, Staged, stage

__all__ = ["FEW", "FORMATS", "FRAME", "Bad", "InputFile", "Staged", "discover", "stage", "time_sql"]
