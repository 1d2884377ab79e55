# Runs PHPUnit tests and closes with the plain line. Sourced after common.sh.
# shellcheck shell=bash
source "$NRLLM_TOP/bin/lib/php.sh"

# phpunit_suite BOOTSTRAP FOLDER [-d NAME=VALUE]... [-- PHPUNIT ARGUMENTS...]: with the module
# loaded, and the settings given. Skipped, incomplete and risky tests, and those that assert
# nothing, count as failures.
phpunit_suite() {
    local bootstrap=$1 folder=$2 settings=() status=0 phpunit
    shift 2
    while [ $# -gt 0 ] && [ "$1" = -d ]; do settings+=(-d "$2"); shift 2; done
    [ "${1:-}" != -- ] || shift
    phpunit=$(command -v phpunit) || die "there is no phpunit on this machine: run bin/setup"
    "$PHP" -d "extension=$NRLLM_MODULE" "${settings[@]}" "$phpunit" --no-configuration --bootstrap "$bootstrap" --do-not-cache-result --fail-on-risky \
        --fail-on-warning --fail-on-skipped --fail-on-incomplete --colors=never --log-junit "$NRLLM_TEST_TMP/junit.xml" "$@" "$folder" || status=$?
    "$PHP" -r '
        $counts = ["tests" => 0, "failures" => 0, "errors" => 0, "skipped" => 0];
        $suites = is_file($argv[1]) ? simplexml_load_file($argv[1])->testsuite : [];
        foreach ($suites as $suite) {
            foreach (array_keys($counts) as $name) {
                $counts[$name] += (int) $suite[$name];
            }
        }
        $failed = $counts["failures"] + $counts["errors"];
        // What PHPUnit counts as a success and yet ends with an error for (risky tests, warnings)
        // is no success here.
        $failed = $failed === 0 && $counts["skipped"] === 0 && (int) $argv[2] !== 0 ? 1 : $failed;
        printf("%d passed, %d failed%s\n", max(0, $counts["tests"] - $failed - $counts["skipped"]), $failed,
            $counts["skipped"] > 0 ? ", {$counts["skipped"]} skipped" : "");
    ' "$NRLLM_TEST_TMP/junit.xml" $status
    return $status
}
