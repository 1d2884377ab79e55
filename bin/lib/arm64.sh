#!/usr/bin/env bash
# The tests on arm64, under qemu, in the root that bin/matrix prepares for them.
#   bin/lib/arm64.sh SUITE...      suites of bin/test that need no other PHP package: rust, phpt
# The module, the Rust tests and PHP are arm64; the compiler and the database server are not.
source "$(dirname "$(realpath "$0")")/common.sh"
source "$NRLLM_TOP/bin/lib/server.sh"
cd "$NRLLM_TOP"

# The kernel starts arm64 programs by qemu. The registration belongs to the user namespace that
# bin/matrix has made, and ends with it.
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf ':nrllm-arm64:M::%s:%s:%s:F\n' "$magic" "$mask" /usr/bin/qemu-aarch64-static \
    >/proc/sys/fs/binfmt_misc/register
say "== arm64: $(php -n -r 'echo "PHP ", PHP_VERSION, " on ", php_uname("m");')"

# Debian's rustc, because its standard library for arm64 is installed.
export RUSTC=/usr/bin/rustc CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
source "$NRLLM_TOP/bin/lib/php.sh"
php_for_cargo
target=${CARGO_TARGET_DIR:-$NRLLM_TOP/target}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/nrllm-test.XXXXXX")
trap 'server_stop; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cargo build --locked || die "the module cannot be built for arm64"
export NRLLM_MODULE=$target/$CARGO_BUILD_TARGET/debug/libnrllm_runtime.so
file=$(od -An -tx1 -j18 -N2 "$NRLLM_MODULE")
[ "$file" = ' b7 00' ] || die "$NRLLM_MODULE is not an arm64 library"
server_start mariadb || die "no private server: no test was run"
# Emulation makes everything slow.
export NRLLM_TEST_PATIENCE=10 PHPT_TIMEOUT=600 NRLLM_TEST_ALL=
failed=()
for suite in "$@"; do
    export NRLLM_TEST_TMP=$scratch/$suite
    mkdir -p "$NRLLM_TEST_TMP"
    say "== $suite"
    bin/suites/[0-9]*-"$suite" </dev/null || failed+=("$suite")
done
[ ${#failed[@]} = 0 ] || die "FAILED: ${failed[*]}"
