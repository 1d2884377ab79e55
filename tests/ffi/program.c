/*
 * The library as a C program uses it, without PHP: a run's life, a reaper, errors, garbage,
 * threads, fork, and everything freed. NRLLM_TEST_SOCKET, _USER, _PASSWORD and _DATABASE name a
 * database with runs: 1 to 10 queued, 11 to 20 running with an expired lease.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nrllm_runtime.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* A string as the library takes it: pointer and length. */
#define TEXT(text) (text), strlen(text)
#define NOTHING NULL, 0

static char settings[2048];

/* The call succeeded, without an error object. */
static void check_fine(NrllmStatus status, NrllmError *error) {
    if (status != NRLLM_STATUS_OK) {
        fprintf(stderr, "%s (status %d, code %d)\n", nrllm_error_message(error), (int)status, (int)nrllm_error_code(error));
        exit(1);
    }
    CHECK(error == NULL);
}

/* The call failed with this status and message; its error is freed. */
static void check_fails(NrllmStatus status, NrllmError *error, NrllmStatus expected, const char *part) {
    CHECK(status == expected);
    CHECK(error != NULL && nrllm_error_status(error) == status);
    if (strstr(nrllm_error_message(error), part) == NULL) {
        fprintf(stderr, "not in the message: %s: %s\n", part, nrllm_error_message(error));
        exit(1);
    }
    CHECK(strstr(nrllm_error_message(error), "password") == NULL || strstr(nrllm_error_message(error), getenv("NRLLM_TEST_PASSWORD")) == NULL);
    nrllm_error_free(error);
}

/* The status is stored before the error is read: C does not order the evaluation of arguments. */
#define FINE(call) \
    do { \
        NrllmStatus status_ = (call); \
        check_fine(status_, error); \
    } while (0)
#define FAILS(call, expected, part) \
    do { \
        NrllmStatus status_ = (call); \
        check_fails(status_, error, expected, part); \
    } while (0)

/* Long limits for valgrind on a busy machine: they end a hung call, and no test waits for them. */
#define LONG_LIMITS "\"connectTimeoutMs\": 60000, \"queryTimeoutMs\": 60000"

static NrllmRuntime *connected(const char *options) {
    NrllmRuntime *runtime = NULL;
    NrllmError *error = NULL;
    FINE(nrllm_runtime_new(TEXT(settings), options, strlen(options), NOTHING, &runtime, &error));
    CHECK(runtime != NULL);
    return runtime;
}

/* The answer contains the part; it is freed. */
static void answers(char *json, const char *part) {
    CHECK(json != NULL);
    if (strstr(json, part) == NULL) {
        fprintf(stderr, "not in the answer: %s: %s\n", part, json);
        exit(1);
    }
    nrllm_string_free(json);
}

static void versions(void) {
    CHECK(nrllm_abi_version() == 1);
    CHECK(strlen(nrllm_version()) >= 5 && strchr(nrllm_version(), '.') != NULL);
}

