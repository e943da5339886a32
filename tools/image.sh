#!/usr/bin/env bash
# Builds the image as an operator would, but without a registry and without Docker: buildah, on a base that debootstrap makes
# of Debian's own packages, from the locked wheels. Then its command runs as the image's user on a read-only tree with the two
# volumes alone writable; an engine of another user reaches it through the socket's group, a stranger does not.
#
# Needs root and apt on a Debian machine. Where something is missing it says what was not done.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '[image] %s\n' "$*"; }
skip() { say "NOT DONE: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "only root can make a base, mount it and change users"
command -v apt-get >/dev/null || skip "there is no apt to take buildah and debootstrap from"
missing=$(for tool in buildah debootstrap setpriv; do command -v $tool >/dev/null || echo $tool; done)
if [ -n "$missing" ]; then
  say "installing: $(echo $missing)"
  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    buildah debootstrap util-linux >/dev/null || skip "apt could not install $(echo $missing)"
fi

python=$PWD/.venv/bin/python
work=$(mktemp -d /tmp/turnledger-image-XXXXXX)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot _CONTAINERS_USERNS_CONFIGURED=
stores=(--root "$work/images" --runroot "$work/run")
pids=()
tidy() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for place in "$work"/tree/{run/turnledger,var/lib/turnledger,etc/turnledger,proc,dev/null,dev/urandom,tmp/client,.}; do
    mountpoint -q "$place" 2>/dev/null && umount "$place" || true
  done
  buildah "${stores[@]}" rm --all >/dev/null 2>&1 || true
  buildah "${stores[@]}" rmi --all --force >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap tidy EXIT

say "the locked wheels, once"
wheelhouse=dist/wheelhouse
mkdir -p "$wheelhouse"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
  --dest "$wheelhouse" -r requirements/runtime.lock -r requirements/build.lock

say "a base of Debian's packages"
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/base" >"$work/debootstrap.log" \
  2>&1 || { tail -5 "$work/debootstrap.log"; skip "debootstrap could not make a base"; }
rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/*
base=$(buildah "${stores[@]}" from scratch)
buildah "${stores[@]}" add --quiet "$base" "$work/base" / >/dev/null
buildah "${stores[@]}" commit --quiet --rm "$base" localhost/python-base:bookworm >/dev/null
rm -rf "$work/base"

say "the image, by deploy/Dockerfile"
buildah "${stores[@]}" bud --quiet --pull-never --isolation chroot -f deploy/Dockerfile \
  --ignorefile .dockerignore \
  --build-arg BASE=localhost/python-base:bookworm --build-arg PIP_ARGS="--no-index --find-links $wheelhouse" \
  -t localhost/turnledger-sidecar . >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; exit 1; }
say "DONE: built by buildah ($(buildah --version)), chroot isolation, packages from the locked wheels alone"

container=$(buildah "${stores[@]}" from --pull-never localhost/turnledger-sidecar)
root=$(buildah "${stores[@]}" mount "$container")
user=$(buildah "${stores[@]}" inspect --format '{{.OCIv1.Config.User}}' "$container")
[ "$user" = 7412:7412 ] || { say "the image runs as $user"; exit 1; }

say "its command, as user $user on a read-only tree"
socket_group=7500
mkdir -p "$work/tree" "$work/socket" "$work/store" "$work/client" "$root/run/turnledger" "$root/var/lib/turnledger" "$root/tmp/client"
chown root:$socket_group "$work/socket" && chmod 2770 "$work/socket"
chown 7412:7412 "$work/store" && chmod 0700 "$work/store"
cp -r clients/python/turnledger "$work/client/"
chmod -R a+rX "$work/client" && chmod 0711 "$work"
mount --bind "$root" "$work/tree"
mount --bind "$work/socket" "$work/tree/run/turnledger"
mount --bind "$work/store" "$work/tree/var/lib/turnledger"
mount --bind "$work/client" "$work/tree/tmp/client"
mount -o remount,bind,ro "$work/tree"
inside() { # user, groups, command...
  local as=$1 groups=$2
  shift 2
  chroot --userspec="$as:$as" --groups="$groups" "$work/tree" /usr/bin/env -i PATH=/opt/turnledger/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 "$@"
}
inside 7412 "$socket_group" sh -c 'touch /opt/x 2>/dev/null' && { say "the tree can be written to"; exit 1; }

inside 7412 "$socket_group" TURNLEDGER_HEALTH=127.0.0.1:17412 turnledger serve >"$work/log" 2>&1 &
pids+=($!)
serving=$!
for _ in $(seq 100); do [ -S "$work/socket/turnledger.sock" ] && break; sleep 0.1; done
inside 7412 "$socket_group" turnledger probe --health 127.0.0.1:17412 || { cat "$work/log"; exit 1; }

cat >"$work/client/engine.py" <<'PYTHON'
import sys
from turnledger import BlockingLedger, Reply
with BlockingLedger("unix:///run/turnledger/turnledger.sock") as ledger:
    turn = ledger.begin(agent_handle="support", conversation_key="jira:POC-7", turn_id="run-0001", work_key="5f0c9e")
    receipt = turn.complete(Reply("It ships on Friday."), trigger="Where is it?")
    print(turn.read_failure or "read", receipt.failure or receipt.disposition)
    sys.exit(0 if receipt.disposition == "recorded" else 1)
PYTHON
chmod a+r "$work/client/engine.py"
inside 10001 "$socket_group" PYTHONPATH=/tmp/client:/opt/turnledger/lib/python3.11/site-packages python3 /tmp/client/engine.py
say "DONE: an engine of another user (10001), in the socket's group, recorded a turn"
if inside 10002 10002 PYTHONPATH=/tmp/client:/opt/turnledger/lib/python3.11/site-packages python3 /tmp/client/engine.py; then
  say "a stranger reached the socket"; exit 1
fi
say "DONE: a user outside the group did not reach it"
inside 10001 "$socket_group" sh -c 'ls /var/lib/turnledger' 2>/dev/null && { say "the engine can look into the store"; exit 1; }
say "DONE: nobody but the sidecar's user looks into the store's volume"

served=$(pgrep -P "$serving" | head -1)
kill -TERM "${served:-$serving}"
wait "$serving" && say "DONE: SIGTERM ended it with 0" || { say "it ended with $?"; cat "$work/log"; exit 1; }
pids=()
du -sh "$root/opt/turnledger" | sed 's/^/[image] its own part: /'
