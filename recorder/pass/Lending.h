// Lending.h: what a call does with an address that it is given, where nothing has been optimised.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace tracekit {

/// What a call may do with an address that it is given.
struct Loan {
  bool IsKept = false;   // it may be found again when the call is over: stored anywhere but in the callee's own
                         // variables, returned, or given to code that is not known
  bool IsStored = false; // something may be stored through it
};

/// What `Call` does with the address that it is given as argument `Number`.
Loan loanOf(const llvm::CallBase &Call, unsigned Number);

} // namespace tracekit
