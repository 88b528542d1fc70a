"""Requests to S3."""

from evaluator.user_rules.s3 import ListRequest, ReadObjectRequest, S3Handler

__all__ = ["ListRequest", "ReadObjectRequest", "S3Handler"]
