/* What printf's relatives read through their arguments, and scanf's write: each conversion of a format says how much.
 *
 * A format with numbered arguments (`%1$s`) is left alone from there on. What files keep in their buffers is not told.
 */
#include "preload_library.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

/* A va_list is an array on some processors, which is handed on by its place. */
struct arguments {
    va_list list;
};

#define NEXT(arguments, type) va_arg((arguments)->list, type)

enum length { PLAIN, CHAR, SHORT, LONG, LONG_LONG, LONG_DOUBLE };

/* hh, h, l, ll and their like: how long the argument is. */
static const char *length_of(const char *at, enum length *length)
{
    *length = PLAIN;
    for (; *at && TK_REAL(strchr)("hlqLjzt", *at); at++)
        if (*at == 'h')
            *length = *length == SHORT ? CHAR : SHORT;
        else if (*at == 'l')
            *length = *length == LONG ? LONG_LONG : LONG;
        else
            *length = *at == 'L' ? LONG_DOUBLE : LONG_LONG;
    return at;
}

static size_t integer_bytes(enum length length)
{
    static const size_t bytes[] = {[PLAIN] = sizeof(int), [CHAR] = sizeof(char), [SHORT] = sizeof(short)};
    return length <= SHORT ? bytes[length] : sizeof(long);
}

static size_t float_bytes(enum length length)
{
    return length == LONG_DOUBLE ? sizeof(long double) : length == LONG ? sizeof(double) : sizeof(float);
}

static int is_integer(char conversion)
{
    return conversion && TK_REAL(strchr)("diuoxX", conversion);
}

static int is_float(char conversion)
{
    return conversion && TK_REAL(strchr)("eEfFgGaA", conversion);
}

/* -- printf ----------------------------------------------------------------------------------- */

/* A width or a precision: a number, or `*` and an argument. */
static const char *number_of(const char *at, struct arguments *arguments, int *number)
{
    if (*at == '*') {
        *number = NEXT(arguments, int);
        return at + 1;
    }
    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (*at - '0');
    return at;
}

static void print_string(const void *string, enum length length, int precision)
{
    if (!string) /* (null) */
        return;
    if (length != LONG)
        tk_library_load(string, tk_span(string, precision < 0 ? SIZE_MAX : (size_t)precision));
    else if (precision < 0) /* else the locale says how many letters make so many bytes */
        tk_library_load(string, (TK_REAL(wcslen)(string) + 1) * sizeof(wchar_t));
}

/* The conversion behind a percent sign; returns its end, NULL if it is none that is known. */
static const char *print_one(const char *at, struct arguments *arguments)
{
    int width, precision = -1;
    enum length length;
    while (*at && TK_REAL(strchr)("-+ #0'I", *at))
        at++;
    at = number_of(at, arguments, &width);
    if (*at == '.')
        at = number_of(at + 1, arguments, &precision);
    at = length_of(at, &length);
    if (*at == 's' || *at == 'S')
        print_string(NEXT(arguments, void *), *at == 'S' ? LONG : length, precision);
    else if (*at == 'n')
        tk_library_store(NEXT(arguments, void *), integer_bytes(length));
    else if (is_float(*at) && length == LONG_DOUBLE)
        NEXT(arguments, long double);
    else if (is_float(*at))
        NEXT(arguments, double);
    else if (*at == 'p' || (is_integer(*at) && integer_bytes(length) == sizeof(long)))
        NEXT(arguments, long);
    else if (*at == 'c' || *at == 'C' || is_integer(*at))
        NEXT(arguments, int);
    else if (*at != '%' && *at != 'm')
        return NULL;
    return at + 1;
}

static void print(const char *format, va_list list)
{
    struct arguments arguments;
    int saved = errno;
    va_copy(arguments.list, list);
    while (format && (format = TK_REAL(strchr)(format, '%')))
        format = print_one(format + 1, &arguments);
    va_end(arguments.list);
    errno = saved;
}

/* The bytes that snprintf wrote: as many as fit, with the NUL. */
static void store_text(const char *buffer, size_t size, int length)
{
    if (length >= 0 && size > 0)
        tk_library_store(buffer, (size_t)length < size ? (size_t)length + 1 : size);
}

