#!/usr/bin/env bash
# Lays a root file system that holds the given programs, every library they load, CA certificates and
# the licences of it all: what the image is made of.
# usage: deploy/collect-root.sh OUT_DIR PROGRAM...
set -euo pipefail
out=$1
shift

copy() {  # keeps the path; a link's target comes along under the link's name
  install -D -m "$(stat -Lc %a "$1")" "$(readlink -f "$1")" "$out$1"
}

packages=()
own() {  # remembers the package that a file comes from
  local package
  package=$(dpkg-query -S "$(readlink -f "$1")" 2>/dev/null | head -n 1 | cut -d: -f1) ||
    package=$(dpkg-query -S "$1" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  [ -z "$package" ] || packages+=("$package")
}

for program in "$@"; do
  install -D -m 755 "$program" "$out/usr/bin/$(basename "$program")"
  strip --strip-unneeded "$out/usr/bin/$(basename "$program")"
  while read -r library; do
    [ -e "$out$library" ] || copy "$library"
    own "$library"
  done < <(ldd "$program" | grep -o '/[^ ]*')
done

copy /etc/ssl/certs/ca-certificates.crt
packages+=(ca-certificates)
mkdir -p "$out/tmp" "$out/models" "$out/etc"
chmod 1777 "$out/tmp"
echo 'attend:x:65532:65532::/:/nonexistent' >"$out/etc/passwd"
echo 'attend:x:65532:' >"$out/etc/group"

printf '%s\n' "${packages[@]}" | sort -u | while read -r package; do
  for copyright in "/usr/share/doc/$package/copyright" /usr/share/doc/"$package":*/copyright; do
    [ -e "$copyright" ] && install -D -m 644 "$(readlink -f "$copyright")" "$out/usr/share/doc/$package/copyright"
  done || true
done
echo "collected $(du -sh "$out" | cut -f1):"
du -a "$out" | sort -rn | head -n 12
