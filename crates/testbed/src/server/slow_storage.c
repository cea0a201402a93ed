// Stands between a server and its data files, loaded before the C library: a page that is read takes some time, pages
// that have been requested with posix_fadvise take it together. Every process writes the pages that it reads, and how
// many times it has waited so far, to a file with its number.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 8192
#define ASKED (1 << 16)

struct asked {
    ino_t file;
    long block;
    long waits;
    double at;
};

static struct asked asked[ASKED];
static long waits;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double delay(void) {
    const char *microseconds = getenv("SLOW_STORAGE_MICROSECONDS");
    return microseconds ? atof(microseconds) / 1e6 : 0;
}

// The place of a page among the requested pages; of two pages with the same place, the later one counts.
static struct asked *place(ino_t file, long block) {
    return &asked[((unsigned long)file * 2654435761u + block) % ASKED];
}

// Returns whether a file belongs to a database, and its path.
static int is_data(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    path[length < 0 ? 0 : length] = 0;
    return strstr(path, "/base/") != NULL;
}

static void ask(int fd, off_t start, off_t length) {
    char path[512];
    struct stat file;
    if (!is_data(fd, path, sizeof path) || fstat(fd, &file) != 0) return;
    for (off_t at = start; at < start + length; at += BLOCK) {
        struct asked *page = place(file.st_ino, at / BLOCK);
        if (page->file == file.st_ino && page->block == at / BLOCK) continue;
        *page = (struct asked){file.st_ino, at / BLOCK, waits + 1, now() + delay()};
    }
}

static void wait_for(int fd, off_t start) {
    char path[512], line[600], name[600];
    struct stat file;
    const char *directory = getenv("SLOW_STORAGE_READS");
    if (!directory || !is_data(fd, path, sizeof path) || fstat(fd, &file) != 0) return;
    long block = start / BLOCK, there = waits + 1;
    double at = now() + delay();
    struct asked *page = place(file.st_ino, block);
    if (page->file == file.st_ino && page->block == block) {
        there = page->waits;
        at = page->at;
        page->file = 0;
    }
    if (there > waits) waits = there;
    double left = at - now();
    if (left > 0) {
        struct timespec time = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
        nanosleep(&time, NULL);
    }
    snprintf(name, sizeof name, "%s/%d", directory, getpid());
    int length = snprintf(line, sizeof line, "%s %ld %ld\n", strstr(path, "/base/") + 1, block, waits);
    int reads = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (reads < 0 || write(reads, line, length) != length) abort();
    close(reads);
}

ssize_t pread64(int fd, void *bytes, size_t size, off_t start) {
    wait_for(fd, start);
    return syscall(SYS_pread64, fd, bytes, size, start);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t start) { return pread64(fd, bytes, size, start); }

ssize_t preadv64(int fd, const struct iovec *parts, int count, off_t start) {
    wait_for(fd, start);
    return syscall(SYS_preadv, fd, parts, count, start, 0);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t start) {
    return preadv64(fd, parts, count, start);
}

int posix_fadvise64(int fd, off_t start, off_t length, int advice) {
    if (advice == POSIX_FADV_WILLNEED) ask(fd, start, length);
    return syscall(SYS_fadvise64, fd, start, length, advice) == 0 ? 0 : 1;
}

int posix_fadvise(int fd, off_t start, off_t length, int advice) {
    return posix_fadvise64(fd, start, length, advice);
}
