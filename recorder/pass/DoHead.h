// DoHead.h: the head of a DO construct of Fortran, as flang writes it.
//
// The language promises what has to be read off a `for` of C: the bounds are computed once, and nothing but the head
// assigns the counter.
#pragma once

#include "ForHead.h"

namespace tracekit {

/// The head of the loop, if a counter goes through a number of iterations that is known before; else none.
ForHead doHeadOf(const LoopText &Text);

/// Lets each DO construct of a module step its counter from the iteration before. flang loads the counter again for it,
/// as if a procedure that is given the counter could have assigned it; then no iteration would be known to follow from
/// the number of the one before. Returns whether there were any.
bool stepCounters(llvm::Module &M);

/// Whether a block's first store gives the counter the value that it has behind the loop.
bool leavesCounter(const llvm::BasicBlock &Behind, Object Counter, const llvm::Loop &L);

} // namespace tracekit
