// Conditions.h: `a && b` and `a || b` that decide a branch, as branches of their own.
#pragma once

#include "llvm/IR/Function.h"

namespace tracekit {

/// Lets each operand of a condition branch to where it decides the way.
///
/// Unoptimised, clang has all operands meet in a block that branches on a phi: `i < n && !error` leaves its loop there,
/// and not in the header, whose last visit would look like one more iteration. Optimised code has no such block.
void branchAtOnce(llvm::Function &F);

} // namespace tracekit
