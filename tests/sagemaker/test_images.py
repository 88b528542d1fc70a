"""The images of rule evaluators, by region."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.errors import Mistake
from evaluator.sagemaker.images import (
    BUILT_IN,
    CUSTOM,
    REGISTRIES,
    Image,
    Registry,
    hosted_image,
    own_image,
    parse_image,
)
from evaluator.sagemaker.regions import PARTITIONS, partition_named, partition_of
from tests.commands.program import call

SEED = Path(__file__).parents[3] / "shared/seeds/debugger-references.de.txt"
NOT_IN_THE_PAGE = {"ap-northeast-3": "479947661362"}
"""Only sagemaker-python-sdk has it."""


def page_accounts(repository: str) -> dict[str, str]:
    """The table of the page's part on this repository: a region, and after it twelve digits."""
    text = SEED.read_text(encoding="utf-8")
    parts = re.split(r"ECR[^\n]*: (?=sagemaker-debugger)", text)
    part = next(one for one in parts if one.startswith(f"{repository}\n"))
    return dict(re.findall(r"^([a-z]{2}-[a-z-]+-\d)\s+(\d{12})$", part, re.MULTILINE))


@pytest.mark.skipif(not SEED.exists(), reason="the guide's page is not here")
@pytest.mark.parametrize(
    ("registry", "beside"), [(BUILT_IN, NOT_IN_THE_PAGE), (CUSTOM, {})], ids=["built-in", "custom"]
)
def test_the_accounts_are_those_of_the_page(registry: Registry, beside: dict[str, str]):
    found = page_accounts(registry.repository)

    assert len(found) == 23
    assert dict(registry.accounts) == found | beside


