"""Instances with EFA cannot talk to each other, because no security group lets all traffic pass from and to itself.

The training stalls while it initialises. For EFA, rules for addresses (0.0.0.0/0) are not enough: the group must be
named as source of an inbound and as target of an outbound rule for all traffic.
Source: Amazon SageMaker Developer Guide, "Troubleshooting distributed training", the part on stalls during
initialisation; Amazon EC2 User Guide, "Elastic Fabric Adapter", its list of instance types and the security group.
"""

from __future__ import annotations

from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result
from evaluator.sagemaker.diagnose._efa import has_efa
from evaluator.sagemaker.diagnose._evidence import Evidence, listed
from evaluator.sagemaker.diagnose._groups import SecurityGroup


def check(evidence: Evidence) -> Result:
    """Whether groups of the job let everything pass between its instances."""
    job = evidence.job
    if job is None:
        return NotChecked(evidence.lacks("needs a request or a training job", "job"))
    if job.instance_type is None:
        return NotChecked("the request names no type of instance")
    if not has_efa(job.instance_type):
        return Ok(f"{job.instance_type} has no EFA")
    if job.instances == 1:
        return Ok("one instance talks to nobody")
    if not job.groups:
        return Ok("the job is in SageMaker's own network, without security groups of yours")
    known = {group.id: group for group in evidence.groups or () if group.id in job.groups}
    if not known:
        named = f"what the security groups {listed(job.groups)} allow is not known"
        return NotChecked(evidence.lacks(f"{named}: --security-groups", "security_groups"))
    sources = {one for group in known.values() for one in group.sources}
    targets = {one for group in known.values() for one in group.targets}
    inward, outward = sources.intersection(job.groups), targets.intersection(job.groups)
    if inward and outward:
        return Ok(f"all traffic may pass from {listed(sorted(inward))} and to {listed(sorted(outward))}")
    unknown = [group for group in job.groups if group not in known]
    if unknown:
        return NotChecked(f"what {listed(unknown)} allows is not known; the other groups do not let all traffic pass")
    directions = " and ".join(word for word, there in (("inbound", inward), ("outbound", outward)) if not there)
    what = f"{job.instance_type} has EFA, and no security group of the job has an {directions} rule for all traffic"
    return Found(f"{what} of its own", tuple(_described(group) for group in known.values()))


def _described(group: SecurityGroup) -> str:
    inward = listed(sorted(group.sources)) or ("addresses only (0.0.0.0/0)" if group.open_in else "nobody")
    outward = listed(sorted(group.targets)) or ("addresses only (0.0.0.0/0)" if group.open_out else "nobody")
    return f"{group.id}: all traffic from {inward}, to {outward}"


def _groups(inward: list[str], outward: list[str], *, open_out: bool = False) -> dict[str, object]:
    def rule(groups: list[str]) -> list[dict[str, object]]:
        return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": one} for one in groups]}]

    everywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}] if open_out else []
    one = {"GroupId": "sg-1", "IpPermissions": rule(inward), "IpPermissionsEgress": [*rule(outward), *everywhere]}
    return {"SecurityGroups": [one]}


def _job(kind: str = "ml.p4d.24xlarge", count: int = 2, groups: tuple[str, ...] = ("sg-1",)) -> dict[str, object]:
    network = {"VpcConfig": {"SecurityGroupIds": [*groups], "Subnets": ["subnet-1"]}} if groups else {}
    resources = {"InstanceType": kind, "InstanceCount": count}
    return {"TrainingJobName": "job", "ResourceConfig": resources, **network}


CHECK = Check(
    name="EfaSecurityGroup",
    place=3,
    inputs=("--training-job", "--request with --security-groups"),
    check=check,
    remedy=(
        "Add to the security group an inbound rule: type All traffic, source the group itself.",
        "Add the same as outbound rule: type All traffic, destination the group itself.",
        "Then start the job again.",
    ),
    examples=(
        Example("no rules", "found", request=_job(), security_groups=_groups([], [])),
        Example(
            "outbound to all addresses only",
            "found",
            request=_job(),
            security_groups=_groups(["sg-1"], [], open_out=True),
        ),
        Example(
            "inbound from another group only", "found", request=_job(), security_groups=_groups(["sg-2"], ["sg-1"])
        ),
        Example("both rules", "ok", request=_job(), security_groups=_groups(["sg-1"], ["sg-1"])),
        Example("an instance type without EFA", "ok", request=_job("ml.g5.xlarge")),
        Example("one instance", "ok", request=_job(count=1)),
        Example("no network of one's own", "ok", request=_job(groups=())),
        Example("the rules are not known", "not checked", request=_job()),
        Example("nothing to go by", "not checked", log="step 1\n"),
    ),
)
