/*
 * Variant e, the limit: the cost of libmariadb from C, with each statement prepared once and no
 * other work. The statements are the extension's, so that the client is the only difference.
 *
 *   limit SOCKET USER PASSWORD DATABASE TABLE
 *
 * Reads commands from standard input and answers each with one line of JSON, by the protocol of
 * worker.php.
 */
#include <mysql.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define OWNED "CAST(CONVERT(claimed_by USING utf8mb4) AS BINARY) = CAST(? AS BINARY)"
#define CHUNK 500

static MYSQL *db;
static const char *table;

static void fail(const char *what)
{
    fprintf(stderr, "limit: %s: %s\n", what, db ? mysql_error(db) : "");
    exit(1);
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A prepared statement with its parameters bound once. */
struct statement {
    MYSQL_STMT *handle;
    MYSQL_BIND bind[8];
    long long numbers[8];
    const char *texts[8];
    unsigned long lengths[8];
    int count;
};

static void prepare(struct statement *statement, const char *format, const char *kinds)
{
    char sql[1024];
    snprintf(sql, sizeof sql, format, table);
    memset(statement, 0, sizeof *statement);
    statement->handle = mysql_stmt_init(db);
    if (!statement->handle || mysql_stmt_prepare(statement->handle, sql, strlen(sql))) {
        fail(sql);
    }
    statement->count = (int)strlen(kinds);
    for (int i = 0; i < statement->count; i++) {
        MYSQL_BIND *bind = &statement->bind[i];
        if (kinds[i] == 'i') {
            bind->buffer_type = MYSQL_TYPE_LONGLONG;
            bind->buffer = &statement->numbers[i];
        } else {
            bind->buffer_type = MYSQL_TYPE_STRING;
            bind->length = &statement->lengths[i];
        }
    }
}

static void text(struct statement *statement, int index, const char *value)
{
    statement->bind[index].buffer = (void *)value;
    statement->lengths[index] = strlen(value);
}

/* Binds and executes a statement; returns the matched rows. */
static long long execute(struct statement *statement)
{
    if (mysql_stmt_bind_param(statement->handle, statement->bind) || mysql_stmt_execute(statement->handle)) {
        fail(mysql_stmt_error(statement->handle));
    }
    return (long long)mysql_stmt_affected_rows(statement->handle);
}

static void run(const char *sql)
{
    if (mysql_real_query(db, sql, strlen(sql))) {
        fail(sql);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t *samples;
static size_t sample_count;
static struct rusage before;

static void measure_begin(size_t n)
{
    samples = realloc(samples, (n ? n : 1) * sizeof *samples);
    sample_count = 0;
    getrusage(RUSAGE_SELF, &before);
}

static long microseconds(struct timeval a, struct timeval b)
{
    return (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_usec - a.tv_usec);
}

static long memory(const char *name)
{
    char line[256];
    long value = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) {
        return 0;
    }
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = atol(line + strlen(name) + 1);
        }
    }
    fclose(status);
    return value;
}

static long rss_before;

static void reset_peak(void)
{
    FILE *refs = fopen("/proc/self/clear_refs", "w");
    if (refs) {
        fputs("5", refs);
        fclose(refs);
    }
    rss_before = memory("VmRSS");
}

static void answer(long long done)
{
    struct rusage after;
    uint64_t total = 0;
    getrusage(RUSAGE_SELF, &after);
    for (size_t i = 0; i < sample_count; i++) {
        total += samples[i];
    }
    qsort(samples, sample_count, sizeof *samples, compare);
    printf("{\"done\":%lld,\"n\":%zu,\"p50\":%llu,\"total\":%llu,\"user\":%ld,\"system\":%ld,\"peak\":%ld}\n", done, sample_count,
        (unsigned long long)(sample_count ? samples[sample_count / 2] : 0), (unsigned long long)total,
        microseconds(before.ru_utime, after.ru_utime), microseconds(before.ru_stime, after.ru_stime), memory("VmHWM") - rss_before);
    fflush(stdout);
}