#define UNPACK(...) __VA_ARGS__

/* Print by the real function of this name, and enter what it reads before, what it wrote behind; declares `result`. */
#define PRINT(name, arguments, before, accesses) \
    int recorded = TK_IS_RECORDED(); \
    if (recorded) \
        print(format, list); \
    before; \
    int result = TK_REAL(name)(UNPACK arguments format, list); \
    if (recorded) { \
        accesses; \
    }

/* `name`, which takes a list, and `variadic`, which makes one: what both do is the same. */
#define PRINTER(name, variadic, parameters, arguments, accesses) \
    PRINTER_INTO(name, variadic, parameters, arguments, , accesses)

/* And does something before. */
#define PRINTER_INTO(name, variadic, parameters, arguments, before, accesses) \
    TK_EXPORT int name(UNPACK parameters const char *format, va_list list) \
    { \
        PRINT(name, arguments, before, accesses) \
        return result; \
    } \
    TK_EXPORT int variadic(UNPACK parameters const char *format, ...) \
    { \
        va_list list; \
        va_start(list, format); \
        PRINT(name, arguments, before, accesses) \
        va_end(list); \
        return result; \
    }

#define STORE_BLOCK \
    if (result >= 0) { \
        tk_library_store(to, sizeof *to); \
        tk_library_store(*to, (size_t)result + 1); \
    }

/* What is written without a buffer, a reader comes after. */
#define RELEASE_FILE \
    TK_USE_FILE(file); \
    if (TK_ORDERS()) { \
        tk_kernel_release(tk_descriptor_object(file)); \
    }

PRINTER(vprintf, printf, (), (), )
PRINTER(vfprintf, fprintf, (FILE * file, ), (file, ), )
PRINTER_INTO(vdprintf, dprintf, (int file, ), (file, ), RELEASE_FILE, )
PRINTER(vsprintf, sprintf, (char *buffer, ), (buffer, ), store_text(buffer, SIZE_MAX, result))
PRINTER(vsnprintf, snprintf, (char *buffer, size_t size, ), (buffer, size, ), store_text(buffer, size, result))
PRINTER(vasprintf, asprintf, (char **to, ), (to, ), STORE_BLOCK)

/* What _FORTIFY_SOURCE makes of these: the real one checks the size of the destination. */
int __vprintf_chk(int flag, const char *format, va_list list);
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list list);
int __vdprintf_chk(int file, int flag, const char *format, va_list list);
int __vsprintf_chk(char *buffer, int flag, size_t room, const char *format, va_list list);
int __vsnprintf_chk(char *buffer, size_t size, int flag, size_t room, const char *format, va_list list);
int __vasprintf_chk(char **to, int flag, const char *format, va_list list);

PRINTER(__vprintf_chk, __printf_chk, (int flag, ), (flag, ), )
PRINTER(__vfprintf_chk, __fprintf_chk, (FILE * file, int flag, ), (file, flag, ), )
PRINTER_INTO(__vdprintf_chk, __dprintf_chk, (int file, int flag, ), (file, flag, ), RELEASE_FILE, )
PRINTER(__vsprintf_chk, __sprintf_chk, (char *buffer, int flag, size_t room, ), (buffer, flag, room, ),
        store_text(buffer, SIZE_MAX, result))
PRINTER(__vsnprintf_chk, __snprintf_chk, (char *buffer, size_t size, int flag, size_t room, ),
        (buffer, size, flag, room, ), store_text(buffer, size, result))
PRINTER(__vasprintf_chk, __asprintf_chk, (char **to, int flag, ), (to, flag, ), STORE_BLOCK)

/* -- scanf ------------------------------------------------------------------------------------ */

/* Behind the letters of `%[...]`: a bracket that comes first is one of them. */
static const char *set_end(const char *at)
{
    at += *at == '^';
    at += *at == ']';
    at = TK_REAL(strchr)(at, ']');
    return at ? at + 1 : NULL;
}