static void life(void) {
    NrllmRuntime *runtime = connected("{" LONG_LIMITS ", \"jitter\": 0.0}");
    NrllmError *error = NULL;
    char *text = NULL, *owner = NULL;
    bool done = false;
    FINE(nrllm_identity(TEXT("worker"), &owner, &error));
    CHECK(strncmp(owner, "worker:", 7) == 0 && strlen(owner) <= 64);
    int64_t lease = (int64_t)time(NULL) + 600;
    FINE(nrllm_claim_queued(runtime, 1, TEXT(owner), lease, &done, &error));
    CHECK(done);
    FINE(nrllm_claim_queued(runtime, 1, TEXT(owner), lease, &done, &error));
    CHECK(!done);
    FINE(nrllm_renew_lease(runtime, 1, TEXT(owner), lease, &done, &error));
    CHECK(done);
    FINE(nrllm_renew_lease(runtime, 1, TEXT("worker:other"), lease, &done, &error));
    CHECK(!done);
    FINE(nrllm_lease_state(runtime, 1, TEXT(owner), &text, &error));
    answers(text, "held");
    FINE(nrllm_mark_pending_effect(runtime, 1, TEXT(owner), TEXT("read_only"), lease, &done, &error));
    CHECK(done);
    const int64_t code = 503;
    const char *wake_up = "{\"table\": \"sys_messenger_messages\", \"queue\": \"q\", \"body\": \"00000000-0000-0000-0000-00000000000x\", \"headers\": \"\","
                          " \"placeholder\": \"00000000-0000-0000-0000-00000000000x\"}";
    FINE(nrllm_recover_failure(runtime, 1, TEXT(owner), NRLLM_FAILURE_TYPE_PROVIDER_RESPONSE, &code, NULL, TEXT("Some\\Error"), TEXT(wake_up), &text, &error));
    CHECK(strstr(text, "\"outcome\":\"requeued\"") && strstr(text, "\"wokenUp\":true") && strstr(text, "\"delayMs\":30000") && strstr(text, "\"httpStatus\":503"));
    nrllm_string_free(text);
    FINE(nrllm_recover_failure(runtime, 1, TEXT(owner), NRLLM_FAILURE_TYPE_OTHER, NULL, NULL, TEXT("E"), NOTHING, &text, &error));
    answers(text, "\"outcome\":\"lease_lost\"");
    FINE(nrllm_claim_queued(runtime, 1, TEXT(owner), lease, &done, &error));
    FINE(nrllm_requeue(runtime, 1, TEXT(owner), &done, &error));
    CHECK(done);
    FINE(nrllm_fail_undispatched(runtime, 1, 2, TEXT("Some\\Error"), &done, &error));
    CHECK(done);
    FINE(nrllm_cancel_run(runtime, TEXT("000000000000000000000000000000000002"), &done, &error));
    CHECK(done);
    FINE(nrllm_cancel_run(runtime, TEXT("no such run"), &done, &error));
    CHECK(!done);
    nrllm_string_free(owner);
    nrllm_runtime_free(runtime);
}

static void reaper(void) {
    NrllmRuntime *runtime = connected("{" LONG_LIMITS "}");
    NrllmError *error = NULL;
    char *json = NULL;
    bool done = false;
    const int64_t now = 2000;
    FINE(nrllm_reap(runtime, 3, &now, TEXT("{\"dryRun\": true, \"except\": [11]}"), &json, &error));
    CHECK(strstr(json, "\"dryRun\":true") && strstr(json, "\"hasMore\":true") && strstr(json, "\"reason\":\"excepted\""));
    nrllm_string_free(json);
    FINE(nrllm_requeue_stale(runtime, 11, now, &done, &error));
    CHECK(done);
    FINE(nrllm_dead_letter_stale(runtime, 12, now, TEXT("retries_exhausted"), &done, &error));
    CHECK(done);
    FINE(nrllm_reap(runtime, 50, NULL, NOTHING, &json, &error));
    CHECK(strstr(json, "\"uid\":13") && strstr(json, "\"uid\":20") && strstr(json, "\"claimedBy\":\"worker:a\"") && strstr(json, "\"hasMore\":false"));
    nrllm_string_free(json);
    FINE(nrllm_status(runtime, NULL, NULL, &json, &error));
    CHECK(strstr(json, "\"counts\":{") && strstr(json, "\"expiredLeases\":0") && strstr(json, "\"settings\":{") && !strstr(json, getenv("NRLLM_TEST_PASSWORD")));
    nrllm_string_free(json);
    FINE(nrllm_due_runs(runtime, 2, NULL, &json, &error));
    answers(json, "[{\"uid\":3,");
    FINE(nrllm_stranded_runs(runtime, 60, 2, NULL, NOTHING, &json, &error));
    answers(json, "\"wokenUp\":false");
    FINE(nrllm_runtime_close(runtime, &error));
    FINE(nrllm_status(runtime, &now, &now, &json, &error));
    nrllm_string_free(json);
    nrllm_runtime_free(runtime);
}

