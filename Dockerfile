# Two images of one program: `custom` (rule-evaluator; the last target, so the default) and `builtin`
# (rule-evaluator-builtin), which runs the rules that come with the program and no others.
# For any builder, also those without BuildKit, and any platform that Python has wheels for.

# any image with Debian's or Python's own Python, 3.11 or newer, venv included
ARG BASE_IMAGE=python:3.13.9-slim-trixie

FROM ${BASE_IMAGE} AS build
# where a build reaches packages by other ways than pip's own; set during the build only, and in no image
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_NO_CACHE_DIR=1
ARG PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
# pip stays in an environment of its own, so that none is in the one that becomes part of the image
RUN python3 -m venv pip && python3 -m venv --without-pip /opt/rule-evaluator
COPY docker/requirements.lock docker/build.lock ./
# only wheels: nothing is compiled here; the packages' own tests are a tenth of their size
RUN pip/bin/pip --python /opt/rule-evaluator/bin/python install \
      --quiet --no-compile --require-hashes --only-binary :all: -r requirements.lock \
 && find /opt/rule-evaluator/lib -type d \( -name tests -o -path '*/tornado/test' \) -prune -exec rm -rf {} + \
 && pip/bin/pip install --quiet --require-hashes --only-binary :all: -r build.lock
COPY pyproject.toml README.md LICENSE source/
COPY evaluator source/evaluator
COPY builtin_rules source/builtin_rules
# Compiled once, and believed whatever the files' times say: the root may be read-only, and layers round times.
# What is in `packages` is found after everything of the program's own; see docs/docker.md, "Add packages".
RUN pip/bin/pip --python /opt/rule-evaluator/bin/python install --quiet --no-compile --no-deps --no-index \
      "$(pip/bin/pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir wheel ./source && ls wheel/*.whl)" \
 && mkdir /opt/rule-evaluator/packages \
 && echo /opt/rule-evaluator/packages \
      > "$(/opt/rule-evaluator/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/packages.pth" \
 && /opt/rule-evaluator/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/rule-evaluator/lib

FROM ${BASE_IMAGE} AS program
# What installs programs has no place in what runs them. Some bases come without their library compiled, and on a
# read-only root it would be compiled anew at each start.
RUN set -eu; library="$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"; \
    rm -rf "$library/ensurepip" /usr/share/python-wheels /usr/local/bin/pip* \
      "$library"/site-packages/pip "$library"/site-packages/pip-* \
      "$library"/site-packages/setuptools "$library"/site-packages/setuptools-* "$library"/site-packages/_distutils_hack \
      "$library"/site-packages/distutils-precedence.pth "$library"/site-packages/wheel "$library"/site-packages/wheel-*; \
    python3 -m compileall -q --invalidation-mode unchecked-hash -x '/(test|tests|idlelib|lib2to3|turtledemo)/' "$library"
COPY --from=build /opt/rule-evaluator /opt/rule-evaluator
ENV PATH=/opt/rule-evaluator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rule-evaluator" \
      org.opencontainers.image.description="Evaluates rules over the tensors that a training run saved, step by step" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# the folders of a processing job belong to root; any other user works too where the output can be written
USER root
WORKDIR /
ENTRYPOINT ["rule-evaluator"]
CMD ["container"]

FROM program AS builtin
LABEL org.opencontainers.image.title="rule-evaluator-builtin"
ENV RULE_EVALUATOR_ALLOW_USER_RULES=false

FROM program AS custom
