#!/bin/sh
# Puts SECRETS into a file that the gateways read. Where it is not set, one is made, and stays: `sh secret.sh <file>`.
set -eu
# The gateways are another user.
umask 022
if [ -n "${SECRETS:-}" ]; then
  printf '%s\n' "$SECRETS" >"$1.new"
elif [ ! -s "$1" ]; then
  head -c 32 /dev/urandom | base64 >"$1.new"
else
  exit 0
fi
mv "$1.new" "$1"
