#!/usr/bin/env bash
# Makes an image that can stand in for the Dockerfile's BASE_IMAGE, from Debian packages alone, for machines that reach
# no image registry: docker/base-image.sh [TAG]. As root; needs debootstrap and a running engine.
# The certificates that this machine trusts are trusted in it too, so that pip finds its way in a build. So it is for
# this machine and for tests; what is published should stand on a public base.
set -euo pipefail

tag=${1:-rule-evaluator-base:local}
suite=${SUITE:-trixie}
trusted=${CA_BUNDLE:-/etc/ssl/certs/ca-certificates.crt}
mirror=${MIRROR:-}

if [ "$(id -u)" -ne 0 ]; then
  echo "docker/base-image.sh: debootstrap needs root; would be right: sudo docker/base-image.sh" >&2
  exit 2
fi
if ! command -v debootstrap >/dev/null; then
  echo "docker/base-image.sh: debootstrap is missing; would be right: apt-get install debootstrap" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

if ! debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
  "$suite" "$root" ${mirror:+"$mirror"} >"$work/log" 2>&1; then
  tail -n 20 "$work/log" "$root/debootstrap/debootstrap.log" >&2 || true
  exit 1
fi

# what Debian's own slim images leave out too; licences stay
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/* "$root"/usr/share/{man,info,locale}/*
find "$root/usr/share/doc" -mindepth 2 -type f ! -name copyright -delete
if [ -s "$trusted" ]; then
  cp "$trusted" "$root/etc/ssl/certs/ca-certificates.crt"
fi

tar -C "$root" --sort=name --numeric-owner -c . |
  docker import --change 'ENV LANG=C.UTF-8' --change 'CMD ["python3"]' - "$tag" >/dev/null
echo "$tag"
