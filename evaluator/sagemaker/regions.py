"""Which partition of AWS a region is in, and what the names of container registries end in there."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    """A part of AWS with accounts of its own.

    Args:
        name: as ARNs have it.
        regions: a pattern of the names of its regions.
        domain: what the names of its hosts end in.
    """

    name: str
    regions: re.Pattern[str]
    domain: str


PARTITIONS = tuple(
    Partition(name, re.compile(regions), domain)
    for name, regions, domain in (
        ("aws", r"(us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d+", "amazonaws.com"),
        ("aws-cn", r"cn-[a-z]+-\d+", "amazonaws.com.cn"),
        ("aws-us-gov", r"us-gov-[a-z]+-\d+", "amazonaws.com"),
        ("aws-iso", r"us-iso-[a-z]+-\d+", "c2s.ic.gov"),
        ("aws-iso-b", r"us-isob-[a-z]+-\d+", "sc2s.sgov.gov"),
        ("aws-iso-e", r"eu-isoe-[a-z]+-\d+", "cloud.adc-e.uk"),
        ("aws-iso-f", r"us-isof-[a-z]+-\d+", "csp.hci.ic.gov"),
        ("aws-eusc", r"eusc-de-[a-z]+-\d+", "amazonaws.eu"),
    )
)
"""Source: botocore 1.43, data/partitions.json."""


def partition_of(region: str) -> Partition | None:
    """The partition that a region of this name is in; None where the name is not in the form of any."""
    return next((one for one in PARTITIONS if one.regions.fullmatch(region)), None)


def partition_named(name: str) -> Partition | None:
    """The partition that ARNs call this."""
    return next((one for one in PARTITIONS if one.name == name), None)
