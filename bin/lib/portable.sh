# Builds for other systems than this one, and determines what a built library needs. Sourced after
# common.sh.
# shellcheck shell=bash

# The oldest glibc that archives load on: Debian 10, Ubuntu 20.04 and RHEL 8 have it or a newer one.
PORTABLE_GLIBC=2.28
# The C compiler and linker with which Rust links against an old glibc, a package of PyPI.
PORTABLE_ZIG=0.17.1

# rustc's arguments that keep paths of this machine out of release artefacts.
portable_rustflags() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} flags
    flags="--remap-path-prefix=$NRLLM_TOP=/nrllm-runtime --remap-path-prefix=$cargo_home=/cargo"
    flags+=" --remap-path-prefix=$(rustc --print sysroot)=/rust"
    [ -z "${CARGO_TARGET_DIR:-}" ] || flags+=" --remap-path-prefix=$(realpath -m "$CARGO_TARGET_DIR")=/target"
    printf '%s\n' "$flags"
}

# portable_linker GLIBC: prints the path of a compiler that links against that glibc. Installs it
# once, into the user's cache. Returns 1, with the reason, where it cannot be had.
portable_linker() {
    local glibc=$1 tools=$NRLLM_TOOLS log arch linker
    if [ ! -x "$tools/zig-$PORTABLE_ZIG/bin/python3" ] || [ ! -e "$tools/zig-$PORTABLE_ZIG/.ready" ]; then
        log=$(mktemp)
        warn "Installing the linker for old glibc versions (ziglang $PORTABLE_ZIG from PyPI, once, into $NRLLM_TOOLS) …"
        rm -rf "$tools/zig-$PORTABLE_ZIG"
        mkdir -p "$tools"
        if ! { python3 -m venv "$tools/zig-$PORTABLE_ZIG" && "$tools/zig-$PORTABLE_ZIG/bin/python3" -m pip install -q "ziglang==$PORTABLE_ZIG"; } >"$log" 2>&1; then
            tail -n 3 "$log" >&2
            rm -rf "$log" "$tools/zig-$PORTABLE_ZIG"
            warn "It could not be installed (it needs python3-venv and PyPI)."
            return 1
        fi
        rm -f "$log"
        : >"$tools/zig-$PORTABLE_ZIG/.ready"
    fi
    case $(uname -m) in
        x86_64 | amd64) arch=x86_64 ;;
        aarch64 | arm64) arch=aarch64 ;;
        *) warn "There is no such linker for $(uname -m)."; return 1 ;;
    esac
    linker=$tools/zig-$PORTABLE_ZIG/cc-$glibc
    # rustc requests GCC's unwinder; this toolchain has LLVM's instead.
    cat >"$linker.new" <<SCRIPT
#!/usr/bin/env bash
arguments=()
for argument in "\$@"; do
    case \$argument in
        -lgcc_s) arguments+=(-lunwind) ;;
        --target=*) ;;
        *) arguments+=("\$argument") ;;
    esac
done
exec "$tools/zig-$PORTABLE_ZIG/bin/python3" -m ziglang cc -target $arch-linux-gnu.$glibc "\${arguments[@]}"
SCRIPT
    chmod 755 "$linker.new"
    mv "$linker.new" "$linker"
    printf '%s\n' "$linker"
}

# lowest_glibc FILE: the lowest glibc on which the library loads, as 2.28; nothing where it needs
# none.
lowest_glibc() {
    objdump -T "$1" | grep -oE '\(?GLIBC_[0-9][0-9.]*' | sed 's/.*_//' | sort -V | tail -n 1
}

# newer THIS THAT: whether version THIS is newer than THAT.
newer() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]; }

# portable_build GLIBC|native DIRECTORY CARGO-ARGUMENTS...: a release build without paths of this
# machine. Prints the folder with the result.
portable_build() {
    local glibc=$1 target=$2 triple linker variable flags
    shift 2
    RUSTFLAGS=$(portable_rustflags)
    export RUSTFLAGS
    if [ "$glibc" = native ]; then
        cargo build --release --locked --lib --target-dir "$target" "$@" >&2 || return 1
        printf '%s\n' "$target/release"
        return
    fi
    triple=$(uname -m)-unknown-linux-gnu
    linker=$(portable_linker "$glibc") || return 1
    variable=${triple//-/_}
    flags="-ffile-prefix-map=$NRLLM_TOP=/nrllm-runtime -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    env "CC_$variable=$linker" "CFLAGS_$variable=$flags" "CARGO_TARGET_${variable^^}_LINKER=$linker" \
        cargo build --release --locked --lib --target "$triple" --target-dir "$target" "$@" >&2 || return 1
    printf '%s\n' "$target/$triple/release"
}
