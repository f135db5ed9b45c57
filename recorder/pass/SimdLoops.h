// SimdLoops.h: loops whose iterations the source lets run at once, and what each lane has of its own.
#pragma once

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instruction.h"

namespace tracekit {

/// TK_LOOP_SIMD, and in the upper 16 bits how many iterations may run at once (0: any number), if the source says
/// `omp simd` of the loop; else 0.
uint32_t simdFlags(const llvm::Loop &L);

/// Whether `I`, which accesses `Address`, stands in such a loop, and each of its lanes has a copy of that memory.
bool isOfLane(const llvm::Instruction &I, const llvm::Value *Address, const llvm::LoopInfo &LI);

} // namespace tracekit
