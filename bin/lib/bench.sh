# What the workers of benches/compare need to know about this machine's PHP. Sourced after php.sh.
# shellcheck shell=bash
NRLLM_BENCH_EXTENSIONS=$(php_extension_names mysqlnd pdo mysqli pdo_mysql posix pcntl mbstring)
NRLLM_BENCH_FFI_EXTENSIONS=$(php_extension_names ffi)
# PHP 8.5 and newer have opcache built in.
NRLLM_BENCH_OPCACHE=$("$PHP" -n -m | grep -qx 'Zend OPcache' && echo 'built in' || true)
export NRLLM_BENCH_EXTENSIONS NRLLM_BENCH_FFI_EXTENSIONS NRLLM_BENCH_OPCACHE
