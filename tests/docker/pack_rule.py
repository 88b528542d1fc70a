"""A rule of a pack, which tests put into an image: fires when the loss is odd."""

from evaluator.rule import Rule, RuleParameters, Summary

RULE = Rule("PackedRule", "warning", RuleParameters, lambda _: [Summary("losses")], lambda *_: None)
