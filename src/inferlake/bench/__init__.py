"""Benchmarks: what the command `inferlake bench` measures, records and shows.

A benchmark is a list of cases. Each case runs in a process of its own and yields rows of numbers,
which are recorded as they come; tables and plots are made of a recording, now or later.

    run        the benchmarks by name, and the loop over their cases
    process    one case in a process of its own, with a time limit
    record     the file of rows, the machine and the command line
    data       LUBM data and updates, made once and kept
    published  what papers and theses measured, on other hardware
    tables     rows to text; folding, where a terminal is too narrow for them
    plots      rows to what is drawn; drawing, how
    materialize, updates, stream, scale: the cases, what they measure, and their tables
"""
