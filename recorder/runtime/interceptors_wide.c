/* Functions that convert between multibyte and wide characters: what they read of the text, what they write, and the
 * state of the conversion, which they read and write if it is the caller's.
 *
 * Where a conversion fails, the bytes before the place that it failed at are not told of. */
#include "preload_library.h"

#include <limits.h>
#include <stdlib.h>
#include <wchar.h>

#define NOTHING ((size_t)-1) /* it is no character, and with -2 not a whole one */
#define FAILED(result) ((size_t)(result) >= (size_t)-2)

static void state_used(const mbstate_t *state)
{
    if (state) {
        tk_library_load(state, sizeof *state);
        tk_library_store(state, sizeof *state);
    }
}

/* -- single characters ------------------------------------------------------------------------ */

/* `result` bytes make up the character; of a NUL 0 is said. What is no character ends at its first byte or later. */
static void character_read(const char *text, size_t limit, size_t result, const wchar_t *to)
{
    if (!text)
        return;
    size_t least = limit > 0 ? 1 : 0;
    tk_library_load(text, result == (size_t)-2 ? limit : result == 0 || result == NOTHING ? least : result);
    if (to && !FAILED(result))
        tk_library_store(to, sizeof *to);
}

static void character_written(const char *to, size_t result)
{
    if (to && !FAILED(result))
        tk_library_store(to, result);
}

#define OF_CHARACTER character_read(text, limit, (size_t)result, to)
#define OF_LENGTH character_read(text, limit, (size_t)result, NULL)

size_t __mbrtowc(wchar_t *to, const char *text, size_t limit, mbstate_t *state);
size_t __mbrlen(const char *text, size_t limit, mbstate_t *state);
int __wctomb_chk(char *to, wchar_t character, size_t room);
size_t __wcrtomb_chk(char *to, wchar_t character, mbstate_t *state, size_t room);

TK_WRAP(size_t, mbrtowc, (wchar_t * to, const char *text, size_t limit, mbstate_t *state), (to, text, limit, state),
        OF_CHARACTER;
        state_used(state))
TK_WRAP(size_t, __mbrtowc, (wchar_t * to, const char *text, size_t limit, mbstate_t *state), (to, text, limit, state),
        OF_CHARACTER;
        state_used(state))
TK_WRAP(int, mbtowc, (wchar_t * to, const char *text, size_t limit), (to, text, limit), OF_CHARACTER)
TK_WRAP(size_t, mbrlen, (const char *text, size_t limit, mbstate_t *state), (text, limit, state), OF_LENGTH;
        state_used(state))
TK_WRAP(size_t, __mbrlen, (const char *text, size_t limit, mbstate_t *state), (text, limit, state), OF_LENGTH;
        state_used(state))
TK_WRAP(int, mblen, (const char *text, size_t limit), (text, limit), OF_LENGTH)
TK_WRAP(size_t, wcrtomb, (char *to, wchar_t character, mbstate_t *state), (to, character, state),
        character_written(to, result);
        state_used(state))
TK_WRAP(size_t, __wcrtomb_chk, (char *to, wchar_t character, mbstate_t *state, size_t room),
        (to, character, state, room), character_written(to, result);
        state_used(state))
TK_WRAP(int, wctomb, (char *to, wchar_t character), (to, character), character_written(to, (size_t)result))
TK_WRAP(int, __wctomb_chk, (char *to, wchar_t character, size_t room), (to, character, room),
        character_written(to, (size_t)result))
TK_WRAP(int, mbsinit, (const mbstate_t *state), (state), if (state) tk_library_load(state, sizeof *state))

/* -- texts ------------------------------------------------------------------------------------ */

/* How many bytes `count` wide characters become; these have been converted already, or could be. */
static size_t bytes_of(const wchar_t *text, size_t count)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    size_t sum = 0;
    for (size_t number = 0; number < count; number++) {
        size_t more = TK_REAL(wcrtomb)(bytes, text[number], &state);
        sum += FAILED(more) ? 0 : more;
    }
    return sum;
}

/* How many wide characters become at most `limit` bytes. */
static size_t wide_in(const wchar_t *text, size_t limit)
{
    size_t count = 0;
    while (bytes_of(text + count, 1) <= limit) {
        limit -= bytes_of(text + count, 1);
        count++;
    }
    return count;
}

static size_t wide_length(const wchar_t *text)
{
    return TK_REAL(wcslen)(text) + 1;
}

/* `count` wide characters and, if the text ended before the limit, the one behind them. */
static void to_wide(const wchar_t *to, const char *text, size_t limit, size_t count)
{
    if (count == NOTHING)
        return;
    tk_library_load(text, !to || count < limit ? tk_span(text, SIZE_MAX) : bytes_of(to, count));
    if (to)
        tk_library_store(to, (count < limit ? count + 1 : count) * sizeof *to);
}