/* Where a conversion put what it read. `letters`: of `%c` */
static void scan_into(char conversion, enum length length, size_t letters, const void *to)
{
    int wide = length == LONG || conversion == 'S' || conversion == 'C';
    size_t letter = wide ? sizeof(wchar_t) : 1;
    if (conversion == 'c' || conversion == 'C')
        tk_library_store(to, letter * (letters ? letters : 1));
    else if (conversion == 's' || conversion == 'S' || conversion == '[')
        tk_library_store(to, letter * ((wide ? TK_REAL(wcslen)(to) : TK_REAL(strlen)(to)) + 1));
    else if (conversion == 'p')
        tk_library_store(to, sizeof(void *));
    else
        tk_library_store(to, is_float(conversion) ? float_bytes(length) : integer_bytes(length));
}

/* The conversion behind a percent sign; returns its end, NULL if it is none that is known. `left`: how many more
 * conversions were stored. */
static const char *scan_one(const char *at, struct arguments *arguments, int *left)
{
    int width = 0;
    enum length length;
    int dropped = *at == '*';
    at = number_of(at + dropped, NULL, &width);
    at += *at == '\'';
    int allocated = *at == 'm';
    at = length_of(at + allocated, &length);
    char conversion = *at;
    if (conversion == '%')
        return at + 1;
    if (!is_integer(conversion) && !is_float(conversion) && !(conversion && TK_REAL(strchr)("cCsSpn[", conversion)))
        return NULL;
    if (!dropped) {
        const void *to = NEXT(arguments, void *);
        if (allocated) {
            tk_library_store(to, sizeof(void *));
            to = *(void *const *)to;
        }
        scan_into(conversion, length, (size_t)width, to);
        *left -= conversion != 'n';
    }
    return conversion == '[' ? set_end(at + 1) : at + 1;
}

static const char *behind_space(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Whether a conversion begins that stores how much was read: `%n`, `%hhn`, ... */
static int starts_count(const char *at)
{
    enum length length;
    return *at == '%' && *length_of(at + 1, &length) == 'n';
}

static void scan(const char *format, va_list list, int left)
{
    struct arguments arguments;
    int saved = errno;
    va_copy(arguments.list, list);
    while (left > 0 && format && (format = TK_REAL(strchr)(format, '%')))
        format = scan_one(format + 1, &arguments, &left);
    /* Behind the last conversion that was stored `%n` counts at once, behind letters only if these were found. */
    while (left == 0 && format && (format = behind_space(format)) && starts_count(format))
        format = scan_one(format + 1, &arguments, &left);
    va_end(arguments.list);
    errno = saved;
}

/* Scan `list` by the real function of this name, and enter what it stored; declares `result`. */
#define SCAN(name, arguments, accesses) \
    va_list again; \
    va_copy(again, list); \
    int result = TK_REAL(name)(UNPACK arguments format, list); \
    if (TK_IS_RECORDED()) { \
        accesses; \
        scan(format, again, result); \
    } \
    va_end(again)

#define SCANNER(name, variadic, parameters, arguments, accesses) \
    TK_EXPORT int name(UNPACK parameters const char *format, va_list list) \
    { \
        SCAN(name, arguments, accesses); \
        return result; \
    } \
    TK_EXPORT int variadic(UNPACK parameters const char *format, ...) \
    { \
        va_list list; \
        va_start(list, format); \
        SCAN(name, arguments, accesses); \
        va_end(list); \
        return result; \
    }

/* Headers give the functions of C99 and C23 names of their own. */
#define SCANNERS(prefix) \
    int prefix##vscanf(const char *format, va_list list); \
    int prefix##vfscanf(FILE *file, const char *format, va_list list); \
    int prefix##vsscanf(const char *text, const char *format, va_list list); \
    SCANNER(prefix##vscanf, prefix##scanf, (), (), ) \
    SCANNER(prefix##vfscanf, prefix##fscanf, (FILE * file, ), (file, ), ) \
    SCANNER(prefix##vsscanf, prefix##sscanf, (const char *text, ), (text, ), tk_string_load(text))

SCANNERS()
SCANNERS(__isoc99_)
SCANNERS(__isoc23_)
