# Facts about the PHP that is used: its binary, its run-tests.php, the arguments that load what a
# test needs. Sourced after common.sh.
# shellcheck shell=bash
# Not exported unless the caller did: cargo rebuilds PHP's bindings whenever the variables PHP and
# PHP_CONFIG change.
PHP_GIVEN=${PHP:-}
PHP=$(command -v "${PHP:-php}") || die "there is no ${PHP_GIVEN:-php} on this machine: run bin/setup"

# php-config of the same PHP. The variable PHP_CONFIG comes first, then the folder of PHP: two
# builds of a version can be installed. Debian names it by version, and the unversioned one may be
# of another.
php_config() {
    local version config folder
    version=$("$PHP" -n -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
    folder=$(dirname "$PHP")
    for config in ${PHP_CONFIG:+"$PHP_CONFIG"} "$folder/php-config$version" "$folder/php-config" \
        "php-config$version" php-config; do
        if config=$(command -v "$config") && [[ $("$config" --version) == "$version".* ]]; then
            printf '%s\n' "$config"
            return
        fi
    done
    die "there is no php-config for PHP $version ($PHP): install its development package (bin/setup does it on Debian)"
}

# Sets the PHP to build for, where it differs from the one that the build finds by itself.
php_for_cargo() {
    local config found
    config=$(php_config)
    found=$(command -v php-config || true)
    if [ -n "$PHP_GIVEN" ] || [ -z "$found" ] || [ "$(realpath "$config")" != "$(realpath "$found")" ]; then
        export PHP PHP_CONFIG=$config
    fi
}

# run-tests.php has to be of the PHP that is tested. Debian keeps one for each API version, others
# one for each prefix.
php_run_tests() {
    local config candidate
    config=$(php_config)
    for candidate in "$("$config" --prefix)/lib/php/$(basename "$("$config" --extension-dir)")/build/run-tests.php" \
        "$("$config" --prefix)/lib/php/build/run-tests.php" "$("$config" --phpapi 2>/dev/null)/build/run-tests.php"; do
        if [ -e "$candidate" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    die "there is no run-tests.php for $PHP: install its development package (bin/setup does it on Debian)"
}

# php_extensions NAME...: prints `-d` and `extension=NAME` in lines for each that PHP has not built
# in, in the order given (mysqli and pdo_mysql need mysqlnd before them).
php_extensions() {
    local built_in dir name
    built_in=$("$PHP" -n -m)
    dir=$("$(php_config)" --extension-dir)
    for name in "$@"; do
        if ! grep -qix "$name" <<<"$built_in"; then
            [ -e "$dir/$name.so" ] || die "PHP has no extension $name ($dir/$name.so): install it (bin/setup does it on Debian)"
            printf -- '-d\nextension=%s\n' "$name"
        fi
    done
}

# php_extension_names NAME...: the same as names in one line, for scripts that start PHP themselves.
php_extension_names() { php_extensions "$@" | sed -n 's/^extension=//p' | paste -s -d ' '; }
