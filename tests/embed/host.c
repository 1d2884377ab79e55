/*
 * Runs PHP on several threads of one process, as FrankenPHP does. Needs a thread-safe PHP with the
 * embed library.
 *
 *   host classic|worker SCRIPT AFTER THREADS REQUESTS [NAME=VALUE ...]
 *
 * classic  Each thread starts and ends REQUESTS requests, each of which executes SCRIPT.
 * worker   Each thread starts one request. SCRIPT calls host_handle_request(callable) until it
 *          returns false, which is after REQUESTS calls. Between two calls the output layer and the
 *          SAPI are deactivated and activated again; RSHUTDOWN does not run. If a call ends the
 *          script (exit, a fatal error), the thread ends the request and executes SCRIPT again in
 *          the next one.
 *
 * When these threads have ended, as many other threads do the same. Then one more thread executes
 * AFTER in one request. NAME=VALUE are settings of PHP. The scripts have these functions:
 *
 *   host_thread(): int    number of the thread, from 0
 *   host_request(): int   number of the request on this thread, from 0
 *   host_threads(): int   number of threads
 *   host_meet(): void     returns when every thread has called it
 *   host_checked(): void  counts a request whose checks were made
 *   host_failed(string)   reports a failure
 *
 * Exit code 0 if every request has called host_checked(), none has called host_failed(), and at the
 * end the main thread is the only one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <main/php.h>
#include <main/SAPI.h>
#include <main/php_main.h>
#include <main/php_output.h>
#include <main/php_variables.h>
#include <Zend/zend_exceptions.h>
#include <TSRM/TSRM.h>

#ifndef ZTS
#error "a thread-safe PHP is needed"
#endif

static const char *script;
static bool worker;
static int threads, requests;
static char *settings;
static atomic_int checked, failed;
/* Threads write whole lines, one thread at a time. */
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static __thread int thread_number = -1, request_number;
static __thread char line[4096];
static __thread size_t line_length;

/* Where the threads meet. If one of them does not come, the test has failed, and no other waits. */
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static int waiting, meetings;
static bool missed;

static void flush_line(void)
{
    if (line_length > 0) {
        pthread_mutex_lock(&output);
        printf("[%d.%d] %.*s\n", thread_number, request_number, (int) line_length, line);
        fflush(stdout);
        pthread_mutex_unlock(&output);
        line_length = 0;
    }
}

static void report(const char *format, ...)
{
    va_list arguments;
    flush_line();
    va_start(arguments, format);
    line_length = (size_t) vsnprintf(line, sizeof line, format, arguments);
    if (line_length >= sizeof line) {
        line_length = sizeof line - 1;
    }
    va_end(arguments);
    flush_line();
}

/* ---- the SAPI ---- */

static size_t write_output(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n' || line_length == sizeof line) {
            flush_line();
        }
        if (text[i] != '\n') {
            line[line_length++] = text[i];
        }
    }
    return length;
}

static int send_headers(sapi_headers_struct *headers)
{
    (void) headers;
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

static char *read_cookies(void) { return NULL; }

static void register_variables(zval *variables) { php_import_environment_variables(variables); }

static void log_message(const char *message, int type)
{
    (void) type;
    report("%s", message);
}

/* ---- functions of the scripts ---- */

ZEND_BEGIN_ARG_INFO_EX(arginfo_none, 0, 0, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_one, 0, 0, 1)
    ZEND_ARG_INFO(0, value)
ZEND_END_ARG_INFO()

ZEND_FUNCTION(host_thread) { ZEND_PARSE_PARAMETERS_NONE(); RETURN_LONG(thread_number); }
ZEND_FUNCTION(host_request) { ZEND_PARSE_PARAMETERS_NONE(); RETURN_LONG(request_number); }
ZEND_FUNCTION(host_threads) { ZEND_PARSE_PARAMETERS_NONE(); RETURN_LONG(threads); }
ZEND_FUNCTION(host_checked) { ZEND_PARSE_PARAMETERS_NONE(); atomic_fetch_add(&checked, 1); }

ZEND_FUNCTION(host_failed)
{
    zend_string *message;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(message)
    ZEND_PARSE_PARAMETERS_END();
    atomic_fetch_add(&failed, 1);
    report("FAILED: %s", ZSTR_VAL(message));
}

ZEND_FUNCTION(host_meet)
{
    struct timespec patience;
    int number;

    ZEND_PARSE_PARAMETERS_NONE();
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += 120;
    pthread_mutex_lock(&meeting);
    number = meetings;
    if (++waiting == threads) {
        waiting = 0;
        meetings++;
        pthread_cond_broadcast(&met);
    }
    while (number == meetings && !missed) {
        if (pthread_cond_timedwait(&met, &meeting, &patience) == ETIMEDOUT) {
            missed = true;
            atomic_fetch_add(&failed, 1);
            pthread_cond_broadcast(&met);
        }
    }
    pthread_mutex_unlock(&meeting);
}

/* Between two requests of a worker the output layer and the SAPI end, and extensions do not. */
static void between_requests(void)
{
    zend_try { php_output_end_all(); } zend_end_try();
    zend_try { php_output_deactivate(); } zend_end_try();
    zend_try { sapi_deactivate(); } zend_end_try();
    flush_line();
}

ZEND_FUNCTION(host_handle_request)
{
    zend_fcall_info fci;
    zend_fcall_info_cache fcc;
    zval result;

    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_FUNC(fci, fcc)
    ZEND_PARSE_PARAMETERS_END();
    if (!worker) {
        zend_throw_error(NULL, "host_handle_request() is for the mode worker");
        RETURN_THROWS();
    }
    if (request_number >= requests) {
        RETURN_FALSE;
    }
    between_requests();
    php_output_activate();
    sapi_activate();
    SG(sapi_started) = 1;

    ZVAL_UNDEF(&result);
    fci.retval = &result;
    fci.params = NULL;
    fci.param_count = 0;
    zend_call_function(&fci, &fcc);
    zval_ptr_dtor(&result);
    if (EG(exception)) {
        if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
            /* exit() ends the script. */
            zend_bailout();
        }
        zend_exception_error(EG(exception), E_WARNING);
    }
    request_number++;
    RETURN_TRUE;
}

