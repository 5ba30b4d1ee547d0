"""The schema of LUBM: its classes, its properties, and what each says of the others.

These are the axioms of the published benchmark, as data. Labels and comments of the original are
not here: nothing follows from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inferlake.generate.lubm_triples import ONTOLOGY, PREFIXES

_PREFIXES = {**PREFIXES, "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}

# The classes right below each class; those above nothing are `TOP`.
TOP = ("Organization", "Person", "Publication", "Schedule", "Work")
SUBCLASSES = {
    "Organization": "College Department Institute Program ResearchGroup University",
    "Person": "GraduateStudent ResearchAssistant",
    "Student": "UndergraduateStudent",
    "Employee": "AdministrativeStaff Faculty",
    "AdministrativeStaff": "ClericalStaff SystemsStaff",
    "Faculty": "Lecturer PostDoc Professor",
    "Professor": "AssistantProfessor AssociateProfessor Chair Dean FullProfessor VisitingProfessor",
    "Publication": "Article Book Manual Software Specification UnofficialPublication",
    "Article": "ConferencePaper JournalArticle TechnicalReport",
    "Work": "Course Research",
    "Course": "GraduateCourse",
}
# A person with some such property is one of these; and, for Dean, whoever has it.
DEFINED = {
    "Chair": ("headOf", "Department"),
    "Dean": ("headOf", "College"),
    "Director": ("headOf", "Program"),
    "Employee": ("worksFor", "Organization"),
    "Student": ("takesCourse", "Course"),
    "TeachingAssistant": ("teachingAssistantOf", "Course"),
}
ANYBODY = frozenset({"Dean"})
# These have some such property; but not all who have it are these.
REQUIRED = {
    "GraduateStudent": ("takesCourse", "GraduateCourse"),
    "ResearchAssistant": ("worksFor", "ResearchGroup"),
}

# Properties of things, with their domains and ranges, where they have one.
OBJECT_PROPERTIES = {
    "advisor": ("Person", "Professor"),
    "affiliateOf": ("Organization", "Person"),
    "affiliatedOrganizationOf": ("Organization", "Organization"),
    "degreeFrom": ("Person", "University"),
    "doctoralDegreeFrom": ("Person", "University"),
    "hasAlumnus": ("University", "Person"),
    "headOf": (),
    "listedCourse": ("Schedule", "Course"),
    "mastersDegreeFrom": ("Person", "University"),
    "member": ("Organization", "Person"),
    "memberOf": (),
    "orgPublication": ("Organization", "Publication"),
    "publicationAuthor": ("Publication", "Person"),
    "publicationDate": ("Publication",),
    "publicationResearch": ("Publication", "Research"),
    "researchProject": ("ResearchGroup", "Research"),
    "softwareDocumentation": ("Software", "Publication"),
    "softwareVersion": ("Software",),
    "takesCourse": (),
    "teacherOf": ("Faculty", "Course"),
    "teachingAssistantOf": ("TeachingAssistant", "Course"),
    "tenured": ("Professor",),
    "undergraduateDegreeFrom": ("Person", "University"),
    "worksFor": (),
}
TRANSITIVE_PROPERTIES = {"subOrganizationOf": ("Organization", "Organization")}
DATATYPE_PROPERTIES = {
    "age": ("Person",),
    "emailAddress": ("Person",),
    "name": (),
    "officeNumber": (),
    "researchInterest": (),
    "telephone": ("Person",),
    "title": ("Person",),
}
SUBPROPERTIES = {
    "degreeFrom": "doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom",
    "memberOf": "worksFor",
    "worksFor": "headOf",
}
INVERSES = (("degreeFrom", "hasAlumnus"), ("hasAlumnus", "degreeFrom"), ("memberOf", "member"))


def axioms() -> list[tuple[str, ...]]:
    """Return the schema as N-Triples lines, axiom by axiom: only these share blank nodes.

    The order is that of a schema in the making: what is declared first is used later.
    """
    return [tuple(map(_line, axiom)) for axiom in (*_classes(), *_properties())]


def lubm_ontology() -> str:
    """Return the schema as one N-Triples document."""
    return "".join(f"{line}\n" for axiom in axioms() for line in axiom)


def _line(triple: str) -> str:
    """Return the N-Triples line of a triple with prefixed names.

    >>> _line("ub:a rdf:type _:b")[-55:]
    '<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:b .'
    """
    names = r"\b(rdfs?|owl|ub):(\w+)"
    return re.sub(names, lambda name: f"<{_PREFIXES[name[1]]}{name[2]}>", triple) + " ."


def _classes() -> Iterator[tuple[str, ...]]:
    yield (f"{ONTOLOGY} rdf:type owl:Ontology",)
    below = {name: one for one, names in SUBCLASSES.items() for name in names.split()}
    for name in sorted({*TOP, *below, *DEFINED}):
        yield (f"ub:{name} rdf:type owl:Class",)
    for name, above in below.items():
        yield (f"ub:{name} rdfs:subClassOf ub:{above}",)
    for name, (role, filler) in REQUIRED.items():
        some = f"_:some{name}"
        yield (f"ub:{name} rdfs:subClassOf {some}", *_restriction(some, role, filler))
    for name, (role, filler) in DEFINED.items():
        some, rest = f"_:some{name}", f"_:rest{name}"
        first = rest if name in ANYBODY else f"_:list{name}"
        person = () if name in ANYBODY else (f"{first} rdf:first ub:Person",)
        link = () if name in ANYBODY else (f"{first} rdf:rest {rest}",)
        yield (
            f"ub:{name} owl:intersectionOf {first}",
            *person,
            *link,
            f"{rest} rdf:first {some}",
            f"{rest} rdf:rest rdf:nil",
            *_restriction(some, role, filler),
        )


def _restriction(node: str, role: str, filler: str) -> tuple[str, ...]:
    return (
        f"{node} rdf:type owl:Restriction",
        f"{node} owl:onProperty ub:{role}",
        f"{node} owl:someValuesFrom ub:{filler}",
    )


def _properties() -> Iterator[tuple[str, ...]]:
    kinds = {
        "ObjectProperty": OBJECT_PROPERTIES,
        "TransitiveProperty": TRANSITIVE_PROPERTIES,
        "DatatypeProperty": DATATYPE_PROPERTIES,
    }
    for kind, properties in kinds.items():
        for name in properties:
            yield (f"ub:{name} rdf:type owl:{kind}",)
    for properties in kinds.values():
        for name, classes in properties.items():
            # The last of the three kinds has no ranges, and others have not both.
            for place, one in zip(("domain", "range"), classes, strict=False):
                yield (f"ub:{name} rdfs:{place} ub:{one}",)
    for above, names in SUBPROPERTIES.items():
        for name in names.split():
            yield (f"ub:{name} rdfs:subPropertyOf ub:{above}",)
    for one, other in INVERSES:
        yield (f"ub:{one} owl:inverseOf ub:{other}",)
