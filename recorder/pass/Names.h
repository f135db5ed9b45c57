// Names.h: what the source language calls functions, variables and types.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

#include <string>

namespace tracekit {

/// Enters each function's linkage name into its debug information, where clang leaves it out (-gline-tables-only): once
/// the function is inlined there is no other trace of it.
void keepLinkageNames(llvm::Module &M);

/// The name of the function that the linker knows as `Linkage`: demangled, as C++, Rust and D write it; in other
/// languages, and where that is longer than 4096 bytes, what `Source`, if not null, has for this linkage name; or the
/// linkage name.
std::string sourceName(llvm::StringRef Linkage, const llvm::DISubprogram *Source);

/// The same of a variable, or where nothing else is known.
std::string sourceName(llvm::StringRef Linkage);

/// The same for a function that is inlined somewhere; if that is longer than 256 bytes, the debug information's name
/// where it is shorter and not mangled: the names of templates that are all inlined would be a fifth of the program.
std::string scopeName(const llvm::DISubprogram &Source);

/// The name of a global variable in the source; of one that the unit only declares, its linkage name, if that is C's.
/// "" if it is not known.
llvm::StringRef globalName(const llvm::GlobalVariable &G);

/// The name of the variable that an address is computed from, if that is known; "" otherwise.
llvm::StringRef namedMemory(const llvm::Value *Address);

/// Whether a program unit is one of Fortran, or a place lies in one.
bool isFortran(const llvm::DISubprogram &Unit);
bool isFortran(const llvm::DILocation &At);

/// A place in the source, as text: the optimiser copies subprograms, so their names stand for them.
std::string placeKey(const llvm::DILocation &At);

} // namespace tracekit
