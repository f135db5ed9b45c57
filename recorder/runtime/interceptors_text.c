/* More functions of text, of wide characters, too: those that search, compare, copy and cut it read and write the bytes
 * that the definition of each says. */
#include "preload_library.h"

#include <strings.h>
#include <wchar.h>

/* What _FORTIFY_SOURCE makes of functions here: the real ones check the size of the destination. */
char *__stpncpy_chk(char *to, const char *from, size_t limit, size_t room);
void __explicit_bzero_chk(void *to, size_t size, size_t room);
wchar_t *__wcscpy_chk(wchar_t *to, const wchar_t *from, size_t room);
wchar_t *__wcsncpy_chk(wchar_t *to, const wchar_t *from, size_t limit, size_t room);
wchar_t *__wcscat_chk(wchar_t *to, const wchar_t *from, size_t room);
wchar_t *__wcsncat_chk(wchar_t *to, const wchar_t *from, size_t limit, size_t room);
wchar_t *__wmemcpy_chk(wchar_t *to, const wchar_t *from, size_t size, size_t room);
wchar_t *__wmemmove_chk(wchar_t *to, const wchar_t *from, size_t size, size_t room);
wchar_t *__wmemset_chk(wchar_t *to, wchar_t letter, size_t size, size_t room);

static size_t distance(const void *from, const void *to)
{
    return (size_t)((const char *)to - (const char *)from);
}

/* -- comparisons ------------------------------------------------------------------------------ */

static int lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
}

/* Up to the first letters that differ, or the end. */
static void compared(const char *a, const char *b, size_t limit)
{
    size_t bytes = 0;
    while (bytes < limit && a[bytes] && lower(a[bytes]) == lower(b[bytes]))
        bytes++;
    bytes += bytes < limit;
    tk_library_load(a, bytes);
    tk_library_load(b, bytes);
}

TK_WRAP(int, strcasecmp, (const char *a, const char *b), (a, b), compared(a, b, SIZE_MAX))
TK_WRAP(int, strncasecmp, (const char *a, const char *b, size_t limit), (a, b, limit), compared(a, b, limit))
TK_WRAP(int, strcoll, (const char *a, const char *b), (a, b), tk_string_load(a); tk_string_load(b))
TK_WRAP(size_t, strxfrm, (char *to, const char *from, size_t limit), (to, from, limit), tk_string_load(from);
        tk_library_store(to, result < limit ? result + 1 : limit))

/* -- searches --------------------------------------------------------------------------------- */

void *rawmemchr(const void *bytes, int byte); /* musl has none */

TK_WRAP(void *, rawmemchr, (const void *bytes, int byte), (bytes, byte),
        tk_library_load(bytes, distance(bytes, result) + 1))
TK_WRAP(char *, strchrnul, (const char *string, int byte), (string, byte),
        tk_library_load(string, distance(string, result) + 1))
TK_WRAP(void *, memrchr, (const void *bytes, int byte, size_t size), (bytes, byte, size),
        const void *first = result ? result : bytes;
        tk_library_load(first, size - distance(bytes, first)))
TK_WRAP(size_t, strspn, (const char *string, const char *set), (string, set), tk_library_load(string, result + 1);
        tk_string_load(set))
TK_WRAP(size_t, strcspn, (const char *string, const char *set), (string, set), tk_library_load(string, result + 1);
        tk_string_load(set))
TK_WRAP(char *, strpbrk, (const char *string, const char *set), (string, set),
        tk_library_load(string, result ? distance(string, result) + 1 : tk_span(string, SIZE_MAX));
        tk_string_load(set))
TK_WRAP(char *, strcasestr, (const char *string, const char *part), (string, part), tk_string_load(part);
        tk_library_load(string, result ? distance(string, result) + TK_REAL(strlen)(part) : tk_span(string, SIZE_MAX)))
TK_WRAP(void *, memmem, (const void *bytes, size_t size, const void *part, size_t length), (bytes, size, part, length),
        tk_library_load(part, length);
        tk_library_load(bytes, result ? distance(bytes, result) + length : size))

/* -- copies ----------------------------------------------------------------------------------- */

TK_WRAP(void *, memccpy, (void *to, const void *from, int byte, size_t size), (to, from, byte, size),
        size_t bytes = result ? distance(to, result) : size;
        tk_library_load(from, bytes); tk_library_store(to, bytes))
TK_WRAP(char *, stpncpy, (char *to, const char *from, size_t limit), (to, from, limit),
        tk_library_load(from, tk_span(from, limit));
        tk_library_store(to, limit))
TK_WRAP(char *, __stpncpy_chk, (char *to, const char *from, size_t limit, size_t room), (to, from, limit, room),
        tk_library_load(from, tk_span(from, limit));
        tk_library_store(to, limit))
TK_WRAP_BEFORE(void, explicit_bzero, (void *to, size_t size), (to, size), tk_library_store(to, size))
TK_WRAP_BEFORE(void, __explicit_bzero_chk, (void *to, size_t size, size_t room), (to, size, room),
               tk_library_store(to, size))

/* -- words of a text -------------------------------------------------------------------------- */

/* What lies before the next word's first letter is not told. `rest` is where the one after it begins. */
static void cut(const char *word, const char *rest)
{
    size_t length = TK_REAL(strlen)(word);
    tk_library_load(word, length + 1);
    if (rest > word + length) /* else the text ended there: no NUL was put */
        tk_library_store(word + length, 1);
}

TK_WRAP(char *, strtok_r, (char *string, const char *set, char **rest), (string, set, rest), tk_string_load(set);
        if (!string) tk_library_load(rest, sizeof *rest); tk_library_store(rest, sizeof *rest);
        if (result) cut(result, *rest))
