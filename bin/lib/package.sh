# Shared by the suites of the packages: the source archive, the commands of docs/installation.md,
# the folder in which all of them build. Sourced after suite.sh and php.sh.
# shellcheck shell=bash
source "$NRLLM_TOP/bin/lib/portable.sh"
tmp=$NRLLM_TEST_TMP
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$NRLLM_TOP/Cargo.toml" | head -n 1)
minor=$("$PHP" -n -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
suffix=$("$PHP" -n -r 'echo PHP_DEBUG ? "-debug" : "", PHP_ZTS ? "-zts" : "";')
# A release build of its own: PIE's steps name PHP in the environment, at which cargo would rebuild
# what `cargo build` has built. The same folder and arguments as those of bin/package, so that the
# crates are built once.
package_target=$NRLLM_TOP/target/package
export CARGO_TARGET_DIR=$package_target
unset PHP_CONFIG
config=$(php_config)

# block LANGUAGE HEADING NUMBER: that block of code under that heading of docs/installation.md.
block() {
    awk -v language="$1" -v heading="## $2" -v number="$3" '/^## / { there = $0 == heading; seen = 0 }
        there && $0 == "```" language { on = ++seen == number; next } /^```$/ { on = 0 } on' docs/installation.md
}
# Extracts what `git archive` of the next commit would hold: HEAD, and what has changed since.
archive() {
    local tree
    tree=$(git -c user.name=test -c user.email=test@localhost stash create)
    mkdir -p "$tmp/source"
    git archive "${tree:-HEAD}" | tar -x -C "$tmp/source"
}
# Runs a command as root on a machine without Rust: no cargo in the PATH, none in the home folder.
without_cargo() { env -i HOME="$tmp" PATH=/usr/bin:/bin "$@"; }
# loads FILE: whether the extension is of this version, and answers.
loads() { [ "$("$PHP" -n -d "extension=$1" -r 'echo phpversion("nrllm_runtime"), " ", NrLlmRuntime::backoffMs(1);')" = "$version 60000" ]; }
# What PIE looks for; where the library needs a newer glibc than PIE's users may have, another name.
name_for() { # FILE
    local libc=musl needs
    if ! ldd --version 2>&1 | grep -qi musl; then
        tar -xzf "$1" -C "$tmp" nrllm_runtime.so
        needs=$(lowest_glibc "$tmp/nrllm_runtime.so") libc=glibc
        if newer "$needs" 2.28; then libc=glibc$needs; fi
    fi
    printf '%s\n' "php_nrllm_runtime-v${version}_php$minor-$(uname -m | sed 's/aarch64/arm64/')-linux-$libc$suffix.tgz"
}
# as_documented ARCHIVE COMMANDS [TREE]: runs the commands of docs/installation.md, in the TREE if
# one is given, with this PHP and that archive in the place of the ones that they name. In the mount
# namespace of these commands PHP's folders are copies; sudo and the tools of images are replaced.
as_documented() {
    local archive=$1 commands=$2 folder=$tmp/documented tree=${3:-$tmp/documented/work}
    [ -n "$commands" ] || { echo 'the page has no such block'; return 1; }
    rm -rf "$folder"
    mkdir -p "$folder/bin" "$folder/work"
    cp -a /etc/php "$folder/etc"
    cp -a "$("$config" --extension-dir)" "$folder/extensions"
    cp -a /var/lib/php "$folder/lib"
    printf '#!/bin/sh\nexec "$@"\n' >"$folder/bin/sudo"
    printf '#!/bin/sh\necho "extension=$1" >/etc/php/%s/cli/conf.d/99-$1.ini\n' "$minor" >"$folder/bin/docker-php-ext-enable"
    chmod +x "$folder/bin/sudo" "$folder/bin/docker-php-ext-enable"
    [ -z "$archive" ] || cp "$archive" "$tree/archive.tgz"
    sed -E "s#php_nrllm_runtime-v[0-9.]+_php[0-9.]+-x86_64-linux-glibc(-zts)?\.tgz#archive.tgz#g; s#(php/|php-config|-v )8\.[0-9]+#\1$minor#g" <<<"$commands" >"$folder/commands"
    echo 'php --ri nrllm_runtime' >>"$folder/commands"
    unshare --mount --propagation private bash -e -c '
        mount --bind "$1/etc" /etc/php && mount --bind "$1/extensions" "$2" && mount --bind "$1/lib" /var/lib/php
        cd "$3" && PATH=$1/bin:$PATH bash -eu -o pipefail "$1/commands"' bash "$folder" "$("$config" --extension-dir)" "$tree"
}

# ---- phpize and ./configure in the source archive ------------------------------------------------
build_path=$tmp/source/$("$PHP" -n -r 'echo json_decode(file_get_contents("composer.json"), true)["php-ext"]["build-path"];')
phpize=$("$config" --prefix)/bin/phpize
# Debian has one for each version.
phpize=$(command -v "phpize$("$PHP" -n -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')" || command -v "$phpize" || command -v phpize)
in_build_path() { (cd "$build_path" && "$@"); }
