// Signs.h: whether integers are compared as their type has them.
#pragma once

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace tracekit {

/// Whether unoptimised code of the loop compares an integer variable as one of the other signedness, as C does where
/// one operand is unsigned: what is least and greatest then is not what `min` and `max` of its type begin with.
bool isComparedWithOtherSign(const llvm::Loop &L, const llvm::Value &Variable, const llvm::DIType *T);

} // namespace tracekit
