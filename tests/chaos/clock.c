/*
 * A wall clock that can be stepped while a process runs: preloaded (LD_PRELOAD) into an actor, it
 * moves every reading of the wall clock by the seconds in the file that NRLLM_CLOCK names. The
 * monotonic clocks are unchanged, as when a system's clock is set.
 *
 * The actors fork while another thread reads the clock, are killed and are stopped. So a reading
 * locks, opens and allocates nothing, and no resource of the system outlives the process.
 *
 * PHP opens modules and FFI's libraries with RTLD_DEEPBIND, by which they would use the C library's
 * clock and only PHP would see the steps. So that flag is removed.
 *
 * The file: a byte that selects one of the two numbers behind it, padded to eight bytes, and the
 * numbers (64 bits, the machine's order). A new step is written to the other number, and then the
 * byte is changed, so that no reader sees half of a number.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct steps {
    uint8_t which;
    int64_t seconds[2];
};

static const volatile struct steps *steps;

__attribute__((constructor)) static void open_clock(void)
{
    const char *file = getenv("NRLLM_CLOCK");
    int descriptor = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof(struct steps), PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped != MAP_FAILED) {
        steps = mapped;
    }
}

static int64_t step(void)
{
    if (steps == NULL) {
        return 0;
    }
    return steps->seconds[__atomic_load_n(&steps->which, __ATOMIC_ACQUIRE) & 1];
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int) syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
        time->tv_sec += step();
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void) zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds != NULL) {
        *seconds = now.tv_sec;
    }
    return now.tv_sec;
}

void *dlopen(const char *file, int flags)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int)) dlsym(RTLD_NEXT, "dlopen");
    return next(file, flags & ~RTLD_DEEPBIND);
}