static void failures(void) {
    NrllmError *error = NULL;
    char *json = NULL;
    FINE(nrllm_failure_types(&json, &error));
    answers(json, "CircuitOpenException");
    const int64_t code = 429;
    FINE(nrllm_classify_failure(NRLLM_FAILURE_TYPE_PROVIDER_RESPONSE, &code, NULL, "class@anonymous\0/srv/secret.php", 32, &json, &error));
    CHECK(strstr(json, "\"failureClass\":\"rateLimit\"") && strstr(json, "\"errorClass\":\"class@anonymous\""));
    nrllm_string_free(json);
    FINE(nrllm_classify_failure(NRLLM_FAILURE_TYPE_FALLBACK_CHAIN_EXHAUSTED, NULL, NULL, NOTHING, &json, &error));
    answers(json, "\"failureClass\":\"unknown\"");
    int64_t wait = 0;
    FINE(nrllm_backoff_ms(2, &wait, &error));
    CHECK(wait == 120000);
}

static void kept(void) {
    NrllmRuntime *runtime = connected("{" LONG_LIMITS "}");
    NrllmKeptLease *lease = NULL;
    NrllmError *error = NULL;
    char *text = NULL;
    bool held = false, done = false;
    int64_t number = 0;
    FAILS(nrllm_keep_lease(runtime, 4, TEXT("c"), 10, NOTHING, &lease, &error), NRLLM_STATUS_LEASE_LOST, "is lost");
    FINE(nrllm_claim_queued(runtime, 4, TEXT("c"), (int64_t)time(NULL) + 600, &done, &error));
    FAILS(nrllm_keep_lease(runtime, 4, TEXT("c"), 10, TEXT("{\"interruptOnLoss\": true}"), &lease, &error), NRLLM_STATUS_CONFIGURATION, "needs the extension");
    CHECK(lease == NULL);
    FINE(nrllm_keep_lease(runtime, 4, TEXT("c"), 600, TEXT("{\"everyMs\": 100}"), &lease, &error));
    /* The library's own thread sends heartbeats while this one sleeps. */
    for (int i = 0; i < 6000 && number < 3; i++) {
        const struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
        FINE(nrllm_kept_lease_beats(lease, &number, &error));
    }
    CHECK(number >= 3);
    FINE(nrllm_kept_lease_is_held(lease, &held, &error));
    CHECK(held);
    FINE(nrllm_kept_lease_remaining_ms(lease, &number, &error));
    CHECK(number > 0 && number <= 600000);
    FINE(nrllm_kept_lease_state(lease, &text, &error));
    answers(text, "held");
    FINE(nrllm_kept_lease_last_error(lease, &text, &error));
    CHECK(text == NULL);
    FINE(nrllm_kept_lease_step(lease, &error));
    FINE(nrllm_kept_lease_release(lease, &error));
    FAILS(nrllm_kept_lease_step(lease, &error), NRLLM_STATUS_LEASE_LOST, "it was released");
    FINE(nrllm_kept_lease_state(lease, &text, &error));
    answers(text, "stopped");
    nrllm_kept_lease_free(lease);
    nrllm_kept_lease_free(lease);
    FAILS(nrllm_kept_lease_state(lease, &text, &error), NRLLM_STATUS_ARGUMENT, "(any more)");
    FINE(nrllm_cancel_run(runtime, TEXT("000000000000000000000000000000000004"), &done, &error));
    FAILS(nrllm_keep_lease(runtime, 4, TEXT("c"), 10, NOTHING, &lease, &error), NRLLM_STATUS_RUN_CANCELLED, "was cancelled");
    nrllm_runtime_free(runtime);
}