static void from_wide(const char *to, const wchar_t *text, size_t limit, size_t bytes)
{
    if (bytes == NOTHING)
        return;
    tk_library_load(text, (!to || bytes < limit ? wide_length(text) : wide_in(text, bytes)) * sizeof *text);
    if (to)
        tk_library_store(to, bytes < limit ? bytes + 1 : bytes);
}

size_t __mbstowcs_chk(wchar_t *to, const char *text, size_t limit, size_t room);
size_t __wcstombs_chk(char *to, const wchar_t *text, size_t limit, size_t room);

TK_WRAP(size_t, mbstowcs, (wchar_t * to, const char *text, size_t limit), (to, text, limit),
        to_wide(to, text, limit, result))
TK_WRAP(size_t, __mbstowcs_chk, (wchar_t * to, const char *text, size_t limit, size_t room), (to, text, limit, room),
        to_wide(to, text, limit, result))
TK_WRAP(size_t, wcstombs, (char *to, const wchar_t *text, size_t limit), (to, text, limit),
        from_wide(to, text, limit, result))
TK_WRAP(size_t, __wcstombs_chk, (char *to, const wchar_t *text, size_t limit, size_t room), (to, text, limit, room),
        from_wide(to, text, limit, result))

/* Those that say where they stopped do so in the place of the text's address: NULL is the end. Without a place to write
 * to, they leave it as it was, and read all. */
static void to_wide_until(const wchar_t *to, const char *text, size_t bytes, const char **next, size_t count)
{
    tk_library_load(next, sizeof *next);
    if (to)
        tk_library_store(next, sizeof *next);
    if (count == NOTHING)
        return;
    tk_library_load(text, to && *next ? (size_t)(*next - text) : tk_span(text, bytes));
    if (to)
        tk_library_store(to, (*next ? count : count + 1) * sizeof *to);
}

static void from_wide_until(const char *to, const wchar_t *text, size_t wide, const wchar_t **next, size_t bytes)
{
    tk_library_load(next, sizeof *next);
    if (to)
        tk_library_store(next, sizeof *next);
    if (bytes == NOTHING)
        return;
    size_t length = TK_REAL(wcsnlen)(text, wide), all = length < wide ? length + 1 : wide;
    tk_library_load(text, (to && *next ? (size_t)(*next - text) : all) * sizeof *text);
    if (to)
        tk_library_store(to, *next ? bytes : bytes + 1);
}

#define WRAP_UNTIL(name, other, told, limit, parameters, ...) \
    TK_EXPORT size_t name parameters \
    { \
        const other *from = *text; \
        size_t result = TK_REAL(name)(__VA_ARGS__); \
        if (TK_IS_RECORDED()) { \
            int saved = errno; \
            told(to, from, limit, text, result); \
            state_used(state); \
            errno = saved; \
        } \
        return result; \
    }

size_t __mbsrtowcs_chk(wchar_t *to, const char **text, size_t most, mbstate_t *state, size_t room);
size_t __mbsnrtowcs_chk(wchar_t *to, const char **text, size_t bytes, size_t most, mbstate_t *state, size_t room);
size_t __wcsrtombs_chk(char *to, const wchar_t **text, size_t most, mbstate_t *state, size_t room);
size_t __wcsnrtombs_chk(char *to, const wchar_t **text, size_t wide, size_t most, mbstate_t *state, size_t room);

WRAP_UNTIL(mbsrtowcs, char, to_wide_until, SIZE_MAX, (wchar_t * to, const char **text, size_t most, mbstate_t *state),
           to, text, most, state)
WRAP_UNTIL(mbsnrtowcs, char, to_wide_until, bytes,
           (wchar_t * to, const char **text, size_t bytes, size_t most, mbstate_t *state), to, text, bytes, most, state)
WRAP_UNTIL(__mbsrtowcs_chk, char, to_wide_until, SIZE_MAX,
           (wchar_t * to, const char **text, size_t most, mbstate_t *state, size_t room), to, text, most, state, room)
WRAP_UNTIL(__mbsnrtowcs_chk, char, to_wide_until, bytes,
           (wchar_t * to, const char **text, size_t bytes, size_t most, mbstate_t *state, size_t room), to, text, bytes,
           most, state, room)
WRAP_UNTIL(wcsrtombs, wchar_t, from_wide_until, SIZE_MAX,
           (char *to, const wchar_t **text, size_t most, mbstate_t *state), to, text, most, state)
WRAP_UNTIL(wcsnrtombs, wchar_t, from_wide_until, wide,
           (char *to, const wchar_t **text, size_t wide, size_t most, mbstate_t *state), to, text, wide, most, state)
WRAP_UNTIL(__wcsrtombs_chk, wchar_t, from_wide_until, SIZE_MAX,
           (char *to, const wchar_t **text, size_t most, mbstate_t *state, size_t room), to, text, most, state, room)
WRAP_UNTIL(__wcsnrtombs_chk, wchar_t, from_wide_until, wide,
           (char *to, const wchar_t **text, size_t wide, size_t most, mbstate_t *state, size_t room), to, text, wide,
           most, state, room)
