// Allocators.h: allocators of the program's own, whose blocks are objects as those of the C library's malloc are.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace tracekit {

/// Functions that `tracekit cc --allocator` names: "je_*" for those of malloc's family that begin so, "je_malloc" for
/// one of them, or "palloc:_s", which says what each parameter is (`AllocatorForm::Roles`).
using AllocatorNames = std::vector<std::string>;

/// Puts a call of the runtime before and after what each allocator does: a function that the module defines gets a body
/// of that name, and its own one another; calls of one that it only declares go through such a body. `malloc` and its
/// like are allocators wherever they are defined. Code that only allocators reach is not instrumented, as that of the C
/// library is not. To be done before anything is inlined. Returns whether it has changed anything.
bool surroundAllocators(llvm::Module &M, const AllocatorNames &Names);

/// What a function does for the allocator of its name, as "palloc:_s"; "" if it is none.
llvm::StringRef allocatorText(const llvm::Function &F);

/// The name of a function, or of the one that it calls if it is there only to surround that.
llvm::StringRef behindDoor(const llvm::Function &F);

} // namespace tracekit
