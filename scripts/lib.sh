# Shared by the scripts here: privileges, packages and Rust on Debian and Ubuntu. To be sourced, after `set -euo pipefail`.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$PATH:$HOME/.cargo/bin"

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$(basename "$0"): $*"
  exit 1
}
have() { command -v "$1" > /dev/null 2>&1; }

# Whether we are root, or can be without a terminal being asked in vain.
can_be_root() {
  [ "$(id -u)" = 0 ] && return 0
  have sudo || return 1
  sudo -n true 2> /dev/null && return 0
  [ -t 0 ] && sudo -v
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of the packages that are missing; fails where that is not possible.
need_packages() {
  local p missing=()
  have dpkg-query || { say "not a Debian or Ubuntu machine; these are assumed to be installed: $*"; return 0; }
  for p in "$@"; do
    dpkg-query -W -f '${Status}' "$p" 2> /dev/null | grep -q 'install ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} = 0 ] && return 0
  can_be_root || { say "missing, and without root they cannot be installed: ${missing[*]}"; return 1; }
  say "installing ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
  as_root "${install[@]}" > /dev/null 2>&1 || { as_root apt-get update -q >&2 && as_root "${install[@]}" >&2; }
}

wanted_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml"; }
found_rust() { rustc --version 2> /dev/null | awk '{ print $2 }'; }
rust_is_new_enough() {
  local found
  found=$(found_rust)
  have cargo && [ -n "$found" ] && [ "$(printf '%s\n%s\n' "$(wanted_rust)" "$found" | sort -V | head -n 1)" = "$(wanted_rust)" ]
}

# Sees to a Rust that is new enough; a too old one is never replaced behind its owner's back.
need_rust() {
  need_packages build-essential || have cc || die "no C compiler: install build-essential"
  rust_is_new_enough && return 0
  if have cargo || have rustc; then
    die "Rust $(found_rust) is too old, $(wanted_rust) or newer is needed: run 'rustup update', or install it from https://rustup.rs"
  fi
  say "installing Rust with rustup, for this user"
  need_packages curl ca-certificates || true
  if curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal --component clippy,rustfmt --no-modify-path; then
    hash -r
  else
    say "rustup did not work; trying the distribution's packages"
    need_packages rustc cargo || true
  fi
  rust_is_new_enough || die "found Rust '$(found_rust)', $(wanted_rust) or newer is needed: install it from https://rustup.rs"
}
