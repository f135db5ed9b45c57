/* Streams, strings read from them, and exceptions with a text, of libstdc++: what they read and write of the program's
 * memory. What a stream does to itself is not recorded, but that it is made.
 *
 * Sizes and places are those of libstdc++'s interface on 64-bit systems, which is the same since GCC 5. */
#include "preload_library.h"

#include <dlfcn.h>
#include <stdbool.h>

struct string { /* std::__cxx11::string */
    char *text;
    size_t length;
    union {
        char own[16];
        size_t capacity;
    };
};

struct stream { /* std::istream; std::ostream has no count */
    const char *table;
    long count; /* of characters, of the last unformatted input */
};

enum {
    THROWS_AT = 28,  /* of std::ios_base::_M_exception */
    STATE_AT = 32,   /* of std::ios_base::_M_streambuf_state */
    BUFFER_AT = 232, /* of std::ios::_M_streambuf */
    PUTS = 12,       /* std::streambuf::xsputn among the virtual functions */
    FAILED = 1 | 4,  /* std::ios_base::badbit, failbit */
    NO_LIMIT = 0x5a,
};

/* How far the object of std::ios is from the stream's beginning stands in front of the table of virtual functions. */
static inline const char *ios_of(const void *stream)
{
    return (const char *)stream + ((const long *)((const struct stream *)stream)->table)[-3];
}

static inline int ios_field(const void *stream, int at)
{
    int value;
    memcpy(&value, ios_of(stream) + at, sizeof value);
    return value;
}

/* Whether a function lies in the library that has another one; in a static program all do. */
static bool is_beside(const void *function, const void *other)
{
#ifdef TK_STATIC
    return true;
#else
    Dl_info one, two;
    return dladdr(function, &one) && dladdr(other, &two) && one.dli_fbase == two.dli_fbase;
#endif
}

/* Whether the stream's buffer takes characters by a function of its own, not by one of libstdc++, where `write` is:
 * then that reads them, or does not. */
static bool has_own_buffer(const void *stream, const void *write)
{
    enum { MOST = 8 };
    static __thread struct {
        void *const *table;
        bool is_own;
    } known[MOST];
    void *const *const *buffer;
    memcpy(&buffer, ios_of(stream) + BUFFER_AT, sizeof buffer);
    if (!buffer)
        return false;
    unsigned place = (uintptr_t)*buffer / 64 % MOST;
    if (known[place].table != *buffer) {
        known[place].is_own = !is_beside((*buffer)[PUTS], write);
        known[place].table = *buffer;
    }
    return known[place].is_own;
}

static inline void string_load(const struct string *string)
{
    tk_library_load(string, offsetof(struct string, own));
    tk_library_load(string->text, string->length);
}

/* It has new contents, perhaps in a new block. */
static inline void string_store(const struct string *string)
{
    tk_library_store(string, string->text == string->own ? offsetof(struct string, own)
                                                         : offsetof(struct string, own) + sizeof string->capacity);
    tk_library_store(string->text, string->length + 1);
}

#define WRAP(type, name, parameters, arguments, accesses) \
    type name parameters; \
    TK_WRAP(type, name, parameters, arguments, accesses)

/* What a function does that returns nothing; `accesses` when it is done. */
#define WRAP_VOID(name, parameters, arguments, accesses) \
    void name parameters; \
    TK_EXPORT void name parameters \
    { \
        TK_REAL(name) arguments; \
        if (TK_IS_RECORDED()) { \
            accesses; \
        } \
    }

__thread struct tk_lent tk_lent;

/* Returns what was lent before. */
static inline struct tk_lent lend(const char *text, long size)
{
    struct tk_lent outer = tk_lent;
    tk_lent = (struct tk_lent){(uintptr_t)text, size > 0 ? (uintptr_t)size : 0, __tk_state.pos};
    return outer;
}

/* The same of a function that has memcpy, fwrite and their like do it for it, or does it itself. */
#define WRAP_LENT(type, name, parameters, arguments, accesses) \
    type name parameters; \
    TK_EXPORT type name parameters \
    { \
        struct tk_lent outer = lend(text, size); \
        type result = TK_REAL(name) arguments; \
        tk_lent = outer; \
        if (size > 0 && TK_IS_RECORDED()) { \
            accesses; \
        } \
        return result; \
    }

/* -- output --------------------------------------------------------------------------------------- */

/* std::ostream::write; what prints strings, and is called by the operators that do. Of a stream that was at fault, or
 * is then, it is not known how much was looked at. */
#define WRAP_WRITE(name) \
    void *name(void *stream, const char *text, long size); \
    TK_EXPORT void *name(void *stream, const char *text, long size) \
    { \
        if (!TK_IS_RECORDED() || has_own_buffer(stream, (void *)TK_REAL(name))) \
            return TK_REAL(name)(stream, text, size); \
        bool is_good = ios_field(stream, STATE_AT) == 0; \
        struct tk_lent outer = lend(text, size); \
        void *result = TK_REAL(name)(stream, text, size); \
        tk_lent = outer; \
        if (size > 0 && is_good && ios_field(stream, STATE_AT) == 0) \
            tk_library_load(text, (size_t)size); \
        return result; \
    }