static const zend_function_entry functions[] = {
    ZEND_FE(host_thread, arginfo_none)
    ZEND_FE(host_request, arginfo_none)
    ZEND_FE(host_threads, arginfo_none)
    ZEND_FE(host_meet, arginfo_none)
    ZEND_FE(host_checked, arginfo_none)
    ZEND_FE(host_failed, arginfo_one)
    ZEND_FE(host_handle_request, arginfo_one)
    ZEND_FE_END
};

static int startup(sapi_module_struct *module)
{
#if PHP_VERSION_ID >= 80200
    return php_module_startup(module, NULL);
#else
    return php_module_startup(module, NULL, 0);
#endif
}

static sapi_module_struct sapi = {
    .name = "nrllm-host",
    .pretty_name = "Host of PHP threads",
    .startup = startup,
    .shutdown = php_module_shutdown_wrapper,
    .ub_write = write_output,
    .sapi_error = php_error,
    .send_headers = send_headers,
    .read_cookies = read_cookies,
    .register_server_variables = register_variables,
    .log_message = log_message,
    .additional_functions = functions,
};

/* ---- threads ---- */

static bool execute(void)
{
    zend_file_handle file;

    if (php_request_startup() == FAILURE) {
        report("FAILED: a request does not start");
        atomic_fetch_add(&failed, 1);
        php_request_shutdown(NULL);
        return false;
    }
    zend_stream_init_filename(&file, script);
    file.primary_script = 1;
    zend_first_try {
        php_execute_script(&file);
    } zend_end_try();
    zend_destroy_file_handle(&file);
    php_request_shutdown(NULL);
    flush_line();
    return true;
}

static void *thread_main(void *number)
{
    thread_number = (int) (intptr_t) number;
    (void) ts_resource(0);
    while (request_number < requests && execute()) {
        /* In worker style this counts the request that has ended the script. */
        request_number++;
    }
    ts_free_thread();
    return NULL;
}

static int os_threads(void)
{
    int count = 0;
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/task");

    while (folder && (entry = readdir(folder))) {
        count += entry->d_name[0] != '.';
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

static bool run_threads(int count)
{
    pthread_t *started = calloc((size_t) count, sizeof *started);

    for (int i = 0; i < count; i++) {
        if (pthread_create(&started[i], NULL, thread_main, (void *) (intptr_t) i) != 0) {
            fprintf(stderr, "a thread does not start\n");
            return false;
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(started[i], NULL);
    }
    free(started);
    return true;
}

int main(int argc, char **argv)
{
    char *first, *last;
    int left, expected;
    size_t size = 1;

    if (argc < 6 || (strcmp(argv[1], "classic") != 0 && strcmp(argv[1], "worker") != 0)) {
        fprintf(stderr, "host classic|worker SCRIPT AFTER THREADS REQUESTS [NAME=VALUE ...]\n");
        return 2;
    }
    worker = strcmp(argv[1], "worker") == 0;
    /* PHP changes the folder of a thread to that of its script. */
    script = first = realpath(argv[2], NULL);
    last = realpath(argv[3], NULL);
    if (!first || !last) {
        fprintf(stderr, "there is no such script\n");
        return 2;
    }
    threads = atoi(argv[4]);
    requests = atoi(argv[5]);
    for (int i = 6; i < argc; i++) {
        size += strlen(argv[i]) + 1;
    }
    settings = calloc(size, 1);
    for (int i = 6; i < argc; i++) {
        strcat(strcat(settings, argv[i]), "\n");
    }

    php_tsrm_startup();
    sapi.php_ini_ignore = 1;
    sapi_startup(&sapi);
    /* Not before: sapi_startup() resets it. */
    sapi.ini_entries = settings;
    if (sapi.startup(&sapi) == FAILURE) {
        fprintf(stderr, "PHP does not start\n");
        return 2;
    }

    for (int wave = 0; wave < 2; wave++) {
        if (!run_threads(threads)) {
            return 2;
        }
    }
    expected = 2 * threads * requests + 1;
    script = last;
    worker = false;
    requests = 1;
    if (!run_threads(1)) {
        return 2;
    }
    /* A thread of the extension that ends with the last request may need a moment. */
    for (int i = 0; (left = os_threads()) > 1 && i < 500; i++) {
        usleep(10000);
    }
    sapi.shutdown(&sapi);
    sapi_shutdown();
    tsrm_shutdown();
    free(settings);
    free(first);
    free(last);

    if (missed) {
        printf("FAILED: the threads did not meet\n");
    }
    printf("%d of %d requests made their checks, %d failure(s), %d thread(s) left\n", checked,
        expected, failed, left - 1);
    return checked == expected && failed == 0 && left == 1 ? 0 : 1;
}
