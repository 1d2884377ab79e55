"""The library as a Python worker uses it, over ctypes. NRLLM_TEST_… name a database with the runs of with_database.php."""

import ctypes
import json
import os
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
# The version of the interface is read before any other function is called.
library.nrllm_abi_version.restype = ctypes.c_uint32
assert library.nrllm_abi_version() == 1
library.nrllm_version.restype = ctypes.c_char_p
library.nrllm_error_message.restype = ctypes.c_char_p
for name in ("nrllm_error_message", "nrllm_error_code", "nrllm_error_free", "nrllm_string_free", "nrllm_runtime_free", "nrllm_kept_lease_free"):
    getattr(library, name).argtypes = [ctypes.c_void_p]

STATUS = ["ok", "argument", "configuration", "connection", "query", "lease_lost", "run_cancelled", "internal"]


class RuntimeFailure(Exception):
    """An error of the library: its status, the server's number, and what happened."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status = STATUS[status]
        self.code = code


def call(function, *arguments, answer=None):
    """Calls a function. Numbers go as 64 bits, texts as pointer and length, dictionaries as JSON; `answer` is the type of the answer."""
    passed = []
    for argument in arguments:
        if isinstance(argument, dict):
            argument = json.dumps(argument)
        if isinstance(argument, str):
            argument = argument.encode()
        if isinstance(argument, bytes):
            passed += [ctypes.c_char_p(argument), ctypes.c_size_t(len(argument))]
        elif isinstance(argument, int):
            passed.append(ctypes.c_int64(argument))
        else:
            passed.append(argument)
    place = answer() if answer else None
    if place is not None:
        passed.append(ctypes.byref(place))
    error = ctypes.c_void_p()
    status = getattr(library, function)(*passed, ctypes.byref(error))
    if status:
        failure = RuntimeFailure(status, library.nrllm_error_code(error), library.nrllm_error_message(error).decode())
        library.nrllm_error_free(error)
        raise failure
    assert not error.value
    return place


def flag(function, *arguments):
    return call(function, *arguments, answer=ctypes.c_bool).value


def text(function, *arguments):
    place = call(function, *arguments, answer=ctypes.c_void_p)
    if not place.value:
        return None
    value = ctypes.string_at(place.value).decode()
    library.nrllm_string_free(place)
    return value


def fails(status, part, function, *arguments, **more):
    try:
        call(function, *arguments, **more)
    except RuntimeFailure as failure:
        assert failure.status == status and part in str(failure), (failure.status, str(failure))
        return failure
    raise AssertionError(f"{function} did not fail")


NONE = (None, ctypes.c_size_t(0))
settings = {
    "driver": "mysqli",
    "unix_socket": os.environ["NRLLM_TEST_SOCKET"],
    "user": os.environ["NRLLM_TEST_USER"],
    "password": os.environ["NRLLM_TEST_PASSWORD"],
    "dbname": os.environ["NRLLM_TEST_DATABASE"],
}
# Long limits for valgrind on a busy machine: they end a hung call, and no test waits for them.
patient = {"connectTimeoutMs": 60000, "queryTimeoutMs": 60000}
runtime = call("nrllm_runtime_new", settings, patient | {"jitter": 0.0}, *NONE, answer=ctypes.c_void_p)
owner = text("nrllm_identity", "python")
assert owner.startswith("python:")
lease_end = int(time.time()) + 600

# A run's life.
assert flag("nrllm_claim_queued", runtime, 1, owner, lease_end)
assert not flag("nrllm_claim_queued", runtime, 1, owner, lease_end)
assert flag("nrllm_renew_lease", runtime, 1, owner, lease_end)
assert text("nrllm_lease_state", runtime, 1, owner) == "held"
assert text("nrllm_lease_state", runtime, 1, "wörker") == "taken"
kept = call("nrllm_keep_lease", runtime, 1, owner, 600, {"everyMs": 100}, answer=ctypes.c_void_p)
# Heartbeats are sent while this thread holds the interpreter's lock.
deadline = time.monotonic() + 3000
while call("nrllm_kept_lease_beats", kept, answer=ctypes.c_int64).value < 3:
    assert time.monotonic() < deadline
    time.sleep(0.01)
assert text("nrllm_kept_lease_state", kept) == "held" and text("nrllm_kept_lease_last_error", kept) is None
call("nrllm_kept_lease_step", kept)
recovery = json.loads(text("nrllm_recover_failure", runtime, 1, owner, ctypes.c_int32(6), ctypes.byref(ctypes.c_int64(503)), None, "httpx.HTTPStatusError", *NONE))
assert recovery["outcome"] == "requeued" and recovery["failure"]["failureClass"] == "serverError" and recovery["delayMs"] == 30000, recovery
while text("nrllm_kept_lease_state", kept) == "held":
    assert time.monotonic() < deadline
    time.sleep(0.01)
fails("lease_lost", "back on the queue", "nrllm_kept_lease_step", kept)
library.nrllm_kept_lease_free(kept)

# A reaper.
report = json.loads(text("nrllm_reap", runtime, 4, None, {"only": list(range(11, 20)), "except": [11]}))
assert [run["uid"] for run in report["requeued"]] == [12, 13, 14, 15] and report["hasMore"], report
assert [run["reason"] for run in report["skipped"]] == ["excepted"], report
status = json.loads(text("nrllm_status", runtime, None, None))
assert status["counts"]["running"] == 6 and os.environ["NRLLM_TEST_PASSWORD"] not in json.dumps(status), status

# Errors.
assert fails("argument", "$runUid must be at least 1", "nrllm_claim_queued", runtime, 0, owner, lease_end, answer=ctypes.c_bool).code == 0
fails("argument", "UTF-8", "nrllm_claim_queued", runtime, 1, b"\xff", lease_end, answer=ctypes.c_bool)
fails("argument", "is NULL", "nrllm_claim_queued", None, 1, owner, lease_end, answer=ctypes.c_bool)
fails("argument", "unknown key", "nrllm_reap", runtime, 1, None, {"dryrun": True}, answer=ctypes.c_void_p)
fails("configuration", "pdo_sqlite", "nrllm_runtime_new", {"driver": "pdo_sqlite"}, *NONE, *NONE, answer=ctypes.c_void_p)
fails("configuration", "UTF-8", "nrllm_runtime_new", {"driver": {"$hex": "ff"}}, *NONE, *NONE, answer=ctypes.c_void_p)
lost = call("nrllm_runtime_new", settings, patient | {"table": "nowhere"}, *NONE, answer=ctypes.c_void_p)
assert fails("configuration", "nowhere", "nrllm_renew_lease", lost, 1, owner, 5, answer=ctypes.c_bool).code == 1146
library.nrllm_runtime_free(lost)

# Threads: ctypes releases the interpreter's lock during a call.
assert flag("nrllm_claim_queued", runtime, 7, owner, lease_end)
renewed = []
threads = [threading.Thread(target=lambda: renewed.extend(flag("nrllm_renew_lease", runtime, 7, owner, lease_end) for _ in range(20))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert renewed == [True] * 80

library.nrllm_runtime_free(runtime)
fails("argument", "(any more)", "nrllm_runtime_close", runtime)
library.nrllm_close_all()
print("ok")
