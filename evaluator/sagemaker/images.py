"""Where the images of rule evaluators are: those of the hosted service by region, and one's own.

Source:
    Amazon SageMaker Developer Guide, "Docker images for Debugger rules", the tables of account IDs for built-in and for
    custom rule evaluators. ap-northeast-3, which is not in them: sagemaker-python-sdk 2.257.6,
    image_uri_config/debugger.json, which has built-in rules only and agrees with the guide in all other regions.
    The domain in China is that of the partition; the guide does not mention it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.errors import Mistake, did_you_mean, nearest
from evaluator.sagemaker.regions import partition_of

LATEST = "latest"
"""The only tag that the hosted service's images are published under."""

ACCOUNT = re.compile(r"\d{12}")
REPOSITORY = re.compile(r"(?=.{2,256}$)[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
"""Source: Amazon ECR API, registryId, repositoryName; the Open Container Initiative's grammar of tags."""

WITHOUT_DEBUGGER = frozenset(
    {
        "ap-south-2",
        "ap-southeast-3",
        "ap-southeast-4",
        "eu-central-2",
        "eu-south-2",
        "me-central-1",
        "us-gov-east-1",
        "us-iso-east-1",
        "us-isob-east-1",
    }
)
"""Source: sagemaker-python-sdk 2.257.6, its lists of regions that have no Debugger."""


@dataclass(frozen=True)
class Registry:
    """One repository of the hosted service, which every region has in an account of its own.

    Args:
        kind: what its images evaluate: "built-in" or "custom" rules.
        accounts: region -> account ID.
    """

    kind: str
    repository: str
    accounts: Mapping[str, str]


BUILT_IN = Registry(
    "built-in",
    "sagemaker-debugger-rules",
    {
        "af-south-1": "314341159256",
        "ap-east-1": "199566480951",
        "ap-northeast-1": "430734990657",
        "ap-northeast-2": "578805364391",
        "ap-northeast-3": "479947661362",
        "ap-south-1": "904829902805",
        "ap-southeast-1": "972752614525",
        "ap-southeast-2": "184798709955",
        "ca-central-1": "519511493484",
        "cn-north-1": "618459771430",
        "cn-northwest-1": "658757709296",
        "eu-central-1": "482524230118",
        "eu-north-1": "314864569078",
        "eu-south-1": "563282790590",
        "eu-west-1": "929884845733",
        "eu-west-2": "250201462417",
        "eu-west-3": "447278800020",
        "me-south-1": "986000313247",
        "sa-east-1": "818342061345",
        "us-east-1": "503895931360",
        "us-east-2": "915447279597",
        "us-gov-west-1": "515509971035",
        "us-west-1": "685455198987",
        "us-west-2": "895741380848",
    },
)
CUSTOM = Registry(
    "custom",
    "sagemaker-debugger-rule-evaluator",
    {
        "af-south-1": "515950693465",
        "ap-east-1": "645844755771",
        "ap-northeast-1": "670969264625",
        "ap-northeast-2": "326368420253",
        "ap-south-1": "552407032007",
        "ap-southeast-1": "631532610101",
        "ap-southeast-2": "445670767460",
        "ca-central-1": "105842248657",
        "cn-north-1": "617202126805",
        "cn-northwest-1": "658559488188",
        "eu-central-1": "691764027602",
        "eu-north-1": "091235270104",
        "eu-south-1": "335033873580",
        "eu-west-1": "606966180310",
        "eu-west-2": "074613877050",
        "eu-west-3": "224335253976",
        "me-south-1": "050406412588",
        "sa-east-1": "466516958431",
        "us-east-1": "864354269164",
        "us-east-2": "840043622174",
        "us-gov-west-1": "515361955729",
        "us-west-1": "952348334681",
        "us-west-2": "759209512951",
    },
)
REGISTRIES = (BUILT_IN, CUSTOM)

_URI = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.(?P<domain>[a-z0-9.-]+)"
    r"/(?P<repository>[^:@]+)(:(?P<tag>[^@]+))?(@(?P<digest>.+))?"
)


@dataclass(frozen=True)
class Image:
    """An image in Amazon ECR, by the parts of its URI."""

    account: str
    region: str
    domain: str
    repository: str
    tag: str = LATEST

    @property
    def uri(self) -> str:
        """How requests name it."""
        return f"{self.account}.dkr.ecr.{self.region}.{self.domain}/{self.repository}:{self.tag}"

    @property
    def registry(self) -> Registry | None:
        """The hosted service's registry that has a repository of this name."""
        return next((one for one in REGISTRIES if one.repository == self.repository), None)


def parse_image(uri: str) -> Image | None:
    """The parts of the URI of an image in Amazon ECR; None for one of any other registry."""
    found = _URI.fullmatch(uri.strip())
    if found is None:
        return None
    return Image(found["account"], found["region"], found["domain"], found["repository"], found["tag"] or LATEST)


def hosted_image(region: str, registry: Registry = BUILT_IN) -> Image | Mistake:
    """The hosted service's image for a region, or the mistake that none is published there."""
    name = region.strip().lower()
    partition, account = partition_of(name), registry.accounts.get(name)
    if account is not None and partition is not None:
        return Image(account, name, partition.domain, registry.repository)
    what = f"no image for {registry.kind} rules is published for region {region!r}"
    if name in WITHOUT_DEBUGGER:
        what += ", which has no Debugger"
    close = nearest(name, registry.accounts)
    all_of_them = did_you_mean("", registry.accounts, "regions")
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    return Mistake("image-uri", what, guess + all_of_them)


def own_image(region: str, account: str, repository: str, tag: str = LATEST) -> Image | list[Mistake]:
    """The image in a repository of one's own, or everything that is wrong with what was given.

    Any region does; that it exists, only AWS knows.
    """
    name = region.strip().lower()
    partition = partition_of(name)
    forms = (
        ("--account", account, ACCOUNT, "expected the 12 digits of an AWS account"),
        ("--repository", repository, REPOSITORY, "expected 2 to 256 of a-z, 0-9, '.', '_', '-' and '/'"),
        ("--tag", tag, TAG, "expected up to 128 letters, digits, '.', '_' and '-'"),
    )
    mistakes = [
        Mistake(where, f"{text!r} does not fit", right)
        for where, text, form, right in forms
        if not form.fullmatch(text)
    ]
    if partition is None:
        mistakes.insert(0, not_a_region(region))
    if mistakes or partition is None:
        return mistakes
    return Image(account, name, partition.domain, repository, tag)


def not_a_region(region: str, where: str = "image-uri") -> Mistake:
    """The mistake of a name that no region can have."""
    close = nearest(region.strip().lower(), BUILT_IN.accounts)
    guess = f"did you mean {' or '.join(map(repr, close))}?" if close else "for example 'eu-central-1'"
    return Mistake(where, f"{region!r} is no region of AWS", guess)
