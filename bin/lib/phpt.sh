# Runs the phpt tests by PHP's own run-tests.php and closes with the plain line. Sourced after
# common.sh.
# shellcheck shell=bash
source "$NRLLM_TOP/bin/lib/php.sh"

# These tests concern features of the extension alone: its entry in PHP's list of extensions, its
# row in phpinfo(), Reflection of its classes (bin/suites/52-ffi compares the bridge's), the
# interrupt, and the comparison of results by `==`. All other tests run through the FFI bridge too.
PHPT_EXTENSION_ONLY=(extension-*.phpt interruptOnLoss-*.phpt values-*.phpt stubs-*.phpt information-*.phpt)

# phpt_suite [--valgrind] [--ffi LIBRARY] [--ini NAME=VALUE]... [-- TESTS...]: everything under
# phpt/ unless tests are named. With --ffi the classes are those of php-ffi/ over that C library,
# and the extension is not loaded.
phpt_suite() {
    local runner=() ini=() tests=() binding=(-d "extension=${NRLLM_MODULE:-}") library= source=$NRLLM_TOP results status=0 word passed=0 failed=0 skipped=0
    while [ $# -gt 0 ]; do
        case $1 in
            --valgrind) runner+=(-m --show-mem); shift ;;
            --ffi) library=$2; shift 2 ;;
            --ini) ini+=(-d "$2"); shift 2 ;;
            --) shift; tests=("$@"); break ;;
            *) die "phpt_suite: $1?" ;;
        esac
    done
    [ ${#tests[@]} -gt 0 ] || tests=("$NRLLM_TOP/phpt")
    cd "$NRLLM_TOP"
    if [ -n "$library" ]; then
        # The same tests, without those of the extension alone, and without the line that makes
        # run-tests.php load it.
        source=$NRLLM_TEST_TMP/ffi
        mkdir -p "$source"
        ln -s "$NRLLM_TOP"/* "$source"
        rm "$source/phpt"
        cp -R "$NRLLM_TOP/phpt" "$source"
        # shellcheck disable=SC2086
        (cd "$source/phpt" && rm -f ${PHPT_EXTENSION_ONLY[*]})
        sed -i -e '/^--EXTENSIONS--$/{N;s/\nnrllm_runtime$//;N;s/^--EXTENSIONS--\n--/--/}' "$source"/phpt/*.phpt
        tests=("${tests[@]/#"$NRLLM_TOP/"/}")
        tests=("${tests[@]/#/$source/}")
        printf '<?php\nconst NRLLM_RUNTIME_LIBRARY = %s;\nrequire %s;\n' "'$library'" "'$NRLLM_TOP/php-ffi/autoload.php'" >"$source/prepend.php"
        mapfile -t binding < <(php_extensions ffi)
        binding+=(-d "auto_prepend_file=$source/prepend.php" -d ffi.enable=preload)
        export NRLLM_FFI_PREPEND=$source/prepend.php
    fi
    # The runner's PHP and the tested PHP both run without php.ini; the extensions that a test needs
    # are loaded by name.
    mapfile -t extensions < <(php_extensions mysqlnd pdo mysqli pdo_mysql posix pcntl)
    results=$NRLLM_TEST_TMP/results
    # The output of every test, passing ones included, goes into a file: bin/test searches it for
    # passwords, and the log stays short. Shuffled: otherwise the runner assigns dozens of
    # neighbouring tests to one worker, and those that wait for leases run one after the other.
    # --temp-source and -target keep what the runner writes out of the tree. Its workers fail when
    # two of them create a folder at the same time.
    (cd "$NRLLM_TOP" && find phpt -type d -exec mkdir -p "$NRLLM_TEST_TMP/phpt/{}" \;)
    env NO_INTERACTION=1 TEST_PHP_EXECUTABLE="$PHP" REPORT_EXIT_STATUS=1 \
        "$PHP" -n "$(php_run_tests)" -n -q -j2 --shuffle --no-color --show-diff --set-timeout "${PHPT_TIMEOUT:-120}" --no-clean -W "$results" --show-out \
        --temp-source "$source" --temp-target "$NRLLM_TEST_TMP/phpt" "${runner[@]}" \
        "${extensions[@]}" "${binding[@]}" "${ini[@]}" "${tests[@]}" \
        | awk -v outputs="$NRLLM_TEST_TMP/outputs" '/^========OUT========$/ { out = 1 } { if (out) print >outputs; else { print; fflush() } } /^========DONE========$/ { out = 0 }' \
        || status=$?
    # One line per test: PASSED, FAILED, SKIPPED, BORKED, LEAKED, WARNED, XFAILED …; only the first
    # is a success.
    while read -r word _; do
        case $word in
            PASSED) passed=$((passed + 1)) ;;
            SKIPPED) skipped=$((skipped + 1)) ;;
            '') ;;
            *) failed=$((failed + 1)) ;;
        esac
    done <"$results"
    if [ $skipped -gt 0 ]; then
        say "Skipped, which counts as a failure:"
        grep '^SKIPPED' "$results" || true
    fi
    say "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
    return $status
}
