// Describe.h: a segmented function -> rows of functions, paths, blocks, ops and calls.
#pragma once

#include "Calls.h"
#include "Regions.h"
#include "SourceLoops.h"
#include "SourceMap.h"

namespace tracekit {

/// Where the parts of one function stand in the unit's tables.
struct FunctionRows {
  Row Function;
  Row FirstBlock; // segment k is block FirstBlock + k
  Row FirstOp;
  llvm::DenseMap<const llvm::Instruction *, std::pair<Row, unsigned>> OpsOf; // first row and count
  llvm::DenseMap<const llvm::PHINode *, Row> PhiOf;                          // phis of loop headers
  llvm::DenseMap<const llvm::Loop *, Row> LoopOf;
};

/// Appends all rows of `S` but those of terms, loops and edges, whose first rows and counts are left for later.
/// `InSource` may be null.
FunctionRows describe(const SegmentedFunction &S, const Regions &Paths, Unit &U, SourceMap &Sources, CallSites &Calls,
                      const llvm::TargetLibraryInfo &TLI, const SourceLoops *InSource, TypeRows &Types);

/// Appends the terms of the operations' addresses, now that the loops have rows.
void describeTerms(const SegmentedFunction &S, const FunctionRows &Rows, Unit &U);

/// The block with which a basic block begins or ends, or TK_NONE if it cannot run.
Row firstBlock(const SegmentedFunction &S, const FunctionRows &Rows, const llvm::BasicBlock *BB);
Row lastBlock(const SegmentedFunction &S, const FunctionRows &Rows, const llvm::BasicBlock *BB);

} // namespace tracekit
