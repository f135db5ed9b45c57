/* Library functions that read or write the program's memory: exactly the bytes that the definition of each says. System
 * calls that do are in interceptors_files.c.
 *
 * memcpy, memmove and memset are not here: the compiler pass records those. Calls from code that is not instrumented
 * count too: they are made on behalf of the instrumented call that is open. */
#include "preload_library.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* -- files ---------------------------------------------------------------------------------- */

#define WRAP_FREAD(name) \
    TK_WRAP(size_t, name, (void *buffer, size_t size, size_t count, FILE *file), (buffer, size, count, file), \
            tk_stream_read(file); \
            tk_library_store(buffer, result * size))
#define WRAP_FWRITE(name) \
    TK_WRAP(size_t, name, (const void *buffer, size_t size, size_t count, FILE *file), (buffer, size, count, file), \
            tk_library_load(buffer, result *size))
#define WRAP_FGETS(name) \
    TK_WRAP(char *, name, (char *buffer, int size, FILE *file), (buffer, size, file), tk_stream_read(file); \
            if (result) tk_library_store(buffer, tk_span(buffer, (size_t)size)))

WRAP_FREAD(fread)
WRAP_FREAD(fread_unlocked)
WRAP_FWRITE(fwrite)
WRAP_FWRITE(fwrite_unlocked)
WRAP_FGETS(fgets)
WRAP_FGETS(fgets_unlocked)
TK_WRAP(ssize_t, getdelim, (char **line, size_t *size, int delimiter, FILE *file), (line, size, delimiter, file),
        tk_stream_read(file);
        if (result >= 0) tk_library_store(*line, (size_t)result + 1))
/* What glibc's header makes of getline. */
ssize_t __getdelim(char **line, size_t *size, int delimiter, FILE *file);
TK_WRAP(ssize_t, __getdelim, (char **line, size_t *size, int delimiter, FILE *file), (line, size, delimiter, file),
        tk_stream_read(file);
        if (result >= 0) tk_library_store(*line, (size_t)result + 1))
TK_WRAP(ssize_t, getline, (char **line, size_t *size, FILE *file), (line, size, file), tk_stream_read(file);
        if (result >= 0) tk_library_store(*line, (size_t)result + 1))
TK_WRAP_BEFORE(int, fputs, (const char *string, FILE *file), (string, file), tk_string_load(string))
TK_WRAP_BEFORE(int, fputs_unlocked, (const char *string, FILE *file), (string, file), tk_string_load(string))
TK_WRAP_BEFORE(int, puts, (const char *string), (string), tk_string_load(string))

/* -- strings -------------------------------------------------------------------------------- */

TK_WRAP(size_t, strlen, (const char *string), (string), tk_library_load(string, result + 1))
TK_WRAP(size_t, strnlen, (const char *string, size_t limit), (string, limit),
        tk_library_load(string, result < limit ? result + 1 : limit))

static void copied(char *to, const char *from, size_t bytes)
{
    tk_library_load(from, bytes);
    tk_library_store(to, bytes);
}

TK_WRAP(char *, strcpy, (char *to, const char *from), (to, from), copied(to, from, tk_span(to, SIZE_MAX)))
TK_WRAP(char *, stpcpy, (char *to, const char *from), (to, from), copied(to, from, (size_t)(result - to) + 1))
TK_WRAP(char *, strncpy, (char *to, const char *from, size_t limit), (to, from, limit),
        tk_library_load(from, tk_span(from, limit));
        tk_library_store(to, limit))

static void append(char *to, const char *from, size_t limit)
{
    size_t length = TK_REAL(strlen)(to), bytes = tk_span(from, limit);
    tk_library_load(to, length + 1);
    tk_library_load(from, bytes);
    tk_library_store(to + length, bytes > 0 && from[bytes - 1] == 0 ? bytes : bytes + 1);
}

TK_WRAP_BEFORE(char *, strcat, (char *to, const char *from), (to, from), append(to, from, SIZE_MAX))
TK_WRAP_BEFORE(char *, strncat, (char *to, const char *from, size_t limit), (to, from, limit), append(to, from, limit))

/* Comparisons read up to the first difference or the end. */
static void compared(const char *a, const char *b, size_t limit, int strings)
{
    size_t bytes = 0;
    while (bytes < limit && a[bytes] == b[bytes] && !(strings && a[bytes] == 0))
        bytes++;
    bytes += bytes < limit;
    tk_library_load(a, bytes);
    tk_library_load(b, bytes);
}

TK_WRAP(int, strcmp, (const char *a, const char *b), (a, b), compared(a, b, SIZE_MAX, 1))
TK_WRAP(int, strncmp, (const char *a, const char *b, size_t limit), (a, b, limit), compared(a, b, limit, 1))
TK_WRAP(int, memcmp, (const void *a, const void *b, size_t size), (a, b, size), compared(a, b, size, 0))
TK_WRAP(int, bcmp, (const void *a, const void *b, size_t size), (a, b, size), compared(a, b, size, 0))

TK_WRAP(char *, strchr, (const char *string, int byte), (string, byte),
        tk_library_load(string, result ? (size_t)(result - string) + 1 : tk_span(string, SIZE_MAX)))
