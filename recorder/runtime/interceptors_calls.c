/* Calls of chosen functions, with their arguments and results (docs/internals/runtime.md, "Intercepted calls").
 *
 * A prototype is read once, when its function is first called; `record --intercept` may name another one than the pass
 * wrote. Memory is read through the kernel, so that a pointer that leads nowhere is no more than that. */
#include "preload_record.h"
#include "probe.h"

#include <errno.h>
#include <sys/uio.h>

#define PROBES 256
#define LONGEST (1u << 16) /* bytes of one string or array that are recorded */
#define RESULT 255
#define TEXT 254 /* the prototype itself */

enum direction { IN = 1, OUT = 2 };

struct type {
    uint8_t direction; /* 0: by value; else it points to one, or to an array */
    uint8_t size;      /* of the value, or of an element */
    uint8_t string;    /* it points to text, or its elements do */
    uint8_t array;
    int16_t counter; /* the argument that says how many elements there are; RESULT; -1: `count` does */
    uint64_t count;
};

struct layout {
    const char *text;
    uint32_t arguments;
    struct type argument[TK_MOST_ARGUMENTS], result;
};

static struct layout layouts[PROBES]; /* from number 1 on */
static uint32_t used;
static int lock_word;

/* -- prototypes ----------------------------------------------------------------------------------- */

static const char *skip(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

static int is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '.' || byte == ':' || byte == '~' || byte == '$';
}

/* The word at a place, without the colon that may follow it; NULL if it is another than `expected`. */
static const char *word_end(const char *at)
{
    const char *end = at;
    while (is_letter(*end) && !(*end == ':' && end[1] != ':' && (end == at || end[-1] != ':')))
        end++;
    return end;
}

static int is_word(const char *at, const char *end, const char *word)
{
    while (at < end && *word && *at == *word)
        at++, word++;
    return at == end && !*word;
}

static int same_words(const char *a, const char *a_end, const char *b, const char *b_end)
{
    if (a_end - a != b_end - b)
        return 0;
    while (a < a_end && *a == *b)
        a++, b++;
    return a == a_end;
}

static int scalar_bytes(const char *at, const char *end)
{
    static const struct {
        const char *word;
        int size;
    } known[] = {{"i8", 1},  {"u8", 1},  {"i16", 2}, {"u16", 2}, {"i32", 4},  {"u32", 4}, {"i64", 8},
                 {"u64", 8}, {"f32", 4}, {"f64", 8}, {"ptr", 8}, {"bool", 1}, {"void", 0}};
    for (size_t index = 0; index < sizeof known / sizeof *known; index++)
        if (is_word(at, end, known[index].word))
            return known[index].size;
    return -1;
}

/* The place of a parameter's name among the parameters. */
static int index_of(const char *parameters, const char *name, const char *name_end)
{
    if (is_word(name, name_end, "return"))
        return RESULT;
    int index = 0;
    for (const char *at = skip(parameters); *at && *at != ')'; index++) {
        if (same_words(at, word_end(at), name, name_end))
            return index;
        while (*at && *at != ',' && *at != ')')
            at++;
        at = skip(*at == ',' ? at + 1 : at);
    }
    return -1;
}

static const char *read_type(const char *at, const char *parameters, struct type *type)
{
    *type = (struct type){.counter = -1, .count = 1};
    const char *end = word_end(at);
    int bytes;
    if (is_word(at, end, "out") || is_word(at, end, "inout")) {
        type->direction = is_word(at, end, "out") ? OUT : IN | OUT;
        at = skip(end);
        end = word_end(at);
    }
    if (is_word(at, end, "string")) {
        type->string = 1;
        type->size = 8;
    } else if (is_word(at, end, "bytes")) {
        type->size = 1;
    } else if ((bytes = scalar_bytes(at, end)) >= 0) {
        type->size = (uint8_t)bytes;
    } else {
        return NULL;
    }
    at = skip(end);
    if (*at != '[')
        return at;
    type->array = 1;
    type->direction = type->direction ? type->direction : IN;
    at = skip(at + 1);
    end = word_end(at);
    if (*at >= '0' && *at <= '9') {
        for (type->count = 0; at < end; at++)
            type->count = 10 * type->count + (uint64_t)(*at - '0');
    } else if ((type->counter = (int16_t)index_of(parameters, at, end)) < 0) {
        return NULL;
    }
    at = skip(end);
    return *at == ']' ? skip(at + 1) : NULL;
}

