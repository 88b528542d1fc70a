"""image-uri: where the image of a rule evaluator is."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from evaluator.commands.base import Command, JsonOption, Session, session_of, shown
from evaluator.errors import InputError, Mistake
from evaluator.outcome import NOTHING_FOUND
from evaluator.sagemaker.images import BUILT_IN, CUSTOM, LATEST, REGISTRIES, Image, Registry, hosted_image, own_image

_WHERE = "image-uri"


def image_uri(
    context: typer.Context,
    region: Annotated[
        str | None, typer.Argument(metavar="REGION", show_default=False, help="A region of AWS, such as eu-central-1.")
    ] = None,
    custom: Annotated[
        bool, typer.Option("--custom", metavar="", help="The hosted image for rules in files of users.")
    ] = False,
    account: Annotated[
        str | None, typer.Option(metavar="ID", help="Of your own registry, together with --repository.")
    ] = None,
    repository: Annotated[str | None, typer.Option(metavar="NAME", help="Of your own, in --account.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="In your own repository; latest if not given.")] = None,
    list_all: Annotated[
        bool, typer.Option("--list", metavar="", help="List the hosted images of all regions instead.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Print the URI of an image that evaluates rules beside a training job in a region.

    Without --account it is the hosted service's image for its built-in rules (--custom: for rules of users);
    with --account and --repository it is your own.
    """
    session = session_of(context)
    if list_all:
        if region or account or repository or tag:
            raise InputError([Mistake(_WHERE, "--list lists all regions", "give --list alone, or with --custom")])
        _list(session, (CUSTOM,) if custom else REGISTRIES, as_json=as_json)
        return NOTHING_FOUND
    image, kind = _image(region, account, repository, tag, custom=custom)
    if as_json:
        session.print_json({"schema": 1, **_document(image, kind)})
    else:
        session.print(shown(image.uri), wrap=False)
    return NOTHING_FOUND


def _image(
    region: str | None, account: str | None, repository: str | None, tag: str | None, *, custom: bool
) -> tuple[Image, str]:
    """The image that was asked for, and whose it is."""
    mistakes = []
    if region is None:
        mistakes.append(Mistake(_WHERE, "REGION is missing", "for example 'eu-central-1', or --list for all"))
    if account is None and repository is None and tag is not None:
        mistakes.append(
            Mistake("--tag", f"hosted images have the tag {LATEST!r} only", "add --account and --repository")
        )
    elif (account is None) != (repository is None):
        missing, given = ("--account", "--repository") if account is None else ("--repository", "--account")
        mistakes.append(Mistake(given, f"is given without {missing}", "give both for a repository of your own"))
    if custom and (account is not None or repository is not None):
        mistakes.append(Mistake("--custom", "is about hosted images", "leave it out, or leave out your own repository"))
    if mistakes or region is None:
        raise InputError(mistakes)
    registry = CUSTOM if custom else BUILT_IN
    if account is None or repository is None:
        hosted = hosted_image(region, registry)
        if isinstance(hosted, Mistake):
            raise InputError([hosted])
        return hosted, registry.kind
    own = own_image(region, account, repository, LATEST if tag is None else tag)
    if isinstance(own, list):
        raise InputError(own)
    return own, "own"


def _document(image: Image, kind: str) -> dict[str, Any]:
    return {
        "image_uri": image.uri,
        "kind": kind,
        "region": image.region,
        "account": image.account,
        "repository": image.repository,
        "tag": image.tag,
    }


def _list(session: Session, registries: tuple[Registry, ...], *, as_json: bool) -> None:
    found = [(hosted_image(region, registry), registry.kind) for registry in registries for region in registry.accounts]
    images = [(image, kind) for image, kind in found if isinstance(image, Image)]
    if as_json:
        session.print_json({"schema": 1, "images": [_document(image, kind) for image, kind in images]})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("region", "rules", "image"):
        table.add_column(column, no_wrap=column != "image", overflow="fold")
    for image, kind in images:
        table.add_row(shown(image.region), shown(kind), shown(image.uri))
    session.print(table)


COMMAND = Command("image-uri", image_uri, 10)
