# The private server of a script: started once, and named in the environment of all child processes.
# Sourced after common.sh.
# shellcheck shell=bash

# server_start [mariadb|mysql] [-- server options]: starts one and exports NRLLM_TEST_SOCKET, _HOST,
# _PORT, _USER, _PASSWORD, _SERVER. The server ends with this script however the script ends: it
# waits on a pipe that only this script holds.
server_start() {
    local flavour=${1:-mariadb} line name value
    shift || true
    coproc NRLLM_SERVER { exec "$NRLLM_TOP/bin/private-server" --server "$flavour" "$@"; }
    # bash keeps a coprocess's descriptors from the commands it runs. That is needed here: a child
    # that outlives this script and holds the pipe's writing end would keep the server alive.
    NRLLM_SERVER_SCRIPT=$NRLLM_SERVER_PID NRLLM_SERVER_READY=
    while IFS= read -r line <&"${NRLLM_SERVER[0]}"; do
        [ "$line" != ready ] || { NRLLM_SERVER_READY=1; break; }
        name=${line%%=*} value=${line#*=}
        eval "value=$value"
        case $name in
            socket) export NRLLM_TEST_SOCKET=$value NRLLM_TEST_HOST=127.0.0.1 ;;
            port) export NRLLM_TEST_PORT=$value ;;
            user) export NRLLM_TEST_USER=$value ;;
            password) export NRLLM_TEST_PASSWORD=$value ;;
            version) NRLLM_SERVER_VERSION=$value ;;
            dir) NRLLM_SERVER_LOG=$value/server.log ;;
        esac
    done
    [ -n "$NRLLM_SERVER_READY" ] || return 1
    export NRLLM_TEST_SERVER=$flavour
}

server_stop() {
    [ -n "${NRLLM_SERVER_SCRIPT:-}" ] || return 0
    kill -TERM "$NRLLM_SERVER_SCRIPT" 2>/dev/null || true
    wait "$NRLLM_SERVER_SCRIPT" 2>/dev/null || true
    NRLLM_SERVER_SCRIPT=
}
