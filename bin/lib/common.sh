# Shared by the scripts of bin/: the project's folder, output, progress on a terminal. Sourced, not
# run.
# shellcheck shell=bash
set -euo pipefail
NRLLM_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
export NRLLM_TOP
# The shell may not have read rustup's environment yet, right after its installation.
[ ! -d "$HOME/.cargo/bin" ] || case ":$PATH:" in *":$HOME/.cargo/bin:"*) ;; *) PATH="$HOME/.cargo/bin:$PATH" ;; esac
case ":$PATH:" in *:/usr/sbin:*) ;; *) PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" ;; esac
export PATH
# Messages of PHP, MariaDB and cargo are compared and parsed: they must be the untranslated ones.
export LC_ALL=C.UTF-8
unset LANGUAGE

# Tools that a suite installs once live here, outside the working copy: another copy on this machine
# finds them.
NRLLM_TOOLS=${XDG_CACHE_HOME:-$HOME/.cache}/nrllm-runtime

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "$(basename "$0"): $*"; exit 1; }
# The comment at the head of a script is its help. Prints it.
usage() { sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//p}' "$0"; }
# Every script prints its help for --help, anywhere before a `--`, and exits with 0.
for NRLLM_ARGUMENT in "$@"; do
    case $NRLLM_ARGUMENT in
        --help | -h) usage; exit 0 ;;
        --) break ;;
    esac
done
unset NRLLM_ARGUMENT
on_terminal() { [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; }

# Prints the address that this machine installs Debian's packages from.
debian_mirror() {
    local files=(/etc/apt/sources.list.d/debian.sources /etc/apt/sources.list) found
    found=$({ cat "${files[@]}" 2>/dev/null || true; } \
        | sed -nE 's/^(URIs:|deb) +([^ ]*\/debian)\/?( .*|$)/\2/p' | head -n 1)
    say "${found:-http://deb.debian.org/debian}"
}

# Seconds with one decimal since the given `$EPOCHREALTIME`.
seconds_since() {
    local us=$(($(tr -d ., <<<"$EPOCHREALTIME") - $(tr -d ., <<<"$1")))
    printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# progress LABEL LOG COMMAND...: runs the command with its output in LOG. On a terminal one line
# shows the progress (the time, and the last line of the log); elsewhere nothing is printed. Returns
# the command's exit code; the caller keeps the log.
progress() {
    local label=$1 log=$2 start=$EPOCHREALTIME status=0 last width
    shift 2
    # In a separate process group: when the user stops this script, everything that the command has
    # started is stopped too, before this script cleans up.
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    PROGRESS_PID=$!
    set +m
    trap 'progress_stop; exit 130' INT TERM
    while on_terminal && kill -0 "$PROGRESS_PID" 2>/dev/null; do
        width=$(($(tput cols 2>/dev/null || echo 80) - ${#label} - 14))
        last=$(tail -c 400 "$log" 2>/dev/null | tr -d '\033' | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 || true)
        [ "$width" -gt 0 ] || width=1
        printf '\r\033[K%s  %5ss  %s' "$label" "$(seconds_since "$start")" "${last:0:$width}"
        # This only paces the display; its accuracy does not matter.
        sleep 0.3
    done
    wait "$PROGRESS_PID" || status=$?
    trap 'exit 130' INT TERM
    ! on_terminal || printf '\r\033[K'
    return $status
}
progress_stop() {
    trap '' INT TERM
    kill -TERM -- "-$PROGRESS_PID" 2>/dev/null || true
    # Processes that ignore the signal are killed after a moment.
    local i
    for ((i = 0; i < 50; i++)); do
        kill -0 -- "-$PROGRESS_PID" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL -- "-$PROGRESS_PID" 2>/dev/null || true
    wait "$PROGRESS_PID" 2>/dev/null || true
    ! on_terminal || printf '\n'
}
