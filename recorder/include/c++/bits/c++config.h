// c++config.h: libstdc++'s own, and then: std::string is compiled into the program.
//
// Before C++20, libstdc++ declares the members of std::string and std::wstring `extern template`: a program that is
// not optimised calls those in the library, where nothing is recorded, and an optimised one calls what was not inlined.
// Its value -1 turns that off for strings alone (its own special case, which -D_GLIBCXX_ASSERTIONS sets, too). Other
// libraries have no such file, or do not read this macro.
#include_next <bits/c++config.h>

#if defined(_GLIBCXX_EXTERN_TEMPLATE) && _GLIBCXX_EXTERN_TEMPLATE > 0
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE -1
#endif