TK_WRAP(char *, strrchr, (const char *string, int byte), (string, byte), tk_string_load(string))
TK_WRAP(void *, memchr, (const void *bytes, int byte, size_t size), (bytes, byte, size),
        tk_library_load(bytes, result ? (size_t)((const char *)result - (const char *)bytes) + 1 : size))

static void searched(const char *string, const char *part, const char *found)
{
    size_t length = TK_REAL(strlen)(part);
    tk_library_load(part, length + 1);
    tk_library_load(string, found ? (size_t)(found - string) + length : tk_span(string, SIZE_MAX));
}

TK_WRAP(char *, strstr, (const char *string, const char *part), (string, part), searched(string, part, result))

static void duplicated(const char *from, size_t bytes, char *to)
{
    tk_library_load(from, bytes);
    if (to)
        tk_library_store(to, TK_REAL(strlen)(to) + 1);
}

TK_WRAP(char *, strdup, (const char *string), (string), duplicated(string, tk_span(string, SIZE_MAX), result))
TK_WRAP(char *, strndup, (const char *string, size_t limit), (string, limit),
        duplicated(string, tk_span(string, limit), result))

/* -- numbers ---------------------------------------------------------------------- */

#define WRAP_NUMBER(type, name) \
    TK_WRAP(type, name, (const char *string, char **end, int base), (string, end, base), tk_string_load(string); \
            if (end) tk_library_store(end, sizeof *end))

WRAP_NUMBER(long, strtol)
WRAP_NUMBER(unsigned long, strtoul)
WRAP_NUMBER(long long, strtoll)
WRAP_NUMBER(unsigned long long, strtoull)
WRAP_NUMBER(intmax_t, strtoimax)
WRAP_NUMBER(uintmax_t, strtoumax)

#define WRAP_REAL(type, name) \
    TK_WRAP(type, name, (const char *string, char **end), (string, end), tk_string_load(string); \
            if (end) tk_library_store(end, sizeof *end))

WRAP_REAL(float, strtof)
WRAP_REAL(double, strtod)
WRAP_REAL(long double, strtold)
TK_WRAP(int, atoi, (const char *string), (string), tk_string_load(string))
TK_WRAP(long, atol, (const char *string), (string), tk_string_load(string))
TK_WRAP(double, atof, (const char *string), (string), tk_string_load(string))

/* -- what _FORTIFY_SOURCE makes of the above: the size of the destination is checked by the real one ------------- */

char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t limit, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t limit, size_t room);
char *__fgets_chk(char *buffer, size_t room, int size, FILE *file);
char *__fgets_unlocked_chk(char *buffer, size_t room, int size, FILE *file);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);

TK_WRAP(char *, __strcpy_chk, (char *to, const char *from, size_t room), (to, from, room),
        copied(to, from, tk_span(to, SIZE_MAX)))
TK_WRAP(char *, __stpcpy_chk, (char *to, const char *from, size_t room), (to, from, room),
        copied(to, from, (size_t)(result - to) + 1))
TK_WRAP(char *, __strncpy_chk, (char *to, const char *from, size_t limit, size_t room), (to, from, limit, room),
        tk_library_load(from, tk_span(from, limit));
        tk_library_store(to, limit))
TK_WRAP_BEFORE(char *, __strcat_chk, (char *to, const char *from, size_t room), (to, from, room),
               append(to, from, SIZE_MAX))
TK_WRAP_BEFORE(char *, __strncat_chk, (char *to, const char *from, size_t limit, size_t room), (to, from, limit, room),
               append(to, from, limit))

#define WRAP_FGETS_CHECKED(name) \
    TK_WRAP(char *, name, (char *buffer, size_t room, int size, FILE *file), (buffer, room, size, file), \
            tk_stream_read(file); \
            if (result) tk_library_store(buffer, tk_span(buffer, (size_t)size)))
#define WRAP_FREAD_CHECKED(name) \
    TK_WRAP(size_t, name, (void *buffer, size_t room, size_t size, size_t count, FILE *file), \
            (buffer, room, size, count, file), tk_stream_read(file); \
            tk_library_store(buffer, result * size))

WRAP_FGETS_CHECKED(__fgets_chk)
WRAP_FGETS_CHECKED(__fgets_unlocked_chk)
WRAP_FREAD_CHECKED(__fread_chk)
WRAP_FREAD_CHECKED(__fread_unlocked_chk)

/* -- the library of C++ ---------------------------------------------------------------------- */

/* std::_Hash_bytes of libstdc++, by which std::hash looks at strings. */
size_t _ZSt11_Hash_bytesPKvmm(const void *bytes, size_t size, size_t seed);
TK_WRAP(size_t, _ZSt11_Hash_bytesPKvmm, (const void *bytes, size_t size, size_t seed), (bytes, size, seed),
        tk_library_load(bytes, size))

/* -- sorting ---------------------------------------------------------------------------------- */

/* Before the comparisons run, the array is read; when they are done, it is written. */
TK_EXPORT void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (TK_IS_RECORDED())
        tk_library_load(base, count * size);
    TK_REAL(qsort)(base, count, size, compare);
    if (TK_IS_RECORDED())
        tk_library_store(base, count * size);
}
