"""The tree of errors, and the exit codes that scripts rely on."""

from __future__ import annotations

import pytest

import inferlake
from inferlake import errors

EXIT_CODES = {
    errors.InferlakeError: 1,
    errors.InputError: 2,
    errors.StoreError: 3,
    errors.NotAStore: 3,
    errors.NewerFormat: 3,
    errors.VersionNotFound: 3,
    errors.Conflict: 3,
    errors.RuleError: 5,
    errors.LimitReached: 6,
    errors.EngineError: 4,
    errors.JavaMissing: 4,
}


def defined() -> set[type]:
    return {value for value in vars(errors).values() if isinstance(value, type)}


def test_every_error_has_the_exit_code_of_its_kind() -> None:
    assert {error: error.exit_code for error in EXIT_CODES} == EXIT_CODES


def test_no_error_is_outside_the_tree() -> None:
    assert defined() == set(EXIT_CODES)
    assert all(issubclass(error, errors.InferlakeError) for error in defined())


@pytest.mark.parametrize("error", EXIT_CODES, ids=lambda error: error.__name__)
def test_every_error_is_drawn_in_the_tree_and_public(error: type) -> None:
    assert f" {error.__name__} " in f" {errors.__doc__} "
    assert getattr(inferlake, error.__name__) is error
