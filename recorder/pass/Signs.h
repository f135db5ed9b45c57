// Signs.h: whether integers are compared as their type has them.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"

namespace tracekit {

/// Whether unoptimised code of the loop compares an integer variable, which these loads read, as one of the other
/// signedness, as C does where one operand is unsigned: what is least and greatest then is not what `min` and `max` of
/// its type begin with.
bool isComparedWithOtherSign(const llvm::Loop &L, const llvm::DIType *T,
                             llvm::function_ref<bool(const llvm::LoadInst &)> Reads);

} // namespace tracekit
