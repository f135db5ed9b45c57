// Lending.h: what is done with an address that is given to a call, or put into a pointer, where nothing has been
// optimised.
#pragma once

#include "llvm/IR/Instructions.h"

namespace tracekit {

/// What may be done with an address.
struct Loan {
  bool IsKept = false;   // it may be found again when the call is over: stored anywhere but in the callee's own
                         // variables, returned, or given to code that is not known
  bool IsStored = false; // something may be stored through it
};

/// What `Call` does with the address that it is given as argument `Number`. In Fortran no pointer to what a procedure
/// is given outlives the call, unless one was set to it before.
Loan loanOf(const llvm::CallBase &Call, unsigned Number);

/// What is done with the address that `Store` puts somewhere: kept, unless that is a local pointer or reference, or a
/// part of a local structure, that is but read. The loan is over when these are.
Loan loanOf(const llvm::StoreInst &Store);

} // namespace tracekit
