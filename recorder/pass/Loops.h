// Loops.h: rows of loops, loop_exits, phis and updates: what verdicts need to know of a loop's shape.
#pragma once

#include "Accumulation.h"
#include "Describe.h"
#include "SourceLoops.h"

namespace tracekit {

/// Appends the rows of the function's loops, outer ones first, with what their exits depend on, and fills `Rows.LoopOf`
/// and `Rows.PhiOf`. Loops are natural loops; irreducible cycles are none.
void describeLoops(const SegmentedFunction &S, FunctionRows &Rows, const FunctionShape &In, const SourceLoops *InSource,
                   Unit &U, SourceMap &Sources);

/// The source variable that a header phi carries; null if there is none, or more than one may be meant.
const llvm::DILocalVariable *carriedVariable(llvm::PHINode &Phi);

/// Appends the local variables from outside `L`, which begins at `Start`, row `LoopRow`, that it assigns; returns the
/// loop's flags TK_LOOP_FOR_STATEMENT, TK_LOOP_LEAVES_VALUES and TK_LOOP_SOURCE. `InSource` is null if nobody looked at
/// the source.
uint32_t describeVariables(const llvm::Loop &L, llvm::DebugLoc Start, Row LoopRow, const FunctionShape &In,
                           const SourceLoops *InSource, Unit &U, SourceMap &Sources);

/// What a loop header's phi carries: TK_PHI_*, and the operator of a reduction ("" otherwise).
std::pair<uint32_t, llvm::StringRef> classifyPhi(llvm::PHINode &Phi, const llvm::Loop &L, const FunctionShape &In);

/// TK_PHI_REDUCTION's operator, GreatestElement or LeastElement, of a position that is all that is kept of the greatest
/// or least element; "" otherwise.
llvm::StringRef bestElementOperator(llvm::PHINode &Phi, const llvm::Loop &L, const FunctionShape &In);

/// What a loop's variable without a closed form advances by in those iterations in which it changes: "+1"; "" if that
/// is not one constant.
std::string conditionalStep(llvm::PHINode &Phi, const llvm::Loop &L);

/// Appends what loops accumulate in memory: loads, an operator, and stores to the same address.
void describeUpdates(const SegmentedFunction &S, const FunctionRows &Rows, const FunctionShape &In, Unit &U);

} // namespace tracekit
