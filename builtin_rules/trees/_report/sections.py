"""Which sections the report on each kind of problem has.

Source: builtin-rules.md 5.3, which lists the sections of the hosted report and the problems that have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from builtin_rules.trees._report.class_sections import confusion_section, diagonal_section, roc_section, score_section
from builtin_rules.trees._report.facts import Facts
from builtin_rules.trees._report.general_sections import importance_section, label_section, loss_section
from builtin_rules.trees._report.parts import Section
from builtin_rules.trees._report.problem import Kind
from builtin_rules.trees._report.value_sections import bin_section, residual_section

GENERAL = (label_section, loss_section, importance_section)
CLASSES = (confusion_section, score_section, diagonal_section)

SECTIONS: Mapping[Kind, Sequence[Callable[[Facts], Section]]] = {
    "binary": (*GENERAL, *CLASSES, roc_section, residual_section),
    "multiclass": (*GENERAL, *CLASSES, residual_section),
    "regression": (*GENERAL, residual_section, bin_section),
    "unknown": (*GENERAL, *CLASSES, roc_section, residual_section, bin_section),
}
