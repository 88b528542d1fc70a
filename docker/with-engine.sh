#!/usr/bin/env bash
# Runs a command with a container engine and a registry on loopback at hand: docker/with-engine.sh COMMAND [ARGUMENT...]
# An engine that answers already is used; otherwise one is started for the time of the command, as root, with all that
# it keeps in a folder that goes away with it. It needs no firewall and no bridge: containers that need a network share
# the machine's (BUILD_NETWORK=host for builds). The command finds the registry in LOOPBACK_REGISTRY (host:port).
set -euo pipefail

if [ $# -eq 0 ]; then
  echo "docker/with-engine.sh: no command; would be right: docker/with-engine.sh make image image-test" >&2
  exit 2
fi

state=$(mktemp -d /tmp/engine.XXXXXX)
started=()

# what was started, by its number, and what it left
clean_up() {
  for pid in ${started[@]+"${started[@]}"}; do
    if kill "$pid" 2>/dev/null; then
      for _ in $(seq 150); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
      done
    fi
  done
  # an engine that ends leaves mounts of its storage driver at times; a folder must not be removed through them
  if [ -r /proc/mounts ]; then
    awk -v below="$state/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do
      umount -l "$mount" || true
    done
  fi
  rm -rf "$state"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

answers() {
  # docker info may end well without an engine
  docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

missing() {
  echo "docker/with-engine.sh: $1 is missing; would be right: apt-get install $2" >&2
  exit 2
}

command -v docker >/dev/null || missing docker docker.io
if ! answers; then
  command -v dockerd >/dev/null || missing dockerd docker.io
  export DOCKER_HOST=unix://$state/docker.sock
  # its own choice first, which is the fast one; vfs copies whole layers, and works everywhere
  for driver in "" vfs; do
    # a session of its own: signals of a terminal are for the command, and the engine ends when that has
    setsid dockerd --host "$DOCKER_HOST" --data-root "$state/data" --exec-root "$state/exec" \
      --pidfile "$state/dockerd.pid" --iptables=false --bridge=none \
      ${driver:+--storage-driver "$driver"} >"$state/dockerd.log" 2>&1 &
    engine=$!
    for _ in $(seq 300); do
      answers && break 2
      kill -0 "$engine" 2>/dev/null || break
      sleep 0.1
    done
    kill "$engine" 2>/dev/null || true
    wait "$engine" || true
    engine=
  done
  if [ -z "$engine" ]; then
    echo "docker/with-engine.sh: no engine could be started:" >&2
    tail -n 20 "$state/dockerd.log" >&2
    exit 3
  fi
  started+=("$engine")
  export BUILD_NETWORK=host
  echo "with-engine: started an engine, storage driver $(docker info --format '{{.Driver}}')"
fi

if command -v docker-registry >/dev/null; then
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  cat >"$state/registry.yml" <<END
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: $state/registry}}
http: {addr: "127.0.0.1:$port"}
END
  docker-registry serve "$state/registry.yml" >"$state/registry.log" 2>&1 &
  started+=("$!")
  export LOOPBACK_REGISTRY=127.0.0.1:$port
fi

"$@"
