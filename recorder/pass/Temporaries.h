// Temporaries.h: memory that clang makes for an expression of a loop's body, which no variable of the source names.
//
// A copy of a structure that is handed to a function, what a reference is bound to: the source has it anew in each
// iteration, the compiled program once for the function.
#pragma once

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"

namespace tracekit {

/// The instructions that use a variable's address, or one within the variable; of its lifetime, those too.
llvm::SmallVector<llvm::Instruction *, 8> usersOf(llvm::AllocaInst &Variable);

/// Marks the nameless variables of a function, where nothing has been optimised, that one loop alone uses.
void markTemporaries(llvm::Function &F, const llvm::LoopInfo &LI);

/// Where the loop whose iterations have one each uses a variable that was marked, in none of its inner loops; null for
/// others. Kept through optimisation, but for `inlinedAt`.
const llvm::DILocation *placeOfTemporary(const llvm::AllocaInst &Variable);

} // namespace tracekit
