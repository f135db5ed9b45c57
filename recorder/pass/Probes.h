// Probes.h: calls of __tk_probe at the entry and the returns of functions that `tracekit cc --intercept` names.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Module.h"

#include <string>

namespace tracekit {

/// Arguments of a function that are recorded.
constexpr unsigned MostArguments = 16; // TK_MOST_ARGUMENTS

/// `Names`: as in the source or as the linker has them. To be done before anything is inlined.
void addProbes(llvm::Module &M, llvm::ArrayRef<std::string> Names);

} // namespace tracekit
