"""An image is in another region or partition than the job, or its host's name is wrong, so that it cannot be pulled.

Images of rules are checked as `check-job` does, and the training image against the region of the job's ARN.
Source: user reports 64 and 65; the tables of hosted images in `rule-evaluator image-uri --list`.
"""

from __future__ import annotations

from evaluator.sagemaker.check_job import images
from evaluator.sagemaker.diagnose._check import Check, Example, Found, NotChecked, Ok, Result, Sign
from evaluator.sagemaker.diagnose._evidence import Evidence
from evaluator.sagemaker.diagnose._job import JobFacts
from evaluator.sagemaker.images import parse_image
from evaluator.sagemaker.regions import partition_of

SIGN = "image refused"
ABOUT_PLACES = ("is in region", "is in partition", "hosts in region", "published for region")
"""Of what `check-job` says of images; whether they fit the rule, it says as well."""


def check(evidence: Evidence) -> Result:
    """The refusal in a log or in the reason of a failure, or the images of the request."""
    failure = (evidence.job.failure if evidence.job is not None else None) or ""
    hits, request = evidence.hits(SIGN), evidence.request
    lines = list(hits.shown)
    if any(sign.shows(failure, failure.lower()) for sign in SIGNS):
        lines.append(failure)
    remedy: list[str] = []
    named = 0
    if request is not None and evidence.job is not None:
        rules = [entry for entry in (*request.rules, *request.profiler_rules) if entry.image is not None]
        named = len(rules) + (evidence.job.image is not None)
        flaws = [flaw for flaw in images.check(request) if any(word in flaw.what for word in ABOUT_PLACES)]
        lines += [f"{flaw.where}: {flaw.what}" for flaw in flaws]
        remedy += [f"{flaw.where}: {flaw.would_be_right}." for flaw in flaws]
        lines += _training_image(evidence.job)
    if lines:
        return Found("an image cannot be pulled where the job runs", tuple(lines), tuple(dict.fromkeys(remedy)))
    region = evidence.job.region if evidence.job is not None else None
    if named and region is not None:
        return Ok(f"{named} image{'s' if named > 1 else ''} in region {region}")
    if named:
        return NotChecked("in which region the job runs is not known: its ARN (a description) tells")
    if evidence.log is not None:
        return Ok("the log has no refusal of an image")
    return NotChecked(evidence.lacks("needs a request that names an image, a training job, or a log", "job", "log"))


def _training_image(job: JobFacts) -> list[str]:
    image = parse_image(job.image) if job.image is not None else None
    if image is None:
        return []
    partition = partition_of(image.region)
    if job.region is not None and image.region != job.region:
        return [f"the training image is in region {image.region!r}, and the job runs in {job.region!r}"]
    if partition is not None and image.domain != partition.domain:
        hosts = f"hosts in {image.region!r} end in {partition.domain!r}"
        return [f"the training image's host ends in {image.domain!r}, and {hosts}"]
    if partition is not None and job.partition not in (None, partition.name):
        return [f"the training image is in partition {partition.name!r}, and the job in {job.partition!r}"]
    return []


SIGNS = (
    Sign(("invalid dns suffix",)),
    Sign(("requested image", "not found")),
    Sign(("cannot find repository", "registry id")),
)


def _request(region: str | None, image_region: str, domain: str = "amazonaws.com") -> dict[str, object]:
    image = f"111122223333.dkr.ecr.{image_region}.{domain}/train:1"
    request: dict[str, object] = {"TrainingJobName": "job", "AlgorithmSpecification": {"TrainingImage": image}}
    arn = f"arn:aws:sagemaker:{region}:111122223333:training-job/job"
    return request if region is None else {**request, "TrainingJobArn": arn}


CHECK = Check(
    name="ImageOfAnotherRegion",
    place=13,
    inputs=("--training-job", "--request", "--log"),
    check=check,
    remedy=(
        "Push the image to a registry in the region of the job, and name that one.",
        "`rule-evaluator image-uri REGION` prints the hosted service's images for rules.",
    ),
    signs={SIGN: SIGNS},
    examples=(
        Example("the training image", "found", request=_request("eu-central-1", "us-east-1")),
        Example("the wrong domain", "found", request=_request("cn-north-1", "cn-north-1")),
        Example("the refusal in a log", "found", log="ValidationException: Rule Image x invalid: Invalid DNS suffix\n"),
        Example("the same region", "ok", request=_request("eu-central-1", "eu-central-1")),
        Example("a log without a refusal", "ok", log="step 1\n"),
        Example("the region is that of the image only", "not checked", request=_request(None, "eu-central-1")),
        Example(
            "no word of a region",
            "not checked",
            request={"TrainingJobName": "job", "AlgorithmSpecification": {"TrainingImage": "docker.io/me/train:1"}},
        ),
        Example("nothing to go by", "not checked", checkpoints={"keys.json": ["fc.weight"]}),
    ),
)
