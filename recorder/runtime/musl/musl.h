/* Stands before every file of the runtime that is compiled for musl: what glibc's headers say, and musl's do not. */
#ifndef TRACEKIT_MUSL_H
#define TRACEKIT_MUSL_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef int __rlimit_resource_t;
typedef int __itimer_which_t;

/* Functions of their own in glibc, names of the same ones in musl. */
#undef creat64
#undef fstat64
#undef fstatat64
#undef getrlimit64
#undef lstat64
#undef mmap64
#undef open64
#undef openat64
#undef pread64
#undef pwrite64
#undef prlimit64
#undef setrlimit64
#undef stat64
#undef statvfs64
#ifndef off64_t
#define off64_t off_t
#endif
#ifndef rlimit64
#define rlimit64 rlimit
#endif

struct stat64 {
    struct stat same;
};

struct statvfs64 {
    struct statvfs same;
};

int creat64(const char *, mode_t);
int fstat64(int, struct stat64 *);
int fstatat64(int, const char *, struct stat64 *, int);
int getrlimit64(int, struct rlimit *);
int lstat64(const char *, struct stat64 *);
int open64(const char *, int, ...);
int openat64(int, const char *, int, ...);
ssize_t pread64(int, void *, size_t, off_t);
ssize_t pwrite64(int, const void *, size_t, off_t);
int prlimit64(pid_t, int, const struct rlimit *, struct rlimit *);
int setrlimit64(int, const struct rlimit *);
int stat64(const char *, struct stat64 *);
int statvfs64(const char *, struct statvfs64 *);
int on_exit(void (*)(int, void *), void *);

#endif