@pytest.mark.skipif(not SEED.exists(), reason="the guide's page is not here")
def test_the_uris_of_the_page_are_made_and_understood():
    uris = re.findall(r"^\d{12}\.dkr\.ecr\S+$", SEED.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(uris) == 2
    for uri, registry in zip(uris, REGISTRIES, strict=True):
        image = hosted_image("ap-south-1", registry)
        assert isinstance(image, Image)
        assert image.uri == uri
        assert parse_image(uri) == image


@pytest.mark.parametrize("registry", REGISTRIES, ids=["built-in", "custom"])
def test_every_hosted_image_is_understood_again(registry: Registry):
    for region in registry.accounts:
        image = hosted_image(region, registry)

        assert isinstance(image, Image)
        assert parse_image(image.uri) == image
        assert image.registry is registry


def test_regions_are_counted_as_published():
    assert (len(BUILT_IN.accounts), len(CUSTOM.accounts)) == (24, 23)


@pytest.mark.parametrize("registry", REGISTRIES, ids=["built-in", "custom"])
def test_no_two_regions_share_an_account(registry: Registry):
    assert len(set(registry.accounts.values())) == len(registry.accounts)


@pytest.mark.parametrize("region", ["cn-north-1", "cn-northwest-1"])
def test_in_china_the_domain_is_that_of_the_partition(region: str):
    image = hosted_image(region)

    assert isinstance(image, Image)
    assert f".{region}.amazonaws.com.cn/" in image.uri


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1"])
def test_elsewhere_it_is_the_usual_one(region: str):
    image = hosted_image(region)

    assert isinstance(image, Image)
    assert f".{region}.amazonaws.com/" in image.uri


@pytest.mark.parametrize(("region", "nearest"), [("eu-central-11", "eu-central-1"), ("us-esat-2", "us-east-2")])
def test_an_unknown_region_is_answered_with_the_nearest_names(region: str, nearest: str):
    mistake = hosted_image(region)

    assert isinstance(mistake, Mistake)
    guess, _, _ = mistake.would_be_right.partition("?")
    assert guess.startswith("did you mean ")
    assert repr(nearest) in guess


def test_a_region_without_debugger_is_called_that():
    mistake = hosted_image("me-central-1")

    assert isinstance(mistake, Mistake)
    assert mistake.what.endswith("which has no Debugger")


def test_a_region_with_built_in_rules_only_has_no_image_for_custom_ones():
    assert isinstance(hosted_image("ap-northeast-3"), Image)
    assert isinstance(hosted_image("ap-northeast-3", CUSTOM), Mistake)


@pytest.mark.parametrize(
    ("region", "uri"),
    [
        ("eu-central-2", "111122223333.dkr.ecr.eu-central-2.amazonaws.com/team/rule-evaluator:1.0"),
        ("cn-north-1", "111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/team/rule-evaluator:1.0"),
        ("us-iso-east-1", "111122223333.dkr.ecr.us-iso-east-1.c2s.ic.gov/team/rule-evaluator:1.0"),
    ],
)
def test_an_image_of_ones_own_may_be_in_any_region(region: str, uri: str):
    image = own_image(region, "111122223333", "team/rule-evaluator", "1.0")

    assert isinstance(image, Image)
    assert image.uri == uri
    assert parse_image(uri) == image


def test_all_that_is_wrong_with_ones_own_image_is_said_at_once():
    mistakes = own_image("europe", "1111", "Team", "a b")

    assert isinstance(mistakes, list)
    assert [one.where for one in mistakes] == ["image-uri", "--account", "--repository", "--tag"]


@pytest.mark.parametrize(
    "uri", ["", "python:3.12", "docker.io/library/python:3.12", "1234.dkr.ecr.x.amazonaws.com/a:b"]
)
def test_an_image_from_elsewhere_has_no_region(uri: str):
    assert parse_image(uri) is None


def test_a_region_is_in_one_partition_at_most():
    for registry in REGISTRIES:
        for region in registry.accounts:
            assert sum(one.regions.fullmatch(region) is not None for one in PARTITIONS) == 1


def test_the_partitions_are_those_of_the_api_s_client():
    loaders = pytest.importorskip("botocore.loaders")
    theirs = loaders.Loader().load_data("partitions")["partitions"]

    assert {one.name: one.domain for one in PARTITIONS} == {one["id"]: one["outputs"]["dnsSuffix"] for one in theirs}
    for one in theirs:
        for region in one["regions"]:
            found = partition_of(region)
            # what is no place (aws-global) has no registry
            assert found is None if region.endswith("-global") else found is partition_named(one["id"])


def test_partitions_are_told_by_region_and_by_name():
    assert partition_of("us-gov-west-1") is partition_named("aws-us-gov")
    assert partition_of("eu-west-1") is partition_named("aws")
    assert partition_of("nowhere") is None
    assert partition_named("azure") is None


@pytest.mark.parametrize(
    ("arguments", "uri"),
    [
        (["ap-south-1"], "904829902805.dkr.ecr.ap-south-1.amazonaws.com/sagemaker-debugger-rules:latest"),
        (["AP-SOUTH-1"], "904829902805.dkr.ecr.ap-south-1.amazonaws.com/sagemaker-debugger-rules:latest"),
        (
            ["ap-south-1", "--custom"],
            "552407032007.dkr.ecr.ap-south-1.amazonaws.com/sagemaker-debugger-rule-evaluator:latest",
        ),
        (
            ["eu-west-1", "--account", "111122223333", "--repository", "rules"],
            "111122223333.dkr.ecr.eu-west-1.amazonaws.com/rules:latest",
        ),
    ],
)
def test_the_command_prints_the_uri_and_nothing_else(capsys, arguments: list[str], uri: str):
    ran = call(capsys, "image-uri", *arguments)

    assert (ran.code, ran.out, ran.err) == (0, f"{uri}\n", "")


def test_the_command_gives_the_parts_as_a_document(capsys):
    ran = call(capsys, "image-uri", "cn-north-1", "--json")

    assert ran.document == {
        "schema": 1,
        "image_uri": "618459771430.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-debugger-rules:latest",
        "kind": "built-in",
        "region": "cn-north-1",
        "account": "618459771430",
        "repository": "sagemaker-debugger-rules",
        "tag": "latest",
    }


def test_the_command_lists_all_regions(capsys):
    table = call(capsys, "image-uri", "--list").out
    document = call(capsys, "image-uri", "--list", "--custom", "--json").document

    assert all(region in table for region in BUILT_IN.accounts)
    assert {one["region"]: one["account"] for one in document["images"]} == CUSTOM.accounts


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ([], "image-uri: REGION is missing; for example 'eu-central-1', or --list for all"),
        (
            ["eu-west-1", "--tag", "x"],
            "--tag: hosted images have the tag 'latest' only; add --account and --repository",
        ),
        (["eu-west-1", "--account", "111122223333"], "--account: is given without --repository; give both "),
        (["eu-west-1", "--repository", "rules"], "--repository: is given without --account; give both "),
        (["eu-west-1", "--list"], "image-uri: --list lists all regions; "),
        (
            ["eu-wset-1"],
            "image-uri: no image for built-in rules is published for region 'eu-wset-1'; did you mean 'eu-west",
        ),
    ],
)
def test_wrong_arguments_are_exit_2(capsys, arguments: list[str], mistake: str):
    ran = call(capsys, "image-uri", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(mistake)
