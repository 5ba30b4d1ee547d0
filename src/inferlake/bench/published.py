"""What others published, on other hardware: landmarks beside our numbers, not a race.

DynamiTE: Urbani et al., ISWC 2013, Table 2 and section 6. Backward/Forward: Motik et al., AAAI
2015, Table 2. RDFInStream: Farvardin et al., 2021, figures 7, 12 and 14. VLog: Urbani et al., AAAI
2016. Timely: a master's thesis on RDFS by Timely and Differential Dataflow, 2021, chapter 6.
"""

from __future__ import annotations

from typing import NamedTuple

ELSEWHERE = "Published figures were measured on other hardware, and on other data where it says so."


class Update(NamedTuple):
    """Seconds of one of the six updates: DynamiTE on LUBM(1000), Timely on LUBM(50) in memory."""

    add: float
    remove_dred: float
    remove_counting: float
    timely_add: float | str
    timely_remove: float | str


UPDATES = {
    "update1": Update(0.117, 2902.7, 0.117, "< 0.001", "< 0.001"),
    "update2": Update(8.2, 2049.6, 25.7, 0.029, 0.046),
    "update3": Update(3.7, 2121.9, 25.4, 0.028, 0.034),
    "update4": Update(31.8, 2132.2, 51.0, 0.034, 0.024),
    "university": Update(16.8, 2196.0, 74.6, 0.202, 0.210),
    "2universities": Update(30.5, 3830.2, 135.8, 0.430, 0.456),
}


class Removal(NamedTuple):
    """A line of the Backward/Forward paper's Table 2; sizes are of facts and rule instances."""

    dataset: str
    removed: str
    implied: str
    rebuild_seconds: float
    dred_seconds: float
    dred_d: str
    dred_derivations: str
    bf_seconds: float
    bf_c: str
    bf_derivations: str


# Derivations of DRed are DR2 + DR4 + DR5; of B/F backward + forward + in deletion.
REMOVALS = (
    Removal("LUBM-1k-L", "100", "113", 139.4, 0.0, "1.0k", "2.9k", 0.0, "0.5k", "0.7k"),
    Removal("LUBM-1k-L", "5.0k", "5.5k", 101.8, 0.2, "55.5k", "173.9k", 0.2, "23.0k", "30.4k"),
    Removal("LUBM-1k-L", "2.5M", "2.7M", 138.5, 39.4, "10.3M", "33.3M", 32.8, "10.0M", "13.4M"),
    Removal("LUBM-1k-L", "5.0M", "5.5M", 91.8, 54.8, "17.8M", "55.7M", 62.3, "18.8M", "25.4M"),
    Removal("LUBM-1k-L", "7.5M", "8.3M", 89.2, 71.5, "24.3M", "73.4M", 85.4, "26.7M", "36.2M"),
    Removal("LUBM-1k-L", "10.0M", "11.0M", 99.5, 127.9, "30.0M", "87.1M", 102.2, "34.1M", "46.4M"),
    Removal("UOBM-1k-Uo", "100", "160", 3482.0, 8797.6, "1.8G", "5.3G", 5.4, "0.8k", "2.3k"),
    Removal(
        "UOBM-1k-Uo", "5.0k", "85.2k", 3417.8, 9539.3, "1.8G", "5.3G", 28.2, "105.9k", "164.1k"
    ),
    Removal(
        "Claros-LE", "5.0k", "427.5k", 4985.1, 7628.2, "6.0M", "23.4G", 16.5, "485.6k", "10.0M"
    ),
)


class Closure(NamedTuple):
    """A full materialisation: triples of input a second."""

    system: str
    data: str
    hardware: str
    seconds: float | None
    triples_per_second: int
    memory: str


CLOSURES = (
    Closure("DynamiTE", "LUBM(8000), 1 G triples, ρdf", "8 cores, 24 GB, SSD", 4400, 227_000, ""),
    Closure("WebPIE", "the same, per machine", "cluster", None, 55_000, ""),
    Closure("Timely", "LUBM(50), 6.9 M, in memory", "6 cores, 30 GB", 7.2, 960_000, ""),
    Closure("RDFox (1 core)", "LUBM-1k-L, 133.6 M", "server, 256 GB", 121.5, 1_100_000, ""),
    Closure("VLog (1 core)", "LUBM1K/L, 133 M", "laptop", 38, 3_500_000, "2.2 GB"),
    Closure("RDFox (1 core)", "LUBM1K/L, 133 M", "laptop", 82, 1_622_000, "11.9 GB"),
)


class Stream(NamedTuple):
    """Batches that arrive one after another: RDFInStream beside a rebuild of all by Cichlid."""

    figure: str
    data: str
    incremental: str
    rebuild: str


STREAMS = (
    Stream(
        "7",
        "DBpedia 300 M, RDFS, 15 batches, 4 nodes",
        "41 min for the first batch, 78 min for the last",
        "45 min for the first, over 1,000 min for the last",
    ),
    Stream(
        "12",
        "UniProt 320 M, OWL-Horst, 100 batches, 4 nodes",
        "15 min for 17 batches, 257 min for all 100",
        "1,086 min for 17 batches, then it fails",
    ),
    Stream(
        "14",
        "the same: triples fetched for a batch",
        "31 M for batch 82, 111 M for batch 84, a third of all",
        "all of them, every time",
    ),
)
