/* Functions that put a value where they are told to: the date, the next random number, the name of a file. */
#include "preload_library.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

/* -- dates ------------------------------------------------------------------------------------ */

/* What points into the library's own memory is one place that all threads have in common. */
#define TO_DATE \
    tk_library_load(seconds, sizeof *seconds); \
    if (result) \
    tk_library_store(result, sizeof *result)

TK_WRAP(struct tm *, localtime, (const time_t *seconds), (seconds), TO_DATE)
TK_WRAP(struct tm *, gmtime, (const time_t *seconds), (seconds), TO_DATE)
TK_WRAP(struct tm *, localtime_r, (const time_t *seconds, struct tm *date), (seconds, date), TO_DATE)
TK_WRAP(struct tm *, gmtime_r, (const time_t *seconds, struct tm *date), (seconds, date), TO_DATE)

#define TO_TEXT(from) \
    tk_library_load(from, sizeof *from); \
    if (result) \
    tk_string_store(result)

TK_WRAP(char *, asctime, (const struct tm *date), (date), TO_TEXT(date))
TK_WRAP(char *, ctime, (const time_t *seconds), (seconds), TO_TEXT(seconds))
TK_WRAP(char *, asctime_r, (const struct tm *date, char *text), (date, text), TO_TEXT(date))
TK_WRAP(char *, ctime_r, (const time_t *seconds, char *text), (seconds, text), TO_TEXT(seconds))
TK_WRAP(size_t, strftime, (char *text, size_t size, const char *format, const struct tm *date),
        (text, size, format, date), tk_string_load(format);
        tk_library_load(date, sizeof *date); if (result) tk_library_store(text, result + 1))

/* They also put the date in order. */
#define OF_DATE \
    tk_library_load(date, sizeof *date); \
    tk_library_store(date, sizeof *date)

TK_WRAP(time_t, mktime, (struct tm * date), (date), OF_DATE)
TK_WRAP(time_t, timegm, (struct tm * date), (date), OF_DATE)

/* -- random numbers --------------------------------------------------------------------------- */

TK_WRAP(int, rand_r, (unsigned *seed), (seed), tk_library_load(seed, sizeof *seed);
        tk_library_store(seed, sizeof *seed))

#define OF_SEED \
    tk_library_load(seed, 3 * sizeof *seed); \
    tk_library_store(seed, 3 * sizeof *seed)

TK_WRAP(double, erand48, (unsigned short seed[3]), (seed), OF_SEED)
TK_WRAP(long, nrand48, (unsigned short seed[3]), (seed), OF_SEED)
TK_WRAP(long, jrand48, (unsigned short seed[3]), (seed), OF_SEED)

/* -- files, names ----------------------------------------------------------------------------- */

#define STATE_OF_PATH \
    tk_string_load(path); \
    if (result == 0) \
    tk_library_store(state, sizeof *state)

TK_WRAP(int, stat, (const char *path, struct stat *state), (path, state), STATE_OF_PATH)
TK_WRAP(int, stat64, (const char *path, struct stat64 *state), (path, state), STATE_OF_PATH)
TK_WRAP(int, lstat, (const char *path, struct stat *state), (path, state), STATE_OF_PATH)
TK_WRAP(int, lstat64, (const char *path, struct stat64 *state), (path, state), STATE_OF_PATH)
TK_WRAP(int, fstatat, (int folder, const char *path, struct stat *state, int flags), (folder, path, state, flags),
        STATE_OF_PATH)
TK_WRAP(int, fstatat64, (int folder, const char *path, struct stat64 *state, int flags), (folder, path, state, flags),
        STATE_OF_PATH)
TK_WRAP(int, fstat, (int file, struct stat *state), (file, state),
        if (result == 0) tk_library_store(state, sizeof *state))
TK_WRAP(int, fstat64, (int file, struct stat64 *state), (file, state),
        if (result == 0) tk_library_store(state, sizeof *state))
TK_WRAP(char *, getcwd, (char *path, size_t size), (path, size), if (result) tk_string_store(result))
TK_WRAP(char *, realpath, (const char *path, char *to), (path, to), tk_string_load(path);
        if (result) tk_string_store(result))
TK_WRAP(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), tk_string_load(path);
        if (result > 0) tk_library_store(to, (size_t)result))
TK_WRAP(int, gethostname, (char *name, size_t size), (name, size),
        if (result == 0) tk_library_store(name, tk_span(name, size)))

char *__getcwd_chk(char *path, size_t size, size_t room); /* what _FORTIFY_SOURCE makes of these */
char *__realpath_chk(const char *path, char *to, size_t room);
ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
int __gethostname_chk(char *name, size_t size, size_t room);

TK_WRAP(char *, __getcwd_chk, (char *path, size_t size, size_t room), (path, size, room),
        if (result) tk_string_store(result))
TK_WRAP(char *, __realpath_chk, (const char *path, char *to, size_t room), (path, to, room), tk_string_load(path);
        if (result) tk_string_store(result))
TK_WRAP(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room), (path, to, size, room),
        tk_string_load(path);
        if (result > 0) tk_library_store(to, (size_t)result))
TK_WRAP(int, __gethostname_chk, (char *name, size_t size, size_t room), (name, size, room),
        if (result == 0) tk_library_store(name, tk_span(name, size)))

TK_WRAP(int, uname, (struct utsname * names), (names), if (result == 0) tk_library_store(names, sizeof *names))
TK_WRAP(const char *, inet_ntop, (int family, const void *address, char *text, socklen_t size),
        (family, address, text, size), tk_library_load(address, family == AF_INET ? 4 : 16);
        if (result) tk_string_store(result))
TK_WRAP(int, inet_pton, (int family, const char *text, void *address), (family, text, address), tk_string_load(text);
        if (result == 1) tk_library_store(address, family == AF_INET ? 4 : 16))