WRAP_WRITE(_ZNSo5writeEPKcl)
WRAP_WRITE(_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l)

WRAP(void *, _ZStlsIcSt11char_traitsIcESaIcEERSt13basic_ostreamIT_T0_ES7_RKNSt7__cxx1112basic_stringIS4_S5_T1_EE,
     (void *stream, const struct string *string), (stream, string),
     tk_library_load(string, offsetof(struct string, own)))

/* -- input ---------------------------------------------------------------------------------------- */

WRAP_LENT(void *, _ZNSi4readEPcl, (struct stream * stream, char *text, long size), (stream, text, size),
          tk_library_store(text, (size_t)stream->count))
WRAP_LENT(long, _ZNSi8readsomeEPcl, (struct stream * stream, char *text, long size), (stream, text, size),
          if (result > 0) tk_library_store(text, (size_t)result))
WRAP(void *, _ZNSi3getERc, (struct stream * stream, char *to), (stream, to),
     tk_library_store(to, (size_t)stream->count))

/* std::istream::get, getline: they end what they have read with a NUL. */
WRAP_LENT(void *, _ZNSi3getEPcl, (struct stream * stream, char *text, long size), (stream, text, size),
          tk_library_store(text, tk_span(text, (size_t)size)))
WRAP_LENT(void *, _ZNSi3getEPclc, (struct stream * stream, char *text, long size, char end), (stream, text, size, end),
          tk_library_store(text, tk_span(text, (size_t)size)))
WRAP_LENT(void *, _ZNSi7getlineEPcl, (struct stream * stream, char *text, long size), (stream, text, size),
          tk_library_store(text, tk_span(text, (size_t)size)))
WRAP_LENT(void *, _ZNSi7getlineEPclc, (struct stream * stream, char *text, long size, char end),
          (stream, text, size, end), tk_library_store(text, tk_span(text, (size_t)size)))

/* operator>>: writes 0 or another limit where there is no number, and nothing where the stream was at fault before, or
 * ends in front of one. These two are told apart by a value that is none of the limits; of a stream that throws it is
 * not known. */
#define WRAP_EXTRACTION(name, type) \
    void *name(void *stream, type *to); \
    TK_EXPORT void *name(void *stream, type *to) \
    { \
        if (!TK_IS_RECORDED()) \
            return TK_REAL(name)(stream, to); \
        bool is_good = ios_field(stream, STATE_AT) == 0, throws = ios_field(stream, THROWS_AT) != 0; \
        type got; \
        type none; \
        memset(&got, NO_LIMIT, sizeof got); \
        memset(&none, NO_LIMIT, sizeof none); \
        void *result = TK_REAL(name)(stream, throws ? to : &got); \
        if (throws ? !is_good : ios_field(stream, STATE_AT) & FAILED && memcmp(&got, &none, sizeof got) == 0) \
            return result; \
        if (!throws) \
            *to = got; \
        tk_library_store(to, sizeof *to); \
        return result; \
    }
WRAP_EXTRACTION(_ZNSirsERb, bool)
WRAP_EXTRACTION(_ZNSirsERs, short)
WRAP_EXTRACTION(_ZNSirsERt, unsigned short)
WRAP_EXTRACTION(_ZNSirsERi, int)
WRAP_EXTRACTION(_ZNSirsERj, unsigned)
WRAP_EXTRACTION(_ZNSirsERl, long)
WRAP_EXTRACTION(_ZNSirsERm, unsigned long)
WRAP_EXTRACTION(_ZNSirsERx, long long)
WRAP_EXTRACTION(_ZNSirsERy, unsigned long long)
WRAP_EXTRACTION(_ZNSirsERf, float)
WRAP_EXTRACTION(_ZNSirsERd, double)
WRAP_EXTRACTION(_ZNSirsERe, long double)
WRAP_EXTRACTION(_ZNSirsERPv, void *)
WRAP_EXTRACTION(_ZNSi10_M_extractIbEERSiRT_, bool)
WRAP_EXTRACTION(_ZNSi10_M_extractItEERSiRT_, unsigned short)
WRAP_EXTRACTION(_ZNSi10_M_extractIjEERSiRT_, unsigned)
WRAP_EXTRACTION(_ZNSi10_M_extractIlEERSiRT_, long)
WRAP_EXTRACTION(_ZNSi10_M_extractImEERSiRT_, unsigned long)
WRAP_EXTRACTION(_ZNSi10_M_extractIxEERSiRT_, long long)
WRAP_EXTRACTION(_ZNSi10_M_extractIyEERSiRT_, unsigned long long)
WRAP_EXTRACTION(_ZNSi10_M_extractIfEERSiRT_, float)
WRAP_EXTRACTION(_ZNSi10_M_extractIdEERSiRT_, double)
WRAP_EXTRACTION(_ZNSi10_M_extractIeEERSiRT_, long double)
WRAP_EXTRACTION(_ZNSi10_M_extractIPvEERSiRT_, void *)
WRAP_EXTRACTION(_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_, char)

