// FortranText.h: statements in the text of a Fortran source, free or fixed form.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tracekit {

enum class FortranForm { None, Free, Fixed };

/// The form of a source, by the name of its file; None if that is not one of Fortran.
FortranForm fortranForm(llvm::StringRef Path);

/// The same by its text, too: an option (`-ffree-form`) has compilers read `solver.F` in free form.
FortranForm fortranForm(llvm::StringRef Path, llvm::StringRef Text);

/// `Text` in small letters, with spaces for comments and literals: each character keeps its place. Adds to `Directives`
/// where each comment ends that is a directive to a compiler (`!$omp`, `!dir$`).
std::string fortranCode(llvm::StringRef Text, FortranForm Form, std::vector<size_t> &Directives);

/// The whole statement of `Code` around a place, with its continuation lines.
llvm::StringRef fortranStatement(llvm::StringRef Code, size_t At, FortranForm Form);

/// Whether a DO construct with a counter begins there, perhaps behind its name: `outer: do 10, i = 1, n`.
bool isFortranDo(llvm::StringRef Text);

/// Whether a DO CONCURRENT construct begins there.
bool isFortranConcurrent(llvm::StringRef Text);

} // namespace tracekit
