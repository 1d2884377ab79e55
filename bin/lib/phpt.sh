# Runs the phpt tests by PHP's own run-tests.php and closes with the plain line. Sourced after common.sh.
# shellcheck shell=bash
source "$NRLLM_TOP/bin/lib/php.sh"

# phpt_suite [--valgrind] [--ini NAME=VALUE | --zend FILE]... [-- TESTS...]: everything under phpt/ unless tests are named.
phpt_suite() {
    local runner=() ini=() tests=() results status=0 word passed=0 failed=0 skipped=0
    while [ $# -gt 0 ]; do
        case $1 in
            --valgrind) runner+=(-m --show-mem); shift ;;
            --ini) ini+=(-d "$2"); shift 2 ;;
            --) shift; tests=("$@"); break ;;
            *) die "phpt_suite: $1?" ;;
        esac
    done
    [ ${#tests[@]} -gt 0 ] || tests=("$NRLLM_TOP/phpt")
    cd "$NRLLM_TOP"
    # PHP without php.ini, twice: the runner's and the tested one; what a test needs is loaded by name.
    mapfile -t extensions < <(php_extensions mysqlnd pdo mysqli pdo_mysql posix pcntl)
    results=$NRLLM_TEST_TMP/results
    # --temp-source and -target keep what the runner writes out of the tree. Its workers fail when two of them make a folder at once.
    (cd "$NRLLM_TOP" && find phpt -type d -exec mkdir -p "$NRLLM_TEST_TMP/phpt/{}" \;)
    env NO_INTERACTION=1 TEST_PHP_EXECUTABLE="$PHP" REPORT_EXIT_STATUS=1 \
        "$PHP" -n "$(php_run_tests)" -n -q -j2 --no-color --show-diff --set-timeout "${PHPT_TIMEOUT:-120}" --no-clean -W "$results" \
        --temp-source "$NRLLM_TOP" --temp-target "$NRLLM_TEST_TMP/phpt" "${runner[@]}" \
        "${extensions[@]}" -d "extension=$NRLLM_MODULE" "${ini[@]}" "${tests[@]}" || status=$?
    # One line a test: PASSED, FAILED, SKIPPED, BORKED, LEAKED, WARNED, XFAILED …; only the first is a success.
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
