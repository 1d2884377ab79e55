dnl Builds the Rust crate one level up under PHP's own `phpize && ./configure && make && make install`, so that PIE can.
dnl No C source is compiled here, hence no PHP_NEW_EXTENSION: the extension is one make target (Makefile.frag).

PHP_ARG_ENABLE([nrllm-runtime],
  [whether to build nrllm_runtime],
  [AS_HELP_STRING([--enable-nrllm-runtime], [Build the nrllm_runtime extension])],
  [yes])

if test "$PHP_NRLLM_RUNTIME" != "no"; then
  dnl php-config may come as a bare name; the crate's build script wants a path that exists.
  case $PHP_CONFIG in
    */*) NRLLM_PHP_CONFIG=$PHP_CONFIG ;;
    *) NRLLM_PHP_CONFIG=`command -v $PHP_CONFIG` ;;
  esac
  NRLLM_PHP_CONFIG=`cd "\`dirname "$NRLLM_PHP_CONFIG"\`" && pwd`/`basename "$NRLLM_PHP_CONFIG"`

  dnl Some builds have a php-config that names no binary, or a moved one.
  NRLLM_PHP=$PHP_EXECUTABLE
  test -x "$NRLLM_PHP" || NRLLM_PHP=`dirname "$NRLLM_PHP_CONFIG"`/php
  if test ! -x "$NRLLM_PHP"; then
    AC_MSG_ERROR([no php binary found by $NRLLM_PHP_CONFIG nor beside it])
  fi

  AC_MSG_CHECKING([for a PHP that nrllm_runtime supports])
  if test "`$NRLLM_PHP_CONFIG --vernum`" -lt 80200; then
    AC_MSG_ERROR([nrllm_runtime needs PHP 8.2 or later, $NRLLM_PHP_CONFIG is of `$NRLLM_PHP_CONFIG --version`])
  fi
  NRLLM_PHP_VERSION=`$NRLLM_PHP_CONFIG --version`
  if test "$PHP_THREAD_SAFETY" = "yes"; then
    AC_MSG_RESULT([$NRLLM_PHP_VERSION, ZTS])
  else
    AC_MSG_RESULT([$NRLLM_PHP_VERSION, NTS])
  fi

  dnl The PATH of a cron job or a container build often lacks the folder in which rustup installs.
  AC_PATH_PROG([CARGO], [cargo], [no], [$PATH:${CARGO_HOME:-$HOME/.cargo}/bin:$HOME/.cargo/bin:/usr/local/cargo/bin])
  if test "$CARGO" = "no"; then
    AC_MSG_ERROR([cargo was not found in the PATH nor in ~/.cargo/bin: install a Rust toolchain (https://rustup.rs), or run ./configure CARGO=/path/to/cargo])
  fi

  NRLLM_CRATE=`cd "$abs_srcdir/.." && pwd`
  if test ! -f "$NRLLM_CRATE/Cargo.lock"; then
    AC_MSG_ERROR([$NRLLM_CRATE holds no Cargo.lock: pie/ builds only inside the complete source archive])
  fi

  dnl The version is Cargo.toml's. Without this check `make` would stop in the middle, with cargo's words. In the crate's folder
  dnl rustup may choose another toolchain than elsewhere.
  AC_MSG_CHECKING([for a Rust toolchain that can build nrllm_runtime])
  NRLLM_RUST_NEEDED=`sed -n 's/^rust-version = "\(.*\)"/\1/p' "$NRLLM_CRATE/Cargo.toml"`
  NRLLM_RUSTC=${RUSTC:-`dirname "$CARGO"`/rustc}
  test -x "$NRLLM_RUSTC" || NRLLM_RUSTC=rustc
  NRLLM_RUST=`cd "$NRLLM_CRATE" && "$NRLLM_RUSTC" --version 2>/dev/null | sed -n 's/^rustc \(@<:@0-9@:>@*\.@<:@0-9@:>@*\).*/\1/p'`
  if test -z "$NRLLM_RUST"; then
    AC_MSG_ERROR([$NRLLM_RUSTC does not report its version: install Rust $NRLLM_RUST_NEEDED or newer (https://rustup.rs)])
  fi
  if test "${NRLLM_RUST%%.*}" -lt "${NRLLM_RUST_NEEDED%%.*}" || { test "${NRLLM_RUST%%.*}" -eq "${NRLLM_RUST_NEEDED%%.*}" \
    && test "`echo "$NRLLM_RUST" | cut -d. -f2`" -lt "`echo "$NRLLM_RUST_NEEDED" | cut -d. -f2`"; }; then
    AC_MSG_ERROR([nrllm_runtime needs Rust $NRLLM_RUST_NEEDED or newer, and $NRLLM_RUSTC is $NRLLM_RUST: run rustup update, or install Rust from https://rustup.rs])
  fi
  AC_MSG_RESULT([$NRLLM_RUST])

  case `uname -s` in
    Darwin) NRLLM_LIBRARY=libnrllm_runtime.dylib ;;
    *) NRLLM_LIBRARY=libnrllm_runtime.so ;;
  esac

  PHP_SUBST(CARGO)
  PHP_SUBST(NRLLM_PHP)
  PHP_SUBST(NRLLM_PHP_CONFIG)
  PHP_SUBST(NRLLM_CRATE)
  PHP_SUBST(NRLLM_LIBRARY)

  dnl PHP's own rules (`all`, `install`, `test`) work from libtool's .la files; the fragment writes this one.
  PHP_MODULES="$PHP_MODULES \$(phplibdir)/nrllm_runtime.la"
  PHP_ADD_BUILD_DIR([$abs_builddir/modules])
  PHP_ADD_MAKEFILE_FRAGMENT([$abs_srcdir/Makefile.frag], [$abs_srcdir], [$abs_builddir])
fi