/* operator>> and std::getline of a string */
#define WRAP_STRING(name, parameters, arguments) \
    WRAP(void *, name, parameters, arguments, tk_library_load(string, offsetof(struct string, own)); \
         string_store(string))
WRAP_STRING(_ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE,
            (void *stream, struct string *string), (stream, string))
WRAP_STRING(_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE,
            (void *stream, struct string *string), (stream, string))
WRAP_STRING(_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EES4_,
            (void *stream, struct string *string, char end), (stream, string, end))

/* -- streams that are made, and their strings ------------------------------------------------------- */

#define WRAP_STRING_STREAM(mangled, size) \
    WRAP_VOID(_ZNSt7__cxx11##mangled##IcSt11char_traitsIcESaIcEEC1Ev, (void *stream), (stream), \
              tk_library_store(stream, size)) \
    WRAP_VOID(_ZNSt7__cxx11##mangled##IcSt11char_traitsIcESaIcEEC1ESt13_Ios_Openmode, (void *stream, int mode), \
              (stream, mode), tk_library_store(stream, size)) \
    WRAP_VOID(_ZNSt7__cxx11##mangled##IcSt11char_traitsIcESaIcEEC1ERKNS_12basic_stringIcS2_S3_EESt13_Ios_Openmode, \
              (void *stream, const struct string *string, int mode), (stream, string, mode), string_load(string); \
              tk_library_store(stream, size)) \
    WRAP(struct string *, _ZNKSt7__cxx11##mangled##IcSt11char_traitsIcESaIcEE3strEv, \
         (struct string * to, const void *stream), (to, stream), string_store(to)) \
    WRAP_VOID(_ZNSt7__cxx11##mangled##IcSt11char_traitsIcESaIcEE3strERKNS_12basic_stringIcS2_S3_EE, \
              (void *stream, const struct string *string), (stream, string), string_load(string))
WRAP_STRING_STREAM(19basic_ostringstream, 376)
WRAP_STRING_STREAM(19basic_istringstream, 384)
WRAP_STRING_STREAM(18basic_stringstream, 392)

#define WRAP_FILE_STREAM(mangled, size) \
    WRAP_VOID(_ZNSt##mangled##IcSt11char_traitsIcEEC1Ev, (void *stream), (stream), tk_library_store(stream, size)) \
    WRAP_VOID(_ZNSt##mangled##IcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode, \
              (void *stream, const char *name, int mode), (stream, name, mode), tk_string_load(name); \
              tk_library_store(stream, size)) \
    WRAP_VOID(_ZNSt##mangled##IcSt11char_traitsIcEEC1ERKNSt7__cxx1112basic_stringIcS1_SaIcEEESt13_Ios_Openmode, \
              (void *stream, const struct string *name, int mode), (stream, name, mode), string_load(name); \
              tk_library_store(stream, size)) \
    WRAP_VOID(_ZNSt##mangled##IcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode, \
              (void *stream, const char *name, int mode), (stream, name, mode), tk_string_load(name)) \
    WRAP_VOID(_ZNSt##mangled##IcSt11char_traitsIcEE4openERKNSt7__cxx1112basic_stringIcS1_SaIcEEESt13_Ios_Openmode, \
              (void *stream, const struct string *name, int mode), (stream, name, mode), string_load(name))
WRAP_FILE_STREAM(14basic_ofstream, 512)
WRAP_FILE_STREAM(14basic_ifstream, 520)
WRAP_FILE_STREAM(13basic_fstream, 528)

/* -- exceptions with a text ------------------------------------------------------------------------- */

#define EXCEPTION_SIZE 16

#define WRAP_EXCEPTION(mangled) \
    WRAP_VOID(_ZNSt##mangled##C1EPKc, (void *error, const char *text), (error, text), tk_string_load(text); \
              tk_library_store(error, EXCEPTION_SIZE)) \
    WRAP_VOID(_ZNSt##mangled##C1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE, \
              (void *error, const struct string *text), (error, text), string_load(text); \
              tk_library_store(error, EXCEPTION_SIZE))
WRAP_EXCEPTION(11logic_error)
WRAP_EXCEPTION(12domain_error)
WRAP_EXCEPTION(16invalid_argument)
WRAP_EXCEPTION(12length_error)
WRAP_EXCEPTION(12out_of_range)
WRAP_EXCEPTION(13runtime_error)
WRAP_EXCEPTION(11range_error)
WRAP_EXCEPTION(14overflow_error)
WRAP_EXCEPTION(15underflow_error)