static void errors(void) {
    NrllmError *error = NULL;
    NrllmRuntime *runtime = connected("{" LONG_LIMITS ", \"table\": \"nowhere\"}");
    bool done = true;
    NrllmStatus status = nrllm_renew_lease(runtime, 1, TEXT("c"), 5, &done, &error);
    CHECK(nrllm_error_code(error) == 1146 && !done);
    FAILS(status, NRLLM_STATUS_CONFIGURATION, "nowhere");
    FAILS(nrllm_renew_lease(runtime, 0, TEXT("c"), 5, &done, &error), NRLLM_STATUS_ARGUMENT, "$runUid must be at least 1, 0 given");
    /* Without a place for the error the status reports it. */
    CHECK(nrllm_renew_lease(runtime, 0, TEXT("c"), 5, &done, NULL) == NRLLM_STATUS_ARGUMENT);
    nrllm_runtime_free(runtime);
    runtime = NULL;
    FINE(nrllm_runtime_new(TEXT("{\"driver\": \"mysqli\", \"host\": \"127.0.0.1\", \"port\": 1, \"dbname\": \"d\"}"), TEXT("{\"connectTimeoutMs\": 500}"), NOTHING, &runtime, &error));
    FAILS(nrllm_renew_lease(runtime, 1, TEXT("c"), 5, &done, &error), NRLLM_STATUS_CONNECTION, "127.0.0.1:1");
    nrllm_runtime_free(runtime);
    FAILS(nrllm_runtime_new(TEXT("{\"driver\": \"pdo_sqlite\"}"), NOTHING, NOTHING, &runtime, &error), NRLLM_STATUS_CONFIGURATION, "pdo_sqlite");
    CHECK(runtime == NULL);
    FAILS(nrllm_runtime_new(TEXT("{\"driver\": {\"$hex\": \"ff\"}}"), NOTHING, NOTHING, &runtime, &error), NRLLM_STATUS_CONFIGURATION, "UTF-8");
    FINE(nrllm_runtime_new(TEXT("\"mysql://u:p%40@h/d\""), NOTHING, TEXT("/run/other.sock"), &runtime, &error));
    nrllm_runtime_free(runtime);
}

