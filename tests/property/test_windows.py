"""Facts that expire: after every step a store equals the reference over what is alive, times too.

`INFERLAKE_EXAMPLES=5000 pytest tests/property/test_windows.py` is the long run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.maintain import ALGORITHMS
from inferlake.plan.compile import Options
from inferlake.rules.load import RuleText, read_rules
from inferlake.session import Engine
from tests.property.test_updates import made_up, named
from tests.property.windowing import Windowed

EXAMPLES = {"sail": 8, "spark": 1}
PROFILES = ["rdfs", "owl-horst", "owl2rl"]
OPTIONS = {"specialised": Options(), "plain": Options(specialised=False, lean=False)}

windows = st.integers(1, 15)


@st.composite
def steps(draw, pool: list[RuleText] | None, facts: list) -> list[dict]:
    """Draw steps: what arrives, what is loaded and removed, other rules, and the clock's."""
    triples = [args for _, args in facts] or [("<e:a>", "<e:b>", "<e:c>")]
    # Mostly a few, so that what comes is there already, and what is removed was streamed.
    few = st.sampled_from(triples[:6])
    some = few | few | few | named.map(lambda fact: fact[1])
    found: list[dict] = []
    clock = 0
    for _ in range(draw(st.integers(2, 5))):
        # Slowly: most of what has come is still there, and some of what comes is late.
        times = st.integers(clock - 6, clock + 8)
        kind = draw(st.sampled_from(["stream", "stream", "stream", "change", "expire"]))
        if kind == "expire":
            clock += draw(st.integers(-1, 9))
            found.append({"expire": clock})
            continue
        step: dict = {"now": None}
        if draw(st.booleans()):
            clock += draw(st.integers(-1, 4))
            step["now"] = clock
        if kind == "stream":
            step["stream"] = draw(st.dictionaries(some, times, min_size=1, max_size=8))
            step["window"] = draw(windows)
        else:
            step["add"] = draw(st.lists(some, max_size=3))
            step["algorithm"] = draw(st.sampled_from(ALGORITHMS))
        if kind == "change" or draw(st.integers(0, 2)) == 0:
            step["remove"] = draw(st.lists(some, max_size=3))
        if pool is not None and draw(st.integers(0, 4)) == 0:
            step["rules"] = [text for text in pool if draw(st.booleans())]
        found.append(step)
    return found


def check(engine: Engine, texts: list, facts: list, todo: list[dict], options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Windowed(engine, Path(folder), texts, options)
        # About half of what is given is background, and the rest comes by and by.
        store.load(args for _, args in facts[::2])
        for step in todo:
            if "expire" in step:
                store.expire(step["expire"])
            else:
                store.update(**step)
        assert not store.kb.verify().differences


def _examples(engine: Engine) -> int:
    return int(os.environ.get("INFERLAKE_EXAMPLES", EXAMPLES[engine.name]))


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("how", OPTIONS)
def test_made_up_rules(engine: Engine, how: str) -> None:
    if engine.name == "spark" and how == "plain":
        pytest.skip("a minute on Spark; the plans are those of schema that expires")

    @settings(max_examples=_examples(engine))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        pool, facts = data.draw(made_up())
        todo = data.draw(steps(pool, facts))
        check(engine, pool, facts, todo, OPTIONS[how])

    run()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("profile", PROFILES)
def test_profiles(engine: Engine, profile: str) -> None:
    if engine.name == "spark" and profile != "rdfs":
        pytest.skip("minutes on Spark; the plans are those of the other profiles")
    # A step under all the rules of OWL 2 RL takes seconds, most of them the reference's.
    share = 8 if profile == "owl2rl" else 4

    @settings(max_examples=max(1, _examples(engine) // share))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        facts = data.draw(st.lists(named, max_size=10))
        todo = data.draw(steps(None, facts))
        check(engine, list(read_rules([profile])), facts, todo, Options())

    run()