TK_WRAP(
    char *, strsep, (char **string, const char *set), (string, set), tk_string_load(set);
    tk_library_load(string, sizeof *string); if (result) {
        tk_library_store(string, sizeof *string);
        cut(result, *string);
    })

/* The library's own place of the rest cannot be seen. */
TK_EXPORT char *strtok(char *string, const char *set)
{
    static char *rest;
    char *word = TK_REAL(strtok_r)(string, set, &rest);
    if (TK_IS_RECORDED()) {
        tk_string_load(set);
        if (word)
            cut(word, rest);
    }
    return word;
}

/* -- wide characters -------------------------------------------------------------------------- */

static size_t wide_span(const wchar_t *string, size_t limit)
{
    size_t length = TK_REAL(wcsnlen)(string, limit);
    return (length < limit ? length + 1 : limit) * sizeof *string;
}

static void wide_copied(wchar_t *to, const wchar_t *from, size_t bytes)
{
    tk_library_load(from, bytes);
    tk_library_store(to, bytes);
}

/* Before the call: how long the text is then is not known behind it. */
static void wide_appended(wchar_t *to, const wchar_t *from, size_t limit)
{
    size_t length = TK_REAL(wcslen)(to), added = TK_REAL(wcsnlen)(from, limit);
    tk_library_load(to, (length + 1) * sizeof *to);
    tk_library_load(from, (added < limit ? added + 1 : limit) * sizeof *from);
    tk_library_store(to + length, (added + 1) * sizeof *to);
}

static void wide_compared(const wchar_t *a, const wchar_t *b, size_t limit, int strings)
{
    size_t letters = 0;
    while (letters < limit && a[letters] == b[letters] && !(strings && a[letters] == 0))
        letters++;
    letters += letters < limit;
    tk_library_load(a, letters * sizeof *a);
    tk_library_load(b, letters * sizeof *b);
}

TK_WRAP(size_t, wcslen, (const wchar_t *string), (string), tk_library_load(string, (result + 1) * sizeof *string))
TK_WRAP(size_t, wcsnlen, (const wchar_t *string, size_t limit), (string, limit),
        tk_library_load(string, (result < limit ? result + 1 : limit) * sizeof *string))
TK_WRAP(int, wcscmp, (const wchar_t *a, const wchar_t *b), (a, b), wide_compared(a, b, SIZE_MAX, 1))
TK_WRAP(int, wcsncmp, (const wchar_t *a, const wchar_t *b, size_t limit), (a, b, limit), wide_compared(a, b, limit, 1))
TK_WRAP(int, wmemcmp, (const wchar_t *a, const wchar_t *b, size_t size), (a, b, size), wide_compared(a, b, size, 0))
TK_WRAP(wchar_t *, wcscpy, (wchar_t * to, const wchar_t *from), (to, from),
        wide_copied(to, from, wide_span(to, SIZE_MAX)))
TK_WRAP(wchar_t *, wcsncpy, (wchar_t * to, const wchar_t *from, size_t limit), (to, from, limit),
        tk_library_load(from, wide_span(from, limit));
        tk_library_store(to, limit * sizeof *to))
TK_WRAP_BEFORE(wchar_t *, wcscat, (wchar_t * to, const wchar_t *from), (to, from), wide_appended(to, from, SIZE_MAX))
TK_WRAP_BEFORE(wchar_t *, wcsncat, (wchar_t * to, const wchar_t *from, size_t limit), (to, from, limit),
               wide_appended(to, from, limit))
TK_WRAP(wchar_t *, wmemcpy, (wchar_t * to, const wchar_t *from, size_t size), (to, from, size),
        wide_copied(to, from, size * sizeof *to))
TK_WRAP(wchar_t *, wmemmove, (wchar_t * to, const wchar_t *from, size_t size), (to, from, size),
        wide_copied(to, from, size * sizeof *to))
TK_WRAP(wchar_t *, wmemset, (wchar_t * to, wchar_t letter, size_t size), (to, letter, size),
        tk_library_store(to, size * sizeof *to))

TK_WRAP(wchar_t *, __wcscpy_chk, (wchar_t * to, const wchar_t *from, size_t room), (to, from, room),
        wide_copied(to, from, wide_span(to, SIZE_MAX)))
TK_WRAP(wchar_t *, __wcsncpy_chk, (wchar_t * to, const wchar_t *from, size_t limit, size_t room),
        (to, from, limit, room), tk_library_load(from, wide_span(from, limit));
        tk_library_store(to, limit * sizeof *to))
TK_WRAP_BEFORE(wchar_t *, __wcscat_chk, (wchar_t * to, const wchar_t *from, size_t room), (to, from, room),
               wide_appended(to, from, SIZE_MAX))
TK_WRAP_BEFORE(wchar_t *, __wcsncat_chk, (wchar_t * to, const wchar_t *from, size_t limit, size_t room),
               (to, from, limit, room), wide_appended(to, from, limit))
TK_WRAP(wchar_t *, __wmemcpy_chk, (wchar_t * to, const wchar_t *from, size_t size, size_t room), (to, from, size, room),
        wide_copied(to, from, size * sizeof *to))
TK_WRAP(wchar_t *, __wmemmove_chk, (wchar_t * to, const wchar_t *from, size_t size, size_t room),
        (to, from, size, room), wide_copied(to, from, size * sizeof *to))
TK_WRAP(wchar_t *, __wmemset_chk, (wchar_t * to, wchar_t letter, size_t size, size_t room), (to, letter, size, room),
        tk_library_store(to, size * sizeof *to))
