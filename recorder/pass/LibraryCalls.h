// LibraryCalls.h: calls of small functions of C++'s standard library, where nothing has been optimised.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"

namespace tracekit {

/// Inlines calls of small functions that C++'s standard library defines in its headers (`++it`, `*it`, `std::max(a,
/// b)`) where nothing but such calls keeps a local variable of one value in memory: with `-O0` each iterator would be a
/// dependence that memory carries. clang does the same to `std::move`. Functions that `MayEnter` refuses stay as they
/// are.
void inlineLibraryCalls(llvm::Function &F, llvm::function_ref<bool(const llvm::Function &)> MayEnter);

} // namespace tracekit
