"""The rules that come with the evaluator: one module per rule, in topic packages."""
