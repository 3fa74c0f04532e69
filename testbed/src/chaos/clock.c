/* Sets the wall clock of the process that loads this: by so many seconds as stand, as eight bytes, in the file that
 * the environment variable TIDEGATE_CHAOS_CLOCK names. Others may change the file at any moment. The monotonic clock
 * stays as it is, as it does when a machine's clock is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;
static int (*true_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TIDEGATE_CHAOS_CLOCK");
    true_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        ahead = page;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (!true_clock)
        begin();
    int result = true_clock(id, now);
    if (result == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *now)
{
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return (time_t)-1;
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
