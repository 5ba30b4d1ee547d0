"""What there is to do: tasks, made of rules and the schema, and made anew when the schema grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from inferlake.evaluate.blocks import Block
from inferlake.evaluate.known import Task
from inferlake.evaluate.schema import SchemaFacts
from inferlake.plan.clauses import Clause, Fact, Layout
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.groups import Group
from inferlake.plan.redundant import can_meet, only_repeats
from inferlake.plan.strata import strata
from inferlake.plan.transitive import Edges, transitive


@dataclass
class Agenda:
    """The tasks of an evaluation: an expander for linear rules, and groups of rules that join."""

    clauses: tuple[Clause, ...]
    layout: Layout
    options: Options
    finder: SchemaFacts
    expanders: list[Task] = field(default_factory=list)
    joins: list[Task] = field(default_factory=list)
    # Schema facts that the plan has been made with.
    schema: set[Fact] = field(default_factory=set)
    plan: Plan = field(init=False)
    # The rules that closed facts were closed under, with the schema among them.
    earlier: Plan | None = None
    _stated: set[Fact] = field(default_factory=set)
    _idle: dict[Task, int | None] = field(default_factory=dict)

    def begin(self, closed: list[Block], given: list[Block], under: tuple[Clause, ...]) -> None:
        """Make the tasks; those that `closed` facts gave rise to have worked through them.

        They are closed `under` some of the rules, or all.
        """
        before = self.finder.among(closed)
        self.schema = before | self.finder.among(given)
        self.plan = self._compiled()
        if closed:
            self.earlier = self.plan  # mostly: few changes touch the schema
            if before != self.schema or under != self.clauses:
                self.earlier = compile_plan(under, self.finder.patterns, before, self.options)
            self._enlist(self.earlier, None, len(closed))
        self._enlist(self.plan, self.earlier, 0)
        self._lean = self.options.lean

    def follow(self, block: Block) -> bool:
        """Take what a block says of the schema into the rules; return whether it said anything."""
        patterns = self.finder.patterns
        schema = self.plan.patterns
        if not schema.rows or not (block.patterns or schema).meet_any(schema):
            return False
        fresh = self.finder.among([block]) - self.schema
        if not fresh and patterns == self.finder.patterns:
            return False
        self.schema |= fresh
        before, self.plan = self.plan, self._compiled()
        # Old facts now meet new rules: what was left out as idle may no longer be so.
        self._lean = False
        self._enlist(self.plan, before, 0)
        return True

    def unstated(self) -> set[Fact]:
        """Return what follows from the schema alone and has not been asked for before."""
        fresh = self.plan.schema - self.schema - self._stated
        self._stated |= fresh
        self.schema |= {fact for fact in fresh if self.plan.patterns.cover(fact)}
        return set(fresh)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return (*self.joins, *self.expanders)

    def strata(self) -> Iterator[list[Task]]:
        """Yield the tasks that join, those that others need first."""
        for stratum in sorted({task.stratum for task in self.joins}):
            yield [task for task in self.joins if task.stratum == stratum]

    def idle_place(self, task: Task) -> int | None:
        """Return the one place of a task's body where what the task itself derives adds nothing."""
        if not self._lean or task.group is None:
            return None
        if task not in self._idle:
            self._idle[task] = self._find_idle_place(task, task.group.clauses)
        return self._idle[task]

    def _find_idle_place(self, task: Task, rules: tuple[Clause, ...]) -> int | None:
        # These have worked through all blocks whenever the task runs.
        settled = [
            clause
            for other in self.joins
            if other.group is not None
            and (other.stratum < task.stratum or (other.edges and other.stratum == task.stratum))
            for clause in other.group.clauses
        ]
        for place in range(len(rules[0].body) if rules else 0):
            if only_repeats(rules, place, rules, settled) and can_meet(rules, place, rules):
                return place
        return None

    def _compiled(self) -> Plan:
        """Compile for the schema; patterns that turn out to be too large are data from now on."""
        finder = self.finder
        plan = compile_plan(self.clauses, finder.patterns, self.schema, self.options)
        finder.patterns = tuple(row for row in finder.patterns if row not in plan.demoted)
        return plan

    def _enlist(self, plan: Plan, before: Plan | None, seen: int) -> None:
        """Make tasks of what `plan` has and `before` had not."""
        entries = plan.entries - (before.entries if before is not None else frozenset())
        if entries:
            self.expanders.append(Task(plan.entry_names, seen, entries=entries))
        groups = (group for group in plan.joins(before) if group.clause.head is not None)
        self.joins += [Task(g.names, seen, g, edges=self._edges_of(g)) for g in groups]
        joins = [task.group for task in self.joins if task.group is not None]
        for task, stratum in zip(self.joins, strata(joins, plan.entries), strict=True):
            task.stratum = stratum

    def _edges_of(self, group: Group) -> Edges | None:
        return transitive(group, self.layout) if self.options.lean else None
