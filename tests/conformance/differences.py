"""What differs on purpose, and what cannot be compared, each with its reason.

R numbers are those of smdebug-review.md, I numbers those of conformance.md.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

PURPOSE: list[tuple[str, str, str]] = [
    ("smdebug.__version__", "version", "The version says that it is ours."),
    ("a_local", "range *", "A range that is none is an AssertionError with a text, whatever is wrong in it."),
    ("a_local", "equal to a number", "Comparing a trial with something else is False, not an AttributeError."),
    ("a_local", "pathlib", "A path may be a pathlib path."),
    ("a_objects", "missing regex", "A collection without patterns has an empty list, not False."),
    ("a_objects", "manager of a number", "Adding something that is no collection is an error, not nothing."),
    ("a_objects", "save config without mode", "The error names the key that is no mode."),
    ("c_two_modes", "*: value without event file", "A value without an event file is TensorUnavailableForStep (R23)."),
    ("d_names", "in * at *", "A mode or mode step that was not seen has no names; no KeyError (R16, I9)."),
    ("d_names", "in PREDICT", "A mode or mode step that was not seen has no names; no KeyError (R16, I9)."),
    ("d_names", "2019: *", "Names of 2019 still work (custom-rule-files.md, section 1.3)."),
    ("d_names", "documented: positional step", "A step by position works as the documentation has it."),
    (
        "e_missing_events",
        "*: value *",
        "The same exception, with a text that names the missing file; it is also an SMDebugRuntimeError (I13).",
    ),
    ("e_worker_names", "value of ''", "An empty worker name is InvalidWorker, not KeyError."),
    ("e_helpers", "parse_list 5", "What is no list is SMDebugTypeError, not UnboundLocalError."),
    ("e_exceptions", "pickled", "Exceptions can be pickled, also when made by keyword."),
    ("i_records", "true: *", "Records with a true checksum are read (R12, I1)."),
    ("i_records", "both: value", "A value with its shape beside it in the same file is read (R1, I2)."),
    ("i_records", "both: original name", "Limit: the framework's own name of a tensor is not kept by our readers."),
    ("i_records", "header: *", "Damage is an SMDebugRuntimeError and TensorUnavailableForStep (R11, I17)."),
    ("i_records", "cut: *", "Damage is an SMDebugRuntimeError and TensorUnavailableForStep (R11, I17)."),
    ("i_records", "checked: *", "Damage is an SMDebugRuntimeError and TensorUnavailableForStep (R11, I17)."),
    ("i_dtypes", "d_i1", "Negative int8 values stay negative (R8, I3)."),
    ("i_dtypes", "d_*", "int16, uint16/32/64 and complex64 are read (R9, I3)."),
    ("i_dtypes", "e_*", "Empty arrays keep type and shape (R10, I3)."),
    ("i_bad_index", "*", "A bad index file costs only itself, and is read when it is whole (R2, I4)."),
    ("i_late", "late *", "Late steps and late workers are seen (R3, I5)."),
    ("i_dead_worker", "*", "A dead worker does not block for ever, whatever the save interval (R4, I6)."),
    ("i_frozen", "then steps", "After wait_for_steps a trial still shows what is new (R6, I7)."),
    ("i_half_eval", "running: tensor", "tensor.steps(mode) agrees with trial.steps(mode) (R5, I8)."),
    ("i_half_eval", "ended: passed", "No KeyError for a partly written mode step at the end (R13, I10)."),
    ("i_paths", "value of worker", "A folder with __ in its path does not change worker names (R17, I11)."),
    ("i_rules", "form *", "All forms of the constructor that rule files use are taken (R27, I14)."),
    ("i_rules", "other trials after an error", "An exception in a rule leaves no trial frozen (R7)."),
    ("i_rules", "required", "Lists of required steps are not shared (R24)."),
    ("i_rules", "actions: not JSON", "Actions that are not JSON are SMDebugValueError, still a ValueError."),
    ("i_norms", "matrix *l?", "l1 and l2 are over the flattened tensor, as hooks save them (R15, I16)."),
    ("i_norms", "kernel *l?", "l1 and l2 are over the flattened tensor, as hooks save them (R15, I16)."),
    ("i_norms", "kind of a computed one", "Computed reductions are float64 (min and max keep the tensor's type)."),
    ("i_norms", "required with reductions only", "Requiring a tensor saved as reductions only works (R25)."),
    ("i_replaced", "after: *", "A file that was replaced after its index was read is looked up anew (I19)."),
    ("i_answers", "* at 1 of EVAL", "inputs, labels and predictions take values of the mode asked for (R20)."),
]

NOT_COMPARED: list[tuple[str, str]] = [
    (
        "A test_s3, test_creation_s3, B *_s3, E test_core s3 parts",
        "the reference needs AWS; rebuilt here locally, and on S3 in tests/user_rules/test_s3.py",
    ),
    ("E core/test_handler.py", "the reference needs AWS; tests/user_rules/test_s3.py"),
    (
        "E core/test_index_utils.py, core/test_utils.py (prefix, cache)",
        "internals of the reference; names are compared by trials",
    ),
    ("E core/test_paths.py::test_temp_paths", "writer; ours is tested in tests/test_writer.py"),
    ("F S3 end markers", "the reference needs AWS; tests/user_rules/test_s3.py"),
    (
        "F test_outdir_*, test_is_first_process, test_check_dir_*, test_s3_path_that_exists",
        "the hook's writer, no reader or rule case",
    ),
    (
        "F is_rule_signalled without the variable",
        "the reference reads it once at import; tests/user_rules/test_helpers.py",
    ),
    ("I1 golden record", "bytes in tests/formats; here records with both kinds of footer"),
    (
        "I11 trial at the bucket root, I12 foreign objects on S3",
        "the reference fails there; tests/user_rules/test_s3.py, foreign files locally in i_paths",
    ),
    ("I14 mixed-case and escaped actions", "the reference asks AWS at construction; tests/user_rules/test_actions.py"),
    ("I20 cost of reading", "counted in tests/user_rules/test_cost.py"),
    (
        "D test_modes_on_global_data, B/C tests marked skipped upstream",
        "empty or skipped there; c_workers has their data",
    ),
    (
        "smdebug.{pytorch,tensorflow,mxnet,xgboost}",
        "the reference needs the framework; tests/user_rules/test_served.py",
    ),
    ("G, H", "actions are sent by sinks, profiles are not read by this version"),
]


def reason(case: str, call: str) -> str | None:
    """Why a call may differ, by the first line that fits."""
    return next((why for of, pattern, why in PURPOSE if of == case and fnmatchcase(call, pattern)), None)
