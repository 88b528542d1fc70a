#!/usr/bin/env bash
# Builds both images, rule-evaluator and rule-evaluator-builtin: docker/build.sh [TAG]
# BASE_IMAGE, BUILD_NETWORK and PLATFORM are passed on to the engine where they are set.
set -euo pipefail
cd "$(dirname "$0")/.."

tag=${1:-latest}
arguments=()

# How this machine's pip finds packages holds in the build too, and only there. By the environment: a value may have
# a password in it, and then should stand in no list of processes.
for variable in PIP_INDEX_URL PIP_EXTRA_INDEX_URL; do
  setting=$(echo "${variable#PIP_}" | tr A-Z_ a-z-)
  value=${!variable:-$(python3 -m pip config get "global.$setting" 2>/dev/null || true)}
  if [ -n "$value" ]; then
    export "$variable=$value"
    arguments+=(--build-arg "$variable")
  fi
done

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' evaluator/__init__.py)
revision=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)

for target in builtin custom; do
  name=rule-evaluator
  if [ "$target" = builtin ]; then
    name=rule-evaluator-builtin
  fi
  docker build --quiet \
    ${BASE_IMAGE:+--build-arg "BASE_IMAGE=$BASE_IMAGE"} \
    ${BUILD_NETWORK:+--network "$BUILD_NETWORK"} \
    ${PLATFORM:+--platform "$PLATFORM"} \
    --build-arg "VERSION=$version" --build-arg "REVISION=$revision" ${arguments[@]+"${arguments[@]}"} \
    --target "$target" --tag "$name:$tag" . >/dev/null
  echo "$name:$tag"
done
