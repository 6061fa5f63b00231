#!/usr/bin/env bash
# Fetches mini-redis from its registry and adds to a copy what a patch says. Prints where it is.
#
#   prepare.sh          mini-redis.patch: andweorc, and the dialed work
#   prepare.sh cost     cost.patch: andweorc as a feature, and nothing else to do (cost.py)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=0.4.1
patch=${1:-mini-redis}
copy=$here/../target/$patch
[ "$patch" = mini-redis ] || copy=$here/../target/mini-redis-$patch

if [ ! -e "$copy/Cargo.toml" ] || [ "$here/$patch.patch" -nt "$copy/Cargo.toml" ]; then
    rm -rf "$copy"
    mkdir -p "$copy/src"
    # A package that depends on it, and only so that cargo fetches it.
    printf '%s\n' '[workspace]' '[package]' 'name = "fetch"' 'version = "0.0.0"' 'edition = "2024"' \
        '[dependencies]' "mini-redis = \"=$version\"" >"$copy/Cargo.toml"
    touch "$copy/src/lib.rs"
    source=$(cargo metadata --quiet --format-version 1 --manifest-path "$copy/Cargo.toml" |
        python3 -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "mini-redis"))')
    rm -rf "$copy"
    cp -r "$(dirname "$source")" "$copy.new"
    # It was made with older versions of what it depends on.
    rm -f "$copy.new/Cargo.lock"
    patch --quiet --strip 1 --directory "$copy.new" <"$here/$patch.patch"
    mv "$copy.new" "$copy"
fi
(cd "$copy" && pwd)
