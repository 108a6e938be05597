#!/usr/bin/env bash
# Runs blocks of a document in order: run.sh NAME.., files in .blocks. One named .stays is what a reader has in a second terminal: the
# others wait until its network is up, and it gets Ctrl-C at the word `end`. With ALONE=1 this is the first process of namespaces of its
# own.
set -euo pipefail
# Jobs are process groups, so that Ctrl-C reaches all of one.
set -m
stays=

alone() {
  ip link set lo up
  mkdir -p /run/heliostat /run/netns
  mount -t tmpfs none /run/heliostat
  mount -t tmpfs none /run/netns
}

# The block that stays ends as by Ctrl-C, which some programs answer with 130.
end() {
  [ -n "$stays" ] || return 0
  local status=0
  kill -INT -- "-$stays"
  wait "$stays" || status=$?
  [ "$status" = 0 ] || [ "$status" = 130 ]
  stays=
}

# start FILE: a block that stays, until its network answers.
start() {
  bash -euo pipefail "$1" &
  stays=$!
  until heliostat show topology > /dev/null 2>&1; do
    kill -0 "$stays"
    sleep 0.1
  done
}

[ "$ALONE" = 0 ] || alone
for block in "$@"; do
  printf '== line %s\n' "$block"
  case $block in
  end) end ;;
  *.stays) start ".blocks/$block" ;;
  *) bash -euo pipefail ".blocks/$block" ;;
  esac
done