static int read_prototype(const char *text, struct layout *layout)
{
    const char *at = text;
    while (*at && *at != '(')
        at++;
    if (!*at)
        return 0;
    const char *parameters = at = skip(at + 1);
    layout->text = text;
    layout->arguments = 0;
    while (*at && *at != ')') {
        at = skip(word_end(at));
        if (*at != ':' || layout->arguments == TK_MOST_ARGUMENTS)
            return 0;
        at = read_type(skip(at + 1), parameters, &layout->argument[layout->arguments++]);
        if (!at || (*at != ',' && *at != ')'))
            return 0;
        at = skip(*at == ',' ? at + 1 : at);
    }
    layout->result = (struct type){.counter = -1};
    at = *at ? skip(at + 1) : at;
    return !(at[0] == '-' && at[1] == '>') || read_type(skip(at + 2), parameters, &layout->result) != NULL;
}

/* What `record --intercept` says of the function instead, if it does: a shim has the list (recorder/intercept.py). */
static const char *other_text(const char *text)
{
#ifndef TK_STATIC
    static void *list;
    static int looked;
    if (!looked) {
        looked = 1;
        tk_find_real(&list, "__tk_prototypes");
    }
    for (const char *const *other = list; other && *other; other++) {
        const char *a = text, *b = *other;
        while (*a && *a == *b && *a != '(')
            a++, b++;
        if (*a == '(' && *b == '(')
            return *other;
    }
#endif
    return text;
}

/* -- memory --------------------------------------------------------------------------------------- */

static int is_readable(void *to, uint64_t from, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    return from && syscall(SYS_process_vm_readv, (long)getpid(), &local, 1L, &remote, 1L, 0L) == (long)bytes;
}

/* The bytes up to a NUL, which does not count. */
static uint64_t text_length(uint64_t from)
{
    char page[256];
    uint64_t length = 0;
    while (length < LONGEST) {
        uint64_t room = 256 - ((from + length) & 255);
        if (!is_readable(page, from + length, room))
            return length;
        for (uint64_t index = 0; index < room; index++, length++)
            if (!page[index])
                return length;
    }
    return LONGEST;
}

static void record_data(const char *bytes, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += 16) {
        uint64_t words[2] = {0, 0};
        for (uint64_t index = 0; index < 16 && at + index < size; index++)
            ((char *)words)[index] = bytes[at + index];
        TK_RECORD2(call_data, words[0], words[1]);
    }
}

/* `whole` bytes lie there; as many as may be are recorded, none if they cannot be read. */
static void record_bytes(uint64_t index, uint64_t from, uint64_t whole)
{
    char part[256];
    uint64_t size = whole < LONGEST ? whole : LONGEST;
    if (size && !is_readable(part, from, 1))
        size = 0;
    TK_RECORD3(call_bytes, index, size, whole);
    for (uint64_t at = 0; at < size; at += sizeof part) {
        uint64_t bytes = size - at < sizeof part ? size - at : sizeof part;
        if (!is_readable(part, from + at, bytes))
            for (uint64_t byte = 0; byte < bytes; byte++)
                part[byte] = 0;
        record_data(part, bytes);
    }
}

/* -- calls ---------------------------------------------------------------------------------------- */

static uint64_t masked(uint64_t value, const struct type *type)
{
    return type->size == 0 ? 0 : type->size < 8 ? value & ((1ull << (8 * type->size)) - 1) : value;
}

