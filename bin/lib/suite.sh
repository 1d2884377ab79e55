# For the suites of bin/suites: counts, the closing line. Sourced after common.sh.
#
# A suite is an executable bin/suites/NN-name; bin/test builds what they need, runs them two at a
# time and reads their closing line
#   N passed, N failed
# Header lines that bin/test reads:
#   # about: what it tests, in a line
#   # needs: server module     a private database server (NRLLM_TEST_SOCKET, _HOST, _PORT, _USER,
#                              _PASSWORD, _SERVER: accounts with all privileges), and the PHP
#                              module (NRLLM_MODULE: its path)
#   # builds: lints tests ffi package deny
#                              what bin/test builds before the first suite, so that no suite waits
#                              for the build of another; NRLLM_PACKAGED_MODULE is the module of
#                              `package`, a release build
#   # takes: N s, M s with --all
#                              seconds on two idle cores; the longest start first
#   # apart: REASON            it measures time: it runs while no other suite does
#   # only: all                runs with bin/test --all, or when it is named
#   # matrix: no               bin/matrix leaves it out: another system gives the same result
#   # matrix: yes              bin/matrix runs it although it is one of `only: all`
#   # if: path                 the suite exists only where the path exists
# NRLLM_TEST_ALL is 1 with --all. Arguments are those after `--` of bin/test. The output of a suite
# is shown when it fails.
# shellcheck shell=bash
SUITE_PASSED=0 SUITE_FAILED=0

# check LABEL COMMAND...: runs one check; its output is kept for a failure.
check() {
    local label=$1 output status=0
    shift
    output=$("$@" 2>&1 </dev/null) || status=$?
    if [ $status = 0 ]; then
        SUITE_PASSED=$((SUITE_PASSED + 1))
        say "ok      $label"
    else
        SUITE_FAILED=$((SUITE_FAILED + 1))
        say "FAILED  $label"
        printf '%s\n' "$output"
    fi
}

# finish: the closing line, and the exit code that goes with it.
finish() {
    say "$SUITE_PASSED passed, $SUITE_FAILED failed"
    [ "$SUITE_FAILED" = 0 ] && [ "$SUITE_PASSED" -gt 0 ]
    exit $?
}
