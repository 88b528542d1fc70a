"""Requests to S3."""

from evaluator.user_rules.absent import ListRequest, ReadObjectRequest, S3Handler

__all__ = ["ListRequest", "ReadObjectRequest", "S3Handler"]
