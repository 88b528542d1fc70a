"""Security groups, as far as their rules let everything pass to and from a group.

Source:
    Amazon EC2 API, DescribeSecurityGroups (service model of botocore 1.43): IpProtocol -1 is all traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.errors import Mistake
from evaluator.sagemaker.diagnose._values import identified, tables, text

ALL_TRAFFIC = "-1"


@dataclass(frozen=True)
class SecurityGroup:
    """A group.

    Args:
        sources: the groups from which all traffic may come.
        targets: the groups to which all traffic may go.
        open_in: whether everything may come from all addresses.
        open_out: whether everything may go to all addresses.
    """

    id: str
    sources: frozenset[str]
    targets: frozenset[str]
    open_in: bool = False
    open_out: bool = False


def security_groups(document: object, where: str) -> list[SecurityGroup] | Mistake:
    """The groups that a document lists, or the mistake that it lists none."""
    listed = identified(document, "SecurityGroups", "GroupId")
    if listed is None:
        right = "expected what 'aws ec2 describe-security-groups' answers, an object with a list SecurityGroups"
        return Mistake(where, "lists no security groups", right)
    return [_group(one) for one in listed]


def _group(one: Mapping[str, object]) -> SecurityGroup:
    sources, open_in = _passed(one.get("IpPermissions"))
    targets, open_out = _passed(one.get("IpPermissionsEgress"))
    return SecurityGroup(str(one["GroupId"]), sources, targets, open_in, open_out)


def _passed(rules: object) -> tuple[frozenset[str], bool]:
    groups: set[str] = set()
    everywhere = False
    for rule in tables(rules):
        if rule.get("IpProtocol") != ALL_TRAFFIC:
            continue
        groups.update(group for pair in tables(rule.get("UserIdGroupPairs")) if (group := text(pair.get("GroupId"))))
        everywhere = everywhere or any(one.get("CidrIp") == "0.0.0.0/0" for one in tables(rule.get("IpRanges")))
    return frozenset(groups), everywhere
