"""Images of rules that the job cannot use: of another region or partition, or of the wrong account or kind."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.errors import Mistake
from evaluator.sagemaker.check_job._request import Flaw, RuleEntry, TrainingRequest
from evaluator.sagemaker.images import CUSTOM, Image, hosted_image, not_a_region
from evaluator.sagemaker.regions import partition_of


def check(request: TrainingRequest) -> Iterator[Flaw]:
    """What is wrong with the image of each rule; where the region is not known, they must still agree."""
    first: Image | None = None
    for entry in (*request.rules, *request.profiler_rules):
        if entry.image is None:
            continue
        where = f"{entry.where}.{'image_uri' if request.estimator else 'RuleEvaluatorImage'}"
        image = entry.ecr_image
        if image is None:
            right = "rules run from Amazon ECR, <account>.dkr.ecr.<region>.<domain>/<repository>:<tag>"
            yield Flaw(where, f"{entry.image!r} is no image in Amazon ECR", right, "warning")
            continue
        yield from _host(image, where)
        yield from _place(image, where, request)
        if request.region is None and first is not None and image.region != first.region:
            what = f"the image is in region {image.region!r}, and that of an earlier rule in {first.region!r}"
            yield Flaw(where, what, "all images are in the region of the job")
        first = first or image
        yield from _kind(image, where, entry)


def _host(image: Image, where: str) -> Iterator[Flaw]:
    partition = partition_of(image.region)
    if partition is None:
        mistake = not_a_region(image.region, where)
        yield Flaw(where, mistake.what, mistake.would_be_right)
    elif image.domain != partition.domain:
        what = f"hosts in region {image.region!r} do not end in {image.domain!r}"
        yield Flaw(where, what, f"expected {partition.domain!r}")


def _place(image: Image, where: str, request: TrainingRequest) -> Iterator[Flaw]:
    partition = partition_of(image.region)
    if request.partition is not None and partition is not None and partition is not request.partition:
        what = f"the image is in partition {partition.name!r}, and the job runs in {request.partition.name!r}"
        yield Flaw(where, what, _right(image, request.region, "push it to a registry of that partition"))
    elif request.region is not None and partition is not None and image.region != request.region:
        what = f"the image is in region {image.region!r}, and the job runs in {request.region!r}"
        yield Flaw(where, what, _right(image, request.region, f"push it to a registry in {request.region!r}"))


def _kind(image: Image, where: str, entry: RuleEntry) -> Iterator[Flaw]:
    registry = image.registry
    if registry is None:
        return
    published = hosted_image(image.region, registry)
    if isinstance(published, Mistake):
        if partition_of(image.region) is not None:
            yield Flaw(where, published.what, published.would_be_right)
    elif published.account != image.account:
        what = f"account {image.account} is not that of the hosted service in region {image.region!r}"
        # a mirror of one's own may have the same name
        yield Flaw(where, what, f"expected {published.uri!r}", "warning")
    if registry is not CUSTOM and entry.source:
        custom = hosted_image(image.region, CUSTOM)
        right = custom.would_be_right if isinstance(custom, Mistake) else f"expected {custom.uri!r}"
        yield Flaw(where, "the image for built-in rules runs no rule files ('source_s3_uri')", right)


def _right(image: Image, region: str | None, otherwise: str) -> str:
    """What would be right instead of a hosted image; one's own must be copied."""
    if image.registry is None or region is None:
        return otherwise
    hosted = hosted_image(region, image.registry)
    return hosted.what if isinstance(hosted, Mistake) else f"expected {hosted.uri!r}"
