#!/usr/bin/env bash
# Generates gen/ from ../../proto. With --check it writes nothing, and fails where what is committed is not what the proto
# files say. Needs Go, and `buf`: the one in the checkout's .venv, or the one that the variable BUF names.
set -euo pipefail
cd "$(dirname "$0")"
buf=${BUF:-$PWD/../../.venv/bin/buf}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
GOBIN="$scratch/bin" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
cat >"$scratch/buf.gen.yaml" <<YAML
version: v2
managed:
  enabled: true
  override:
    - file_option: go_package
      value: github.com/turnledger/turnledger/clients/go/gen/turnledgerv1;turnledgerv1
plugins:
  - local: $scratch/bin/protoc-gen-go
    out: .
    opt: [module=github.com/turnledger/turnledger/clients/go/gen]
YAML
BUF_CACHE_DIR="$scratch/cache" "$buf" generate ../../proto --template "$scratch/buf.gen.yaml" --output "$scratch/out"
if [ "${1:-}" = --check ]; then
  diff -r "$scratch/out" gen >/dev/null || { echo 'gen/ is not what the proto files say: run ./generate.sh' >&2; exit 1; }
else
  rm -rf gen && cp -r "$scratch/out" gen
fi