static uint64_t elements(const struct layout *layout, const struct type *type, const uint64_t *arguments,
                         uint64_t result, int leaves)
{
    if (type->counter < 0)
        return type->count;
    const struct type *counter = type->counter == RESULT ? &layout->result : &layout->argument[type->counter];
    uint64_t count = type->counter == RESULT ? (leaves ? result : 0) : arguments[type->counter];
    if (counter->direction && !counter->array) {
        uint64_t pointed = 0;
        count = is_readable(&pointed, count, counter->size) ? pointed : 0;
    }
    count = masked(count, counter);
    uint64_t highest = counter->size ? 1ull << (8 * counter->size - 1) : 1;
    return count & highest && type->counter == RESULT ? 0 : count; /* read() returns -1 */
}

static void record_pointed(const struct layout *layout, const struct type *type, uint64_t index, uint64_t value,
                           const uint64_t *arguments, uint64_t result, int leaves)
{
    if (!value)
        return;
    if (type->string && !type->array) {
        uint64_t from = value;
        if (!type->direction || is_readable(&from, value, sizeof from))
            record_bytes(index, from, text_length(from));
        return;
    }
    uint64_t count = elements(layout, type, arguments, result, leaves);
    if (!type->string) {
        record_bytes(index, value, count < (1ull << 48) ? count * type->size : 0);
        return;
    }
    for (uint64_t element = 0, text; element < count && element < LONGEST / 8; element++)
        if (is_readable(&text, value + 8 * element, sizeof text))
            record_bytes(index, text, text ? text_length(text) : 0);
}

static void record_entry(const struct layout *layout, const uint64_t *arguments)
{
    for (uint32_t index = 0; index < layout->arguments; index++) {
        const struct type *type = &layout->argument[index];
        TK_RECORD2(call_value, index, masked(arguments[index], type->direction ? &(struct type){.size = 8} : type));
        if (type->direction != OUT && (type->direction || type->string))
            record_pointed(layout, type, index, arguments[index], arguments, 0, 0);
    }
}

static void record_return(const struct layout *layout, const uint64_t *arguments, uint64_t result)
{
    for (uint32_t index = 0; index < layout->arguments; index++)
        if (layout->argument[index].direction & OUT) {
            TK_RECORD2(call_value, index, arguments[index]);
            record_pointed(layout, &layout->argument[index], index, arguments[index], arguments, result, 1);
        }
    if (!layout->result.size)
        return;
    TK_RECORD2(call_value, RESULT,
               masked(result, layout->result.direction ? &(struct type){.size = 8} : &layout->result));
    if (layout->result.direction || layout->result.string)
        record_pointed(layout, &layout->result, RESULT, result, arguments, result, 1);
}

/* The first call of a function gives it a number, and puts its prototype into the trace. */
static void enter_probe(struct tk_probe *probe)
{
    uint32_t number = TK_NO_PROBE;
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_sched_yield);
    if (!__atomic_load_n(&probe->number, __ATOMIC_ACQUIRE)) {
        const char *text = other_text(probe->text);
        struct layout *layout = &layouts[used];
        if (used < PROBES && read_prototype(text, layout) && layout->arguments <= probe->arguments) {
            number = ++used;
            uint64_t length = 0;
            while (text[length])
                length++;
            TK_RECORD2(call_probe, tk_ticket(), number);
            record_bytes(TEXT, (uint64_t)text, length);
        }
        __atomic_store_n(&probe->number, number, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
}

TK_EXPORT void __tk_call(struct tk_probe *probe, int leaves, uint64_t result, const uint64_t *arguments)
{
    if (!TK_BY_PROGRAM() || !tk_recording())
        return;
    int saved = errno;
    if (!__atomic_load_n(&probe->number, __ATOMIC_ACQUIRE)) {
        uint64_t signals;
        tk_block_signals(&signals);
        enter_probe(probe);
        tk_restore_signals(&signals);
    }
    uint32_t number = __atomic_load_n(&probe->number, __ATOMIC_ACQUIRE);
    if (number != TK_NO_PROBE && tk_recording()) {
        const struct layout *layout = &layouts[number - 1];
        if (leaves) {
            record_return(layout, arguments, result);
            TK_RECORD2(call_end, tk_ticket(), number);
        } else {
            TK_RECORD2(call_begin, tk_ticket(), number);
            record_entry(layout, arguments);
        }
    }
    errno = saved;
}
