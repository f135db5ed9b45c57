// TargetVectors.h: masked accesses that are written for one processor.
#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tracekit {

/// Makes the masked loads and stores, gathers and scatters of x86's intrinsics those that LLVM has for all processors,
/// whose lanes are accesses like any other. The code generator makes the same instructions of both.
void generaliseVectors(llvm::Function &F);

} // namespace tracekit
