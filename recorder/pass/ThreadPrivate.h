// ThreadPrivate.h: the variables of which OpenMP gives each thread one of its own, once a program is built with it.
//
// Built without, `#pragma omp threadprivate(x)` says nothing to the compiler: x is one variable in the run, and may be
// shared by loops that a directive would let several threads run, with an x each.
#pragma once

#include "SourceText.h"

#include "llvm/IR/Module.h"

namespace tracekit {

/// Marks the variables that such a directive names, in the module's files or in those that they include by "".
void markThreadPrivate(llvm::Module &M, SourceText &Sources);

/// Whether each thread has a variable of its own, by the language or by a directive that markThreadPrivate has seen.
bool isPerThread(const llvm::GlobalVariable &G);

} // namespace tracekit
