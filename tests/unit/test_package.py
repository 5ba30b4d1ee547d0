"""The package as a whole: what it exports, what importing it costs, and its doctests."""

from __future__ import annotations

import doctest
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import inferlake


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(inferlake, name) for name in inferlake.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = inferlake.nonsense


@pytest.mark.parametrize("module", ["inferlake", "inferlake.cli"])
def test_importing_starts_no_engine(module: str) -> None:
    heavy = "{'pyspark', 'pysail', 'pyarrow', 'deltalake', 'pandas', 'numpy', 'pyoxigraph'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_examples_in_docstrings_are_true() -> None:
    names = [one.name for one in pkgutil.walk_packages(inferlake.__path__, "inferlake.")]
    results = {name: doctest.testmod(import_module(name)) for name in names}
    assert sum(result.attempted for result in results.values()) > 0
    assert {name: result for name, result in results.items() if result.failed} == {}