/* NULL in every place, handles that never existed, bytes that are no JSON: an error each time. */
static void garbage(void) {
    NrllmError *error = NULL;
    NrllmRuntime *unknown = (NrllmRuntime *)(uintptr_t)0xdeadbeef, *runtime = connected("{" LONG_LIMITS "}");
    NrllmKeptLease *nothing = (NrllmKeptLease *)(uintptr_t)0xdeadbeef, *lease = NULL;
    char *text = NULL;
    bool done = false;
    int64_t number = 0;
#define WRONG(call, part) FAILS(call, NRLLM_STATUS_ARGUMENT, part)
    NrllmRuntime *const handles[] = {NULL, unknown, (NrllmRuntime *)((uintptr_t)runtime + 1), (NrllmRuntime *)&done};
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        NrllmRuntime *handle = handles[i];
        WRONG(nrllm_claim_queued(handle, 1, TEXT("c"), 5, &done, &error), "$runtime");
        WRONG(nrllm_renew_lease(handle, 1, TEXT("c"), 5, &done, &error), "$runtime");
        WRONG(nrllm_mark_pending_effect(handle, 1, TEXT("c"), NOTHING, 5, &done, &error), "$runtime");
        WRONG(nrllm_requeue(handle, 1, TEXT("c"), &done, &error), "$runtime");
        WRONG(nrllm_requeue_stale(handle, 1, 5, &done, &error), "$runtime");
        WRONG(nrllm_dead_letter_stale(handle, 1, 5, TEXT("r"), &done, &error), "$runtime");
        WRONG(nrllm_lease_state(handle, 1, TEXT("c"), &text, &error), "$runtime");
        WRONG(nrllm_recover_failure(handle, 1, TEXT("c"), 0, NULL, NULL, NOTHING, NOTHING, &text, &error), "$runtime");
        WRONG(nrllm_reap(handle, 1, NULL, NOTHING, &text, &error), "$runtime");
        WRONG(nrllm_fail_undispatched(handle, 1, 0, NOTHING, &done, &error), "$runtime");
        WRONG(nrllm_stranded_runs(handle, 1, 1, NULL, NOTHING, &text, &error), "$runtime");
        WRONG(nrllm_due_runs(handle, 1, NULL, &text, &error), "$runtime");
        WRONG(nrllm_cancel_run(handle, TEXT("u"), &done, &error), "$runtime");
        WRONG(nrllm_status(handle, NULL, NULL, &text, &error), "$runtime");
        WRONG(nrllm_keep_lease(handle, 1, TEXT("c"), 10, NOTHING, &lease, &error), "$runtime");
        WRONG(nrllm_runtime_close(handle, &error), "$runtime");
        if (handle != runtime) {
            nrllm_runtime_free(handle);
        }
    }
    NrllmKeptLease *const leases[] = {NULL, nothing, (NrllmKeptLease *)runtime};
    for (size_t i = 0; i < sizeof leases / sizeof *leases; i++) {
        WRONG(nrllm_kept_lease_state(leases[i], &text, &error), "$lease");
        WRONG(nrllm_kept_lease_is_held(leases[i], &done, &error), "$lease");
        WRONG(nrllm_kept_lease_remaining_ms(leases[i], &number, &error), "$lease");
        WRONG(nrllm_kept_lease_step(leases[i], &error), "$lease");
        WRONG(nrllm_kept_lease_beats(leases[i], &number, &error), "$lease");
        WRONG(nrllm_kept_lease_last_error(leases[i], &text, &error), "$lease");
        WRONG(nrllm_kept_lease_release(leases[i], &error), "$lease");
        nrllm_kept_lease_free(leases[i]);
    }
    WRONG(nrllm_claim_queued(runtime, 1, TEXT("c"), 5, NULL, &error), "$claimed is NULL");
    WRONG(nrllm_lease_state(runtime, 1, TEXT("c"), NULL, &error), "$state is NULL");
    WRONG(nrllm_reap(runtime, 1, NULL, NOTHING, NULL, &error), "$report is NULL");
    WRONG(nrllm_keep_lease(runtime, 1, TEXT("c"), 10, NOTHING, NULL, &error), "$lease is NULL");
    WRONG(nrllm_backoff_ms(1, NULL, &error), "$milliseconds is NULL");
    WRONG(nrllm_identity(TEXT("w"), NULL, &error), "$identity is NULL");
    WRONG(nrllm_identity(NULL, 5, &text, &error), "$segment is NULL");
    WRONG(nrllm_identity("a\xff", 2, &text, &error), "$segment");
    WRONG(nrllm_claim_queued(runtime, 1, NULL, 5, 5, &done, &error), "$claimedBy is NULL, but 5 bytes long");
    WRONG(nrllm_claim_queued(runtime, 1, NULL, 0, 5, &done, &error), "$claimedBy");
    WRONG(nrllm_claim_queued(runtime, 1, "c", SIZE_MAX, 5, &done, &error), "$claimedBy is longer than memory can be");
    WRONG(nrllm_classify_failure(7, NULL, NULL, NOTHING, &text, &error), "$failureType");
    WRONG(nrllm_classify_failure(-1, NULL, NULL, NOTHING, &text, &error), "$failureType");
    WRONG(nrllm_classify_failure(INT32_MIN, NULL, NULL, NOTHING, &text, &error), "$failureType");
    static const char *const bytes[] = {"", "{", "nul", "{\"dryRun\":}", "\xff\xfe", "{\"a\":1}}", "{\"only\":[1,]}", "5", "true", "\"text\""};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        WRONG(nrllm_reap(runtime, 1, NULL, bytes[i], strlen(bytes[i]), &text, &error), "$options");
        WRONG(nrllm_recover_failure(runtime, 1, TEXT("c"), 0, NULL, NULL, NOTHING, bytes[i], strlen(bytes[i]), &text, &error), "$wakeUp");
        WRONG(nrllm_keep_lease(runtime, 1, TEXT("c"), 10, bytes[i], strlen(bytes[i]), &lease, &error), "$options");
        NrllmRuntime *other = runtime;
        CHECK(nrllm_runtime_new(bytes[i], strlen(bytes[i]), NOTHING, NOTHING, &other, NULL) != NRLLM_STATUS_OK && other == NULL);
    }
    WRONG(nrllm_runtime_new(TEXT(settings), NOTHING, NOTHING, NULL, &error), "$runtime is NULL");
    CHECK(nrllm_runtime_new(NOTHING, NOTHING, NOTHING, NULL, NULL) == NRLLM_STATUS_ARGUMENT);
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = 0;
    WRONG(nrllm_reap(runtime, 1, NULL, deep, 200000, &text, &error), "$options");
    free(deep);
    nrllm_error_free(NULL);
    nrllm_string_free(NULL);
    CHECK(nrllm_error_status(NULL) == NRLLM_STATUS_OK && nrllm_error_code(NULL) == 0 && strcmp(nrllm_error_message(NULL), "") == 0);
    nrllm_runtime_free(runtime);
    nrllm_runtime_free(runtime);
    WRONG(nrllm_claim_queued(runtime, 1, TEXT("c"), 5, &done, &error), "(any more)");
}