/* The reaper: list, then in chunks lock by primary key and write by primary key. */
static long long reap(long limit, long now)
{
    static char uids[CHUNK * 12 + 16], sql[CHUNK * 12 + 1024];
    long long handled = 0;
    snprintf(sql, sizeof sql,
        "SELECT uid, uuid, claimed_by, lease_expires, requeue_count FROM %s WHERE status = 'running' AND lease_expires > 0 AND "
        "lease_expires < (%ld) ORDER BY lease_expires, uid LIMIT %ld", table, now, limit + 1);
    run(sql);
    MYSQL_RES *listed = mysql_store_result(db);
    if (!listed) {
        fail("listing");
    }
    unsigned long *all = malloc(sizeof *all * (size_t)(limit + 1));
    long count = 0;
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(listed)) && count < limit) {
        all[count++] = strtoul(row[0], NULL, 10);
    }
    mysql_free_result(listed);
    for (long start = 0; start < count; start += CHUNK) {
        size_t used = 0;
        for (long i = start; i < count && i < start + CHUNK; i++) {
            used += (size_t)snprintf(uids + used, sizeof uids - used, "%s%lu", used ? "," : "", all[i]);
        }
        run("START TRANSACTION");
        snprintf(sql, sizeof sql,
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count, pending_effect, COALESCE(OCTET_LENGTH(queued_request), 0) > 0 "
            "FROM %s FORCE INDEX (PRIMARY) WHERE uid IN (%s) AND status = 'running' AND lease_expires > 0 AND lease_expires < (%ld) "
            "ORDER BY uid FOR UPDATE SKIP LOCKED", table, uids, now);
        run(sql);
        MYSQL_RES *locked = mysql_store_result(db);
        if (!locked) {
            fail("locking");
        }
        while ((row = mysql_fetch_row(locked))) {
            handled++;
        }
        mysql_free_result(locked);
        snprintf(sql, sizeof sql,
            "UPDATE %s FORCE INDEX (PRIMARY) SET status = 'queued', claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = (%ld), "
            "requeue_count = requeue_count + 1 WHERE uid IN (%s) AND status = 'running' AND lease_expires > 0 AND lease_expires < (%ld)",
            table, (long)time(NULL), uids, now);
        run(sql);
        run("COMMIT");
    }
    free(all);
    return handled;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: limit SOCKET USER PASSWORD DATABASE TABLE\n");
        return 2;
    }
    table = argv[5];
    db = mysql_init(NULL);
    mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    /* Matched rows, not changed ones: requested in the cheapest way. */
    if (!mysql_real_connect(db, "localhost", argv[2], argv[3], argv[4], 0, argv[1], CLIENT_FOUND_ROWS)) {
        fail("connect");
    }
    /* The isolation level in which the server logs statements, as in the other variants. */
    run("SET SESSION tx_isolation = IF(@@log_bin AND @@binlog_format <> 'ROW', 'REPEATABLE-READ', 'READ-COMMITTED')");

    struct statement renew, mark, claim, lock, requeue;
    prepare(&renew, "UPDATE %s FORCE INDEX (PRIMARY) SET lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND " OWNED, "iiis");
    prepare(&mark, "UPDATE %s FORCE INDEX (PRIMARY) SET pending_effect = ?, lease_expires = ?, tstamp = ? WHERE uid = ? AND status = 'running' AND "
        OWNED, "siiis");
    prepare(&claim, "UPDATE %s FORCE INDEX (PRIMARY) SET status = 'running', claimed_by = ?, lease_expires = ?, started_at = ?, tstamp = ? "
        "WHERE uid = ? AND status = 'queued'", "siiii");
    prepare(&lock, "SELECT " OWNED ", status, requeue_count, pending_effect, COALESCE(OCTET_LENGTH(queued_request), 0) > 0, uuid FROM %s "
        "FORCE INDEX (PRIMARY) WHERE uid = ? FOR UPDATE", "si");
    prepare(&requeue, "UPDATE %s FORCE INDEX (PRIMARY) SET status = 'queued', claimed_by = '', lease_expires = 0, pending_effect = '', tstamp = ?, "
        "requeue_count = requeue_count + 1 WHERE uid = ? AND status = 'running'", "ii");

    char line[512], owner[128];
    long n, uid, lease, step;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long long done = 0;
        if (sscanf(line, "renew %ld %ld %127s %ld %ld", &n, &uid, owner, &lease, &step) == 5) {
            measure_begin((size_t)n);
            for (long i = 0; i < n; i++) {
                uint64_t start = nanoseconds();
                renew.numbers[0] = lease + i * step;
                renew.numbers[1] = time(NULL);
                renew.numbers[2] = uid;
                text(&renew, 3, owner);
                done += execute(&renew) > 0;
                samples[sample_count++] = nanoseconds() - start;
            }
            answer(done);
        } else if (sscanf(line, "count-renew %ld %ld %127s %ld", &n, &uid, owner, &lease) == 4) {
            for (long i = 0; i < n; i++) {
                renew.numbers[0] = lease + i;
                renew.numbers[1] = time(NULL);
                renew.numbers[2] = uid;
                text(&renew, 3, owner);
                done += execute(&renew) > 0;
            }
            printf("{\"done\":%lld,\"n\":%ld}\n", done, n);
            fflush(stdout);
        } else if (sscanf(line, "mark %ld %ld %127s %ld", &n, &uid, owner, &lease) == 4) {
            measure_begin((size_t)n);
            for (long i = 0; i < n; i++) {
                uint64_t start = nanoseconds();
                text(&mark, 0, i % 2 ? "" : "idempotent_write");
                mark.numbers[1] = lease + i;
                mark.numbers[2] = time(NULL);
                mark.numbers[3] = uid;
                text(&mark, 4, owner);
                done += execute(&mark) > 0;
                samples[sample_count++] = nanoseconds() - start;
            }
            answer(done);
        } else if (sscanf(line, "claim %ld %ld %127s %ld", &n, &uid, owner, &lease) == 4) {
            measure_begin((size_t)n);
            for (long i = 0; i < n; i++) {
                uint64_t start = nanoseconds();
                text(&claim, 0, owner);
                claim.numbers[1] = lease;
                claim.numbers[2] = claim.numbers[3] = time(NULL);
                claim.numbers[4] = uid + i;
                done += execute(&claim) > 0;
                samples[sample_count++] = nanoseconds() - start;
            }
            answer(done);
        } else if (sscanf(line, "recover %ld %ld %127s", &n, &uid, owner) == 3) {
            measure_begin((size_t)n);
            for (long i = 0; i < n; i++) {
                uint64_t start = nanoseconds();
                run("START TRANSACTION");
                text(&lock, 0, owner);
                lock.numbers[1] = uid + i;
                execute(&lock);
                if (mysql_stmt_store_result(lock.handle)) {
                    fail("store");
                }
                long long found = (long long)mysql_stmt_num_rows(lock.handle);
                mysql_stmt_free_result(lock.handle);
                requeue.numbers[0] = time(NULL);
                requeue.numbers[1] = uid + i;
                done += found && execute(&requeue) > 0;
                run("COMMIT");
                samples[sample_count++] = nanoseconds() - start;
            }
            answer(done);
        } else if (sscanf(line, "reap %ld %ld", &n, &lease) == 2) {
            reset_peak();
            measure_begin(1);
            uint64_t start = nanoseconds();
            done = reap(n, lease);
            samples[sample_count++] = nanoseconds() - start;
            answer(done);
        } else if (strncmp(line, "boundary", 8) == 0) {
            getppid();
            puts("{\"done\":1,\"n\":1}");
            fflush(stdout);
        } else if (strncmp(line, "close", 5) == 0) {
            break;
        } else {
            fprintf(stderr, "limit: what is %s", line);
            return 2;
        }
    }
    mysql_stmt_close(renew.handle);
    mysql_stmt_close(mark.handle);
    mysql_stmt_close(claim.handle);
    mysql_stmt_close(lock.handle);
    mysql_stmt_close(requeue.handle);
    mysql_close(db);
    free(samples);
    return 0;
}
