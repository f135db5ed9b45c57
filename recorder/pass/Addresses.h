// Addresses.h: decides which addresses are recorded, and how the others follow from those that are.
//
// A base is recorded once for each activation and value: at its first use on the dominator tree, or before the loop in
// which it does not change. (Every way from its definition to a later use passes that place.) Inside loops addresses
// are affine functions of the iterations where scalar evolution can tell.
#pragma once

#include "Segments.h"

#include "llvm/Analysis/ScalarEvolution.h"

namespace tracekit {

using GlobalRows = llvm::DenseMap<const llvm::Value *, Row>;

/// Fills in base, offset and terms of the operations of `S`, and adds the operations that record bases before loops.
/// `Globals` has the rows of the global variables whose address the image tells. With `GroundTruth` each segment keeps
/// room for addGroundTruth().
void deriveAddresses(SegmentedFunction &S, const llvm::DominatorTree &DT, const llvm::LoopInfo &LI,
                     llvm::ScalarEvolution &SE, const GlobalRows &Globals, bool GroundTruth);

} // namespace tracekit