static void *renewals(void *shared) {
    /* One handle of all threads and one of its own. */
    NrllmRuntime *own = connected("{\"connectTimeoutMs\": 60000, \"queryTimeoutMs\": 61000}");
    for (int i = 0; i < 25; i++) {
        bool done = false;
        NrllmError *error = NULL;
        FINE(nrllm_renew_lease((NrllmRuntime *)shared, 5, TEXT("threads"), 2000000000 + i, &done, &error));
        CHECK(done);
        FINE(nrllm_renew_lease(own, 5, TEXT("worker:other"), 2000000000 + i, &done, &error));
        CHECK(!done);
        nrllm_runtime_free(connected("{" LONG_LIMITS "}"));
    }
    nrllm_runtime_free(own);
    return NULL;
}

static void threads(void) {
    NrllmRuntime *runtime = connected("{" LONG_LIMITS "}");
    NrllmError *error = NULL;
    bool done = false;
    FINE(nrllm_claim_queued(runtime, 5, TEXT("threads"), 2000000000, &done, &error));
    pthread_t all[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&all[i], NULL, renewals, runtime) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(all[i], NULL) == 0);
    }
    nrllm_runtime_free(runtime);
}

static void forks(void) {
    NrllmRuntime *runtime = connected("{" LONG_LIMITS "}");
    NrllmKeptLease *lease = NULL;
    NrllmError *error = NULL;
    bool done = false;
    char *text = NULL;
    FINE(nrllm_claim_queued(runtime, 6, TEXT("forks"), 2000000000, &done, &error));
    FINE(nrllm_keep_lease(runtime, 6, TEXT("forks"), 600, NOTHING, &lease, &error));
    for (int round = 0; round < 3; round++) {
        fflush(NULL);
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            FINE(nrllm_renew_lease(runtime, 6, TEXT("forks"), 2000000001, &done, &error));
            CHECK(done);
            FINE(nrllm_kept_lease_state(lease, &text, &error));
            answers(text, "stopped");
            if (round == 1) {
                nrllm_kept_lease_free(lease);
                nrllm_runtime_free(runtime);
            } else if (round == 2) {
                nrllm_reset();
            }
            nrllm_close_all();
            /* The result as a byte: valgrind uses the exit code for what the child did not free,
               which are its parent's connection and lease. */
            CHECK(write(ends[1], "!", 1) == 1);
            _exit(0);
        }
        char word = 0;
        close(ends[1]);
        CHECK(read(ends[0], &word, 1) == 1 && word == '!');
        close(ends[0]);
        CHECK(waitpid(child, NULL, 0) == child);
        FINE(nrllm_renew_lease(runtime, 6, TEXT("forks"), 2000000002, &done, &error));
        CHECK(done);
        FINE(nrllm_kept_lease_state(lease, &text, &error));
        answers(text, "held");
    }
    /* A reset ends all leases and connections. */
    nrllm_reset();
    FAILS(nrllm_kept_lease_state(lease, &text, &error), NRLLM_STATUS_ARGUMENT, "(any more)");
    FAILS(nrllm_runtime_close(runtime, &error), NRLLM_STATUS_ARGUMENT, "(any more)");
}

int main(void) {
    snprintf(settings, sizeof settings, "{\"driver\": \"mysqli\", \"unix_socket\": \"%s\", \"user\": \"%s\", \"password\": \"%s\", \"dbname\": \"%s\"}", getenv("NRLLM_TEST_SOCKET"),
        getenv("NRLLM_TEST_USER"), getenv("NRLLM_TEST_PASSWORD"), getenv("NRLLM_TEST_DATABASE"));
    versions();
    life();
    reaper();
    failures();
    kept();
    errors();
    garbage();
    threads();
    forks();
    nrllm_close_all();
    puts("ok");
    return 0;
}
